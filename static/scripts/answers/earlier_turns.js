// Loads earlier turns in place of the link “Earlier questions” when the link is activated or scrolled into view.
// The scroll position does not change. If the link had the focus, the last of the loaded questions is focused.
// Fetches the page of the link, and inserts its turns and its own “Earlier questions” link. On failure, follows the
// link.
import { say } from '../portal/announcer.js';
import { $, $$, opensElsewhere, t } from '../portal/dom.js';
import { enliven } from './answer_tools.js';

const AHEAD = 1000; // start loading when the link is this many pixels above the viewport
let loading = false;
let failed = false;

async function turnsBehind(link) {
  const reply = await fetch(link.href, { redirect: 'manual' });
  if (!reply.ok) throw new Error(reply.status);
  const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
  const turns = $$('.thread > .turn', page);
  if (!turns.length) throw new Error('no turns');
  return { turns, older: $('#older', page)?.parentElement };
}

function prepend(place, { turns, older }) {
  const first = $('.turn', place.parentElement);
  const added = [older, ...turns].filter(Boolean).map(node => document.adoptNode(node));
  const hadFocus = place.contains(document.activeElement);
  const { top } = first.getBoundingClientRect();
  place.replaceWith(...added);
  for (const node of added) enliven(node);
  scrollBy({ top: first.getBoundingClientRect().top - top, behavior: 'instant' });
  say(t('Earlier questions shown: {n}', turns.length));
  if (!hadFocus) return;
  const question = $('.question', turns.at(-1));
  question.tabIndex = -1;
  question.focus({ preventScroll: true });
}

async function show(link) {
  if (loading) return;
  loading = true;
  link.setAttribute('aria-busy', 'true');
  try {
    prepend(link.parentElement, await turnsBehind(link));
  } finally {
    loading = false;
    link.removeAttribute('aria-busy');
  }
}

document.addEventListener('click', event => {
  const link = event.target.closest('#older');
  if (!link || opensElsewhere(event)) return;
  event.preventDefault();
  show(link).catch(() => location.assign(link.href));
});
let lastTop = scrollY;
addEventListener(
  'scroll',
  () => {
    const goesUp = scrollY < lastTop;
    lastTop = scrollY;
    const link = goesUp && !loading && !failed && $('#older');
    if (!link || link.getBoundingClientRect().bottom < -AHEAD) return;
    show(link).catch(() => {
      failed = true; // the link remains and can be clicked
    });
  },
  { passive: true },
);
