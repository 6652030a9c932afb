// Glossary: marks the first occurrence of each term in an answer; a marked term shows its meaning. The page
// contains the meanings in elements with `data-explains`. Sends and receives nothing.
import { $ } from '../portal/dom.js';

export function markTerm(meaning) {
  const prose = $('.prose', meaning.closest('.answer'));
  if (!prose || $(`[aria-describedby="${meaning.id}"]`, prose)) return;
  const name = meaning.dataset.explains.split(' ');
  const texts = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const place = placeOf(name, text.data);
    if (!place || text.parentElement.closest('a, button, pre, code, .cite, .term, math')) continue;
    const found = text.splitText(place.begin);
    found.splitText(place.end - place.begin);
    const term = document.createElement('span');
    term.className = 'term';
    term.tabIndex = 0;
    term.setAttribute('role', 'button');
    term.setAttribute('aria-describedby', meaning.id);
    found.replaceWith(term);
    term.append(found);
    return;
  }
}
// Find where the words of a name follow each other in a text, with any separators between them.
function placeOf(name, text) {
  const words = [...text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)];
  const at = words.findIndex((_, start) =>
    name.every((word, i) => words[start + i]?.[0].toLowerCase() === word),
  );
  if (at < 0) return null;
  const last = words[at + name.length - 1];
  return { begin: words[at].index, end: last.index + last[0].length };
}
const bubble = document.createElement('div');
bubble.className = 'meaning';
bubble.hidden = true;
bubble.setAttribute('aria-hidden', 'true'); // screen readers read the term's description instead
document.body.append(bubble);
let explained = null; // the term whose meaning is shown
function explain(term) {
  explained = term;
  bubble.hidden = !term;
  if (!term) return;
  const meaning = document.getElementById(term.getAttribute('aria-describedby'));
  bubble.textContent = meaning?.textContent ?? '';
  bubble.dir = 'auto';
  const { left, top, bottom } = term.getBoundingClientRect();
  const { width, height } = bubble.getBoundingClientRect();
  const room = document.documentElement.clientWidth - width - 8;
  bubble.style.left = `${Math.max(8, Math.min(left, room))}px`;
  bubble.style.top = `${bottom + height < innerHeight ? bottom : Math.max(0, top - height)}px`;
}
// The bubble touches the term, so that the pointer can move onto the bubble without closing it.
document.addEventListener('pointerover', ({ target, pointerType }) => {
  if (pointerType !== 'mouse' || bubble.contains(target)) return;
  const term = target.closest?.('.term');
  if (term) explain(term);
  else if (explained && explained !== document.activeElement) explain(null);
});
document.addEventListener('focusin', ({ target }) => explain(target.closest('.term')));
document.addEventListener('click', ({ target }) => {
  const term = target.closest('.term');
  if (term || !bubble.contains(target)) explain(term);
});
document.addEventListener('keydown', event => {
  const term = event.target.closest?.('.term');
  if (event.key === 'Escape' && explained) explain(null);
  else if (term && (event.key === 'Enter' || event.key === ' ')) {
    event.preventDefault();
    explain(explained ? null : term);
  }
});
addEventListener('scroll', () => explained && explain(explained), { passive: true, capture: true });
