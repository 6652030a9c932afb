// Keys that work on every page: / focuses the question box, ? shows the list of keys, Escape closes the menu. The
// modules of a list, a text box or a panel handle keys within it. Sends and receives nothing.
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
