// The palette: fetched when it is first opened, and again for each query. Focus stays in its box; the arrow keys move
// through the options, Enter follows the current one. Without an option, Enter searches the conversations.
// begin() returns open().

const PAUSE = 120; // ms without a key before the query is sent

export function begin({ $, $$, parsed }, address) {
  let dialog;
  let waiting;
  let asked = 0;

  async function fetched(query) {
    const answer = await fetch(`${address}?q=${encodeURIComponent(query)}`, { redirect: 'error' });
    if (!answer.ok) throw new Error(answer.status);
    return parsed(await answer.text());
  }

  const options = () => $$('[role=option]', dialog);
  function mark(option) {
    for (const each of options()) each.setAttribute('aria-selected', each === option);
    const box = $('[role=combobox]', dialog);
    if (option) box.setAttribute('aria-activedescendant', option.id);
    else box.removeAttribute('aria-activedescendant');
    option?.scrollIntoView({ block: 'nearest' });
  }

  async function look() {
    asked += 1;
    const number = asked;
    const found = await fetched($('[role=combobox]', dialog).value).catch(() => null);
    if (!found || number !== asked) return;
    for (const part of ['#palette-list', '[role=status]']) $(part, dialog).replaceWith($(part, found));
    mark($('[role=combobox]', dialog).value ? options()[0] : null);
  }

  function onKey(event) {
    const all = options();
    const at = all.findIndex(option => option.ariaSelected === 'true');
    const next = { ArrowDown: (at + 1) % all.length, ArrowUp: at > 0 ? at - 1 : all.length - 1 }[event.key];
    if (next !== undefined && all.length) {
      event.preventDefault();
      mark(all[next]);
    } else if (event.key === 'Enter' && all[at] && !event.isComposing) {
      event.preventDefault();
      all[at].click();
    }
  }

  // With what stands in the field `from`, also what is typed there until the palette has come.
  async function open(from) {
    if (dialog?.open) return;
    dialog?.remove();
    document.body.append(await fetched(''));
    dialog = $('#palette');
    dialog.addEventListener('keydown', onKey);
    dialog.addEventListener('input', () => {
      clearTimeout(waiting);
      waiting = setTimeout(look, PAUSE);
    });
    dialog.addEventListener('click', event => {
      if (event.target === dialog || event.target.closest('a')) dialog.close();
    });
    dialog.showModal();
    const box = $('[role=combobox]', dialog);
    box.focus();
    if (!from?.value) return;
    box.value = from.value;
    look();
  }
  return { open };
}
