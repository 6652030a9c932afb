// Elements on top of a page: toasts, dialogs, and the menu of a conversation. A toast disappears after a while, but
// not while it is hovered or focused. Sends and receives nothing.
import { $ } from './dom.js';

function keepFor(toast, milliseconds) {
  let timer;
  const start = () => {
    timer = setTimeout(() => toast.remove(), milliseconds);
  };
  const pause = () => clearTimeout(timer);
  for (const [name, act] of [
    ['pointerenter', pause],
    ['focusin', pause],
    ['pointerleave', start],
    ['focusout', start],
  ])
    toast.addEventListener(name, act);
  const close = $('[data-close-toast]', toast);
  if (close) {
    close.hidden = false;
    close.addEventListener('click', () => toast.remove());
  }
  start();
}
export function toast(text) {
  $('#toast')?.remove();
  const note = document.createElement('div');
  note.className = 'toast';
  note.id = 'toast';
  note.setAttribute('role', 'status');
  document.body.append(note);
  const words = document.createElement('span');
  words.textContent = text;
  note.append(words);
  keepFor(note, 8000);
}
if ($('#toast')) keepFor($('#toast'), $('#toast form') ? 30000 : 8000);
document.addEventListener('click', event => {
  const opener = event.target.closest('[data-dialog]');
  const dialog = opener && $(`#${opener.dataset.dialog}`);
  if (dialog) {
    event.preventDefault();
    // A closing dialog returns the focus to what had it before; the opener in the menu is hidden by then.
    if (opener.closest('#menu')) $('#menu summary').focus();
    $('#menu')?.removeAttribute('open');
    dialog.showModal();
  }
  if (event.target.closest('[data-close-dialog]')) event.target.closest('dialog').close();
  if (!event.target.closest('#menu')) $('#menu')?.removeAttribute('open');
});
