// Suggests people and groups in fields with `data-suggest`, the search URL. An input contains names of people,
// separated by commas; a textarea contains groups, one per line. Searches the name at the cursor, and replaces it
// with the selected suggestion. A field with [data-one] contains one name. Without this module, people type names in
// full.

const PAUSE = 150; // ms after the last key press before the search
const MIN_LETTERS = 2; // letters that a search needs

let pressed = false; // whether a mouse button or a finger is pressed
function notePress(event) {
  pressed = event.type === 'pointerdown';
}
for (const type of ['pointerdown', 'pointerup', 'pointercancel']) addEventListener(type, notePress, true);

function begin(field) {
  const one = 'one' in field.dataset;
  const separator = field.matches('textarea') ? '\n' : ',';
  const list = document.createElement('ul');
  list.id = `${field.id}-found`;
  list.className = 'suggestions';
  list.hidden = true;
  for (const [name, value] of [
    ['role', 'listbox'],
    ['aria-label', field.labels[0].textContent.trim()],
  ])
    list.setAttribute(name, value);
  for (const [name, value] of [
    ['role', 'combobox'],
    ['aria-autocomplete', 'list'],
    ['aria-controls', list.id],
    ['aria-expanded', 'false'],
  ])
    field.setAttribute(name, value);
  field.after(list);
  let waiting;
  let asked = 0;

  // Start, end and text of the name at the cursor.
  function piece() {
    if (one) return { start: 0, end: field.value.length, letters: field.value.trim() };
    const at = field.selectionStart;
    const start = field.value.lastIndexOf(separator, at - 1) + 1;
    const next = field.value.indexOf(separator, at);
    const end = next < 0 ? field.value.length : next;
    return { start, end, letters: field.value.slice(start, end).trim() };
  }

  const options = () => [...list.children];
  const marked = () => options().findIndex(option => option.ariaSelected === 'true');

  function mark(option) {
    for (const each of options()) each.setAttribute('aria-selected', each === option);
    if (option) field.setAttribute('aria-activedescendant', option.id);
    else field.removeAttribute('aria-activedescendant');
    option?.scrollIntoView({ block: 'nearest' });
  }

  function show(names) {
    list.replaceChildren(
      ...names.map((name, number) => {
        const option = document.createElement('li');
        option.id = `${list.id}-${number}`;
        option.setAttribute('role', 'option');
        option.setAttribute('dir', 'auto');
        option.textContent = name;
        return option;
      }),
    );
    list.hidden = !names.length;
    field.setAttribute('aria-expanded', String(!list.hidden));
    mark(options()[0]);
  }

  function choose(option) {
    const { start, end } = piece();
    const before = field.value.slice(0, start) + (start && separator === ',' ? ' ' : '');
    const rest = field.value.slice(end + 1).replace(/^[ ]/, '');
    const after = separator === ',' ? ', ' : '\n';
    const text = one ? option.textContent : before + option.textContent + after;
    field.value = text + rest;
    field.setSelectionRange(text.length, text.length);
    field.dispatchEvent(new Event('change', { bubbles: true }));
    show([]);
    field.focus();
  }

  async function find() {
    asked += 1;
    const number = asked;
    const { letters } = piece();
    if (letters.length < MIN_LETTERS || letters.endsWith(')')) {
      show([]);
      return;
    }
    const address = `${field.dataset.suggest}?q=${encodeURIComponent(letters)}`;
    const answer = await fetch(address, { redirect: 'error' });
    if (!answer.ok || number !== asked) return;
    const { found } = await answer.json();
    if (number === asked && document.activeElement === field) show(found);
  }

  field.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => find().catch(() => show([])), PAUSE);
  });
  field.addEventListener('keydown', event => {
    if (list.hidden || event.isComposing) return;
    const all = options();
    const at = marked();
    const next = { ArrowDown: (at + 1) % all.length, ArrowUp: at > 0 ? at - 1 : all.length - 1 }[event.key];
    if (next !== undefined) mark(all[next]);
    else if (event.key === 'Enter' && all[at]) choose(all[at]);
    else if (event.key === 'Escape') show([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  field.addEventListener('blur', () => {
    asked += 1;
    clearTimeout(waiting);
    // Hide the list after the pointer is released: hiding it earlier would move a pressed button away from the
    // pointer.
    if (pressed) addEventListener('pointerup', () => setTimeout(show, 0, []), { once: true });
    else show([]);
  });
  // The field keeps the focus, because a blur before the click would hide the list.
  list.addEventListener('pointerdown', event => event.preventDefault());
  list.addEventListener('click', event => {
    const option = event.target.closest('[role=option]');
    if (option) choose(option);
  });
}

for (const field of document.querySelectorAll('[data-suggest]')) begin(field);
// Focus the field for which the page was opened, except on a touch screen, where this would open the keyboard.
if (!matchMedia('(pointer: coarse)').matches) document.querySelector('[data-first]')?.focus();
// Typing a reader selects “Some groups or people”.
for (const named of document.querySelectorAll('form .some'))
  named.addEventListener('input', () => {
    const some = named.closest('form').querySelector('[name=who][value=some]');
    if (some) some.checked = true;
  });
