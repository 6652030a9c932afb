// Keys of every page: / for the question box, ? for the list of keys, Escape for the menu.
// Keys with a place (a list, a box, a panel) are with that place.
// Sends and receives nothing.
import { likes } from './browser.js';
import { $ } from './dom.js';

document.addEventListener('keydown', event => {
  if (event.defaultPrevented || event.isComposing) return;
  const typing = event.target.matches('input, textarea, select, [contenteditable]');
  const bare = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.key === 'Escape' && $('#menu[open]')) {
    event.preventDefault();
    $('#menu').open = false;
    $('#menu summary').focus();
  }
  if (typing || !bare || likes.keys === 'off') return;
  const box = $('#question');
  if (event.key === '/' && box) {
    event.preventDefault();
    box.focus();
  }
  if (event.key === '?') location.assign('/help/#keys');
});
