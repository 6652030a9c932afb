// The page that shares a conversation: creates the link and copies it in one step. Warns beforehand which parts the
// selected readers will not see. Posts the form, and takes the note with the link and the list of links from the
// returned page. Without this module or a clipboard, the form opens that page, where the link can be copied.

const form = document.querySelector('form[data-creates]');
const button = form?.querySelector('button.primary');

class Refused extends Error {} // `cause` is the server's error message

async function create(body) {
  const reply = await fetch(form.action, { method: 'POST', body, redirect: 'manual' });
  const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
  const note = page.querySelector('.shares > .note[data-copied]');
  if (!reply.ok || !note) throw new Refused(reply.status, { cause: page.querySelector('form .note.danger') });
  return { note, links: page.querySelector('#links') };
}
function say(problem) {
  form.querySelector('.note.danger')?.remove();
  form.prepend(document.adoptNode(problem));
  form.querySelector('[role=combobox]')?.focus({ preventScroll: true });
  problem.scrollIntoView({ block: 'nearest' });
}
function failure() {
  const problem = document.createElement('div');
  problem.className = 'note danger';
  problem.setAttribute('role', 'alert');
  problem.textContent = form.dataset.failed;
  return problem;
}

if (button && navigator.clipboard?.write && window.ClipboardItem) {
  button.textContent = form.dataset.creates;
  form.addEventListener('submit', async event => {
    event.preventDefault();
    if (button.hasAttribute('aria-busy')) return;
    button.setAttribute('aria-busy', 'true');
    const created = create(new FormData(form));
    const link = created.then(({ note }) => note.querySelector('[data-copy-text]').dataset.copyText);
    const text = link.then(address => new Blob([address], { type: 'text/plain' }));
    text.catch(() => {}); // a failure is shown below, even if the clipboard does not wait for the text
    // Call this first: browsers only allow writing to the clipboard right after a key press or click.
    const copied = navigator.clipboard.write([new ClipboardItem({ 'text/plain': text })]).then(
      () => true,
      () => false,
    );
    try {
      const { note, links } = await created;
      const copy = note.querySelector('[data-copy-text]');
      copy.hidden = false;
      note.querySelector('p').textContent = (await copied) ? note.dataset.copied : note.dataset.uncopied;
      for (const old of document.querySelectorAll('.shares > .note, form .note.danger')) old.remove();
      const again = document.querySelector('.again');
      document.querySelector('#links')?.remove();
      if (links) again.after(document.adoptNode(links));
      again.before(document.adoptNode(note));
      again.querySelector('summary').hidden = false;
      again.open = false;
      note.scrollIntoView({ block: 'center' });
      copy.focus({ preventScroll: true });
    } catch (error) {
      if (!(error instanceof Refused)) say(failure());
      else if (error.cause) say(error.cause);
      else form.submit(); // opens the sign-in page, or the page with the error
    } finally {
      button.removeAttribute('aria-busy');
    }
  });
}

let waiting;
let asked = 0;
async function foresee() {
  asked += 1;
  const number = asked;
  const body = new FormData(form);
  body.set('foresee', '');
  const reply = await fetch(form.action, { method: 'POST', body, redirect: 'error' });
  const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
  const next = page.querySelector('#foreseen > div');
  if (!reply.ok || !next || number !== asked) return;
  const note = document.querySelector('#foreseen');
  const now = note.querySelector('div');
  if (next.textContent === now.textContent) return;
  // Keep the height of the note, so that the button below does not move away from the pointer.
  note.style.minBlockSize = `${note.offsetHeight}px`;
  now.replaceWith(document.adoptNode(next));
}
for (const name of ['input', 'change'])
  form?.addEventListener(name, () => {
    clearTimeout(waiting);
    // On failure, the page shows the warning after the link was created.
    waiting = setTimeout(() => foresee().catch(() => {}), 300);
  });
