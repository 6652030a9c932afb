// The state of the composer: draft, hint, problem, Send or Stop, and a question's idempotency key. stream.js also
// gets this object, and reports the outcome of a question to it. If there is no socket, posts a form to stop an
// answer.
import { likes, page, store, touch } from '../portal/browser.js';
import { $, parsed } from '../portal/dom.js';

export function composerState(form) {
  const drafts = `draft:${form.action}`; // one draft for each URL to which questions are posted
  const keys = `key:${location.pathname}`;
  const box = $('#question');
  const hint = $('#hint');
  const send = $('#send');
  const stop = $('#stop');
  const problem = $('#problem');
  const words = form.dataset;
  const most = Number(words.most);
  const count = text => [...text].length; // code points, as the server counts
  const rest = touch.matches ? words.touch : words.hint;
  let running = Boolean(page.run);
  // Keep the description of the box constant: a screen reader would interrupt an answer to read each change.
  $('#keys').textContent = rest;

  const show = text => {
    problem.replaceChildren();
    if (!text) return;
    const note = parsed('<div class="note danger" role="alert"><div><p></p></div></div>');
    $('p', note).textContent = text;
    problem.append(note);
  };
  const hintNow = () => {
    const length = count(box.value);
    if (!navigator.onLine) return words.offline;
    if (length > most * 0.9)
      return words.long.replace('{n}', length.toLocaleString()).replace('{most}', most.toLocaleString());
    if (running) return words.answering;
    const edits = !length && likes.keys !== 'off' && $('[data-edit]');
    return edits ? `${rest}, ${words.edits}` : rest;
  };
  const hinted = () => {
    hint.textContent = hintNow();
    // Narrow windows do not show these hints, so that the box stays in its place while an answer is written.
    hint.toggleAttribute(
      'data-rest',
      hint.textContent.startsWith(rest) || hint.textContent === words.answering,
    );
    send.setAttribute('aria-disabled', String(!navigator.onLine));
  };
  box.addEventListener('input', () => {
    store.set(drafts, box.value);
    show();
    hinted();
  });
  return {
    box,
    words,
    most,
    count,
    show,
    hinted,
    isRunning: () => running,
    isBusy: () => send.hasAttribute('aria-busy'),
    waitForFiles() {
      hint.textContent = words.arriving;
      hint.removeAttribute('data-rest');
    },
    restoreDraft() {
      box.value ||= store.get(drafts) ?? '';
      hinted();
    },
    // The idempotency key of a question. A repeated question keeps its key, so that the server does not ask it
    // twice.
    keyOf(text) {
      const [known, kept] = JSON.parse(store.get(keys) ?? '[]');
      if (kept === text) return known;
      const key = randomKey();
      store.set(keys, JSON.stringify([key, text]));
      return key;
    },
    accepted(text) {
      store.set(keys, null);
      if (box.value === text) {
        box.value = '';
        store.set(drafts, null);
      }
      show();
      hinted();
    },
    refused(text, unsure) {
      if (!unsure) store.set(keys, null);
      show(`${text} ${words.kept}`);
    },
    // Another tab's question was accepted first: reload the page to show it, with a message about this question.
    overtaken(question, text) {
      store.set(keys, null);
      store.set(drafts, box.value || question);
      store.set('overtaken', `${text} ${words.kept}`);
      location.reload();
    },
    running(value) {
      const goes = value ? send : stop;
      const comes = value ? stop : send;
      const held = goes === document.activeElement;
      running = value;
      goes.hidden = true;
      comes.hidden = false;
      // The focused button disappears. Focus the box; on a touch screen, where this would open the keyboard, focus
      // the other button instead.
      if (held) (touch.matches ? comes : box).focus({ preventScroll: true });
      if (!value) show();
      hinted();
    },
    busy(value) {
      send.toggleAttribute('aria-busy', value);
    },
    lost() {
      show(words.lost);
    },
    left(text) {
      $('#left').textContent = text;
    },
    // Stop without a socket. If the request fails, the stop is sent when a socket is open again.
    stop() {
      const body = new FormData(form);
      fetch(stop.formAction, { method: 'POST', body, redirect: 'manual' }).catch(() => {});
    },
  };
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
}
