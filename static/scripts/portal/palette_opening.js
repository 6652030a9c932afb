// Opens the palette, which finds conversations and documents while one types.
// Loads palette.js at Ctrl or ⌘ K, with a click into the search of the conversations, or with typing there.
// Sends and receives nothing itself.
import { page } from './browser.js';
import { $, opensElsewhere } from './dom.js';
import { shared } from './shared.js';

let places;
function palette() {
  places ??= import(page.palette).then(module => module.begin(shared, page.places));
  return places;
}
// A click into the search of the conversations, or typing there, opens the palette, which finds while one types.
function findAsTyped(event) {
  if (event.isComposing) return;
  event.stopPropagation();
  const field = event.currentTarget;
  palette()
    .then(found => found.open(() => field.value))
    .catch(() => {}); // Enter finds, too
}
for (const name of ['click', 'input', 'compositionend']) $('#find')?.addEventListener(name, findAsTyped);
// Where the list is a drawer the bar has a link to that search.
$('[data-find]')?.addEventListener('click', event => {
  const link = event.currentTarget;
  if (opensElsewhere(event)) return;
  event.preventDefault();
  palette()
    .then(found => found.open(() => ''))
    .catch(() => location.assign(link.href));
});
// Keeps the keys that are typed before the palette has come; returns a function that ends this and returns their text.
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
