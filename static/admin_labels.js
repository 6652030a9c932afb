// Accessibility of the admin: adds accessible names that Django's scripts and lists lack.
// Runs at once, when the page has loaded, and whenever elements are added or removed. A click anywhere in a
// checkbox's cell toggles the checkbox. Focuses the summary of errors; Django's script would focus the first field.

const textOf = element => element?.textContent.replace(/:\s*$/, '').trim();

function labelOf(field) {
  const label = field.id && document.querySelector(`label[for="${CSS.escape(field.id)}"]`);
  const column = document.querySelector(
    `#result_list thead th.column-${field.name?.replace(/^form-\d+-/, '')}`,
  );
  const row = field.closest('.form-row, .fieldBox')?.querySelector('legend, label');
  return field.getAttribute('aria-label') || textOf(label) || textOf(column) || textOf(row);
}

function name(element, words) {
  if (!element || !words) return;
  element.removeAttribute('aria-labelledby');
  element.setAttribute('aria-label', words);
}

function addNames() {
  for (const picker of document.querySelectorAll('select.select2-hidden-accessible')) {
    const shown = picker.nextElementSibling;
    const words = labelOf(picker);
    for (const part of ['.select2-selection', '.select2-selection__rendered', '.select2-search__field'])
      name(shown?.querySelector(part), words);
  }
  // Select2 puts its “remove all” button among the items of the list of selected rows.
  for (const button of document.querySelectorAll('ul > .select2-selection__clear'))
    button.setAttribute('role', 'listitem');
  for (const field of document.querySelectorAll('#result_list td :is(input, select), .datetime input'))
    if (!field.labels?.length && field.type !== 'hidden' && !field.ariaLabel) name(field, labelOf(field));
  for (const tip of document.querySelectorAll('.help-tooltip[aria-label]:not([role])'))
    tip.setAttribute('role', 'img');
  for (const head of document.querySelectorAll('th.original'))
    if (!textOf(head)) {
      const words = document.createElement('span');
      words.className = 'visually-hidden';
      words.textContent = document.querySelector('script[data-row]').dataset.row;
      head.append(words);
    }
}

document.addEventListener('click', ({ target, shiftKey }) => {
  if (!target.matches('#result_list :is(.action-checkbox, .action-checkbox-column)')) return;
  const box = target.querySelector('input[type=checkbox]');
  box?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey }));
});

addNames();
window.addEventListener('load', addNames);
window.addEventListener('load', () => document.querySelector('.error-summary')?.focus());
// Select2 creates the autocomplete fields at an unknown time.
new MutationObserver(addNames).observe(document.body, { childList: true, subtree: true });
