// Accepts files for a question: chosen, pasted, or dropped anywhere on the page. The first file loads attach.js,
// which uploads and lists the files. Sends and receives nothing itself.
import { page } from '../portal/browser.js';
import { $ } from '../portal/dom.js';
import { shared } from '../portal/shared.js';

// `show` displays problems with a file. Returns null if the page accepts no files.
export function attaching(show) {
  const button = $('#attach');
  if (!button) return null;
  const form = $('#composer');
  const box = $('#question');
  const input = $('input', button.parentElement);
  let loading;
  let module;
  const load = () => {
    loading ??= import(page.attach).then(({ begin }) => {
      module = begin({ ...shared, show });
      return module;
    });
    return loading;
  };
  let starting = 0; // batches of files that were added while attach.js loads
  const add = async (files, pasted) => {
    starting += 1;
    box.focus({ preventScroll: true }); // so that the person can type the question
    const open = await load().finally(() => {
      starting -= 1;
    });
    open.add(files, pasted);
  };
  const holdsFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files');
  if ($('#attached li')) load();
  button.hidden = false;
  button.addEventListener('click', () => input.click());
  input.addEventListener('change', () => {
    add([...input.files]);
    input.value = '';
  });
  document.addEventListener('paste', event => {
    const files = event.clipboardData?.files;
    if (!files?.length || event.clipboardData.types.includes('text/plain')) return;
    event.preventDefault();
    add([...files], true);
  });
  for (const name of ['dragenter', 'dragover'])
    document.addEventListener(name, event => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      form.classList.add('over');
    });
  document.addEventListener('dragleave', event => {
    if (!event.relatedTarget) form.classList.remove('over');
  });
  document.addEventListener('drop', event => {
    form.classList.remove('over');
    if (!holdsFiles(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  return {
    get busy() {
      return Boolean(starting || module?.busy);
    },
    get unread() {
      return module?.unread ?? [];
    },
    arrived: () => load().then(open => open.arrived()),
  };
}
