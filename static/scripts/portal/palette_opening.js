// Opens the command palette, which finds conversations and documents as the person types. Loads palette.js on Ctrl
// K or ⌘ K, and on a click or typing in the search field of the sidebar. Sends and receives nothing itself.
import { page } from './browser.js';
import { $, opensElsewhere } from './dom.js';
import { shared } from './shared.js';

let places;
function palette() {
  places ??= import(page.palette).then(module => module.begin(shared, page.places));
  return places;
}
// A click or typing in the search field of the sidebar opens the palette.
function findAsTyped(event) {
  if (event.isComposing) return;
  event.stopPropagation();
  const field = event.currentTarget;
  palette()
    .then(found => found.open(() => field.value))
    .catch(() => {}); // Enter still submits the search form
}
for (const name of ['click', 'input', 'compositionend']) $('#find')?.addEventListener(name, findAsTyped);
// If the sidebar is a drawer, the bar has a link to the search.
$('[data-find]')?.addEventListener('click', event => {
  const link = event.currentTarget;
  if (opensElsewhere(event)) return;
  event.preventDefault();
  palette()
    .then(found => found.open(() => ''))
    .catch(() => location.assign(link.href));
});
// Collects text that is typed while the palette loads. Returns a function that stops collecting and returns the
// text.
function keepTyped() {
  let text = '';
  const keep = event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === 'Backspace') text = text.slice(0, -1);
    else if (event.key.length === 1) text += event.key;
    else if (event.key !== 'Enter') return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener('keydown', keep, true);
  return () => {
    document.removeEventListener('keydown', keep, true);
    return text;
  };
}
document.addEventListener('keydown', event => {
  if (event.defaultPrevented || event.isComposing || !$('#find')) return;
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  const typed = keepTyped();
  palette()
    .then(found => found.open(typed))
    .catch(() => $('#find').focus())
    .finally(typed);
});
