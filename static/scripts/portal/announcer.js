// Announces text to screen readers: whole blocks, never fragments, at most one every 1.5 s. Writes into the page's
// `log` region, which screen readers read out. Sends and receives nothing.
import { likes } from './browser.js';
import { $ } from './dom.js';

const log = $('#announcer');
const spoken = [];
let lastSpoken = 0;
let speaking;
export function say(text) {
  if (!log || likes.speak === 'off') return;
  spoken.push(text);
  speak();
}
function speak() {
  clearTimeout(speaking);
  const wait = lastSpoken + 1500 - Date.now();
  if (wait > 0) {
    speaking = setTimeout(speak, wait);
    return;
  }
  if (!spoken.length) return;
  const line = document.createElement('p');
  line.textContent = spoken.splice(0).join(' ');
  log.append(line);
  lastSpoken = Date.now();
  setTimeout(() => line.remove(), 20000);
}
