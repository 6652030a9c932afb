// The admin: accessible names for elements that Django's own scripts and lists leave without one.
// Runs once the pickers are made, and again whenever the page gets more. A click in the cell of a row's checkbox
// toggles the checkbox. A summary of errors gets the focus, which Django's script would give to the first field.

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
  // Between the chosen rows, which are items of a list, the script puts a button that removes them all.
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
// Another script creates the pickers, at an unknown time.
new MutationObserver(addNames).observe(document.body, { childList: true, subtree: true });
