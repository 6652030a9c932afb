// The composer. Text stays in the box until the server has accepted it; a draft survives a reload. Posts the first
// question of a conversation as a form and receives JSON: {url} or {code, message}. On the page of a conversation,
// loads stream.js, which sends further questions, and posts them here if no socket can be opened.

import { tell } from '../portal/banners.js';
import { isSendKey, likes, page, store, touch } from '../portal/browser.js';
import { $, $$, t } from '../portal/dom.js';
import { shared } from '../portal/shared.js';
import { attaching } from './attaching.js';
import { composerState } from './state.js';

const form = $('#composer');
if (form) begin();

function begin() {
  const state = composerState(form);
  const { box, words, show, hinted } = state;
  const openStream = page.conversation && page.stream ? streamOpener(state) : null;
  const files = attaching(show);
  form.addEventListener('submit', event => {
    if (event.submitter?.formNoValidate) return; // this button sends the text to another page
    event.preventDefault();
    const text = box.value;
    if (!text.trim()) {
      box.focus();
      return;
    }
    if (state.count(text) > state.most) {
      show(words.tooLong.replace('{most}', state.most.toLocaleString()));
      return;
    }
    if (!navigator.onLine || state.isRunning() || state.isBusy()) {
      hinted();
      return;
    }
    if (files?.busy) {
      state.waitForFiles();
      files.arrived().then(all => all && form.requestSubmit());
    } else if (openStream) openStream().then(stream => stream.ask(text));
    else postQuestion(state, { text, key: state.keyOf(text) }, files);
  });
  box.addEventListener('keydown', event => {
    const edit = event.key === 'ArrowUp' && !box.value && likes.keys !== 'off' && $$('[data-edit]').at(-1);
    if (edit) {
      event.preventDefault();
      edit.click();
      return;
    }
    if (!isSendKey(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  addEventListener('online', () => {
    tell();
    hinted();
  });
  addEventListener('offline', () => {
    tell(t('You are offline. Your text is kept, and the answer continues on the server.'));
    hinted();
  });
  state.restoreDraft();
  focusFirst(box, words);
  showUnread();
  if (store.get('overtaken')) show(store.get('overtaken'));
  store.set('asked', null);
  store.set('overtaken', null);
}

// Returns a function that loads stream.js once. It is loaded right away, because it also receives questions that
// the person asks in this conversation on another device.
function streamOpener(state) {
  let loading;
  const open = () => {
    loading ??= import(page.stream).then(module =>
      module.begin({
        ...shared,
        state,
        conversation: page.conversation,
        run: page.run,
        speak: likes.speak,
        post: question => postQuestion(state, question),
      }),
    );
    return loading;
  };
  open();
  document.addEventListener('click', event => {
    const next = event.target.closest('.next button[data-ask]');
    if (!next) return;
    event.preventDefault();
    open().then(stream => stream.ask(next.value));
  });
  $('#stop').addEventListener('click', event => {
    event.preventDefault();
    open().then(stream => stream.stop());
  });
  return open;
}

// `question` has its text, its idempotency key, and the last position `seen` in its conversation.
async function postQuestion(state, { text, key, seen }, files) {
  state.busy(true);
  try {
    const body = new FormData(form);
    body.set('question', text);
    body.set('key', key);
    if (seen !== undefined) body.set('seen', seen);
    const answer = await fetch(form.action, {
      method: 'POST',
      body,
      headers: { Accept: 'application/json' },
      redirect: 'manual',
    });
    const reply = answer.headers.get('Content-Type')?.startsWith('application/json')
      ? await answer.json()
      : {};
    if (reply.url) {
      state.accepted(text);
      store.set('asked', 'yes');
      // The next page does not list files that could not be read, so store their names for showUnread().
      if (files?.unread.length)
        store.set(`unread:${new URL(reply.url, location.href).pathname}`, files.unread.join(', '));
      location.assign(reply.url);
      return;
    }
    if (answer.type === 'opaqueredirect') {
      tell(t('You were signed out. Sign in to continue; your text is kept.'), 'sign-in');
      return;
    }
    if (reply.message) state.refused(reply.message);
    else state.lost();
  } catch {
    state.lost();
  } finally {
    state.busy(false);
  }
}

// Focus the box on the page for a new question. Also focus it on the page that opens after a question was asked,
// edited or overtaken, or an answer was regenerated; but not on a touch screen, whose keyboard would cover the
// answer. The attribute `autofocus` is not used, because it would scroll past the beginning of the page.
function focusFirst(box, words) {
  const begins = 'focus' in words || (!touch.matches && (store.get('asked') || store.get('overtaken')));
  if (!begins) return;
  const focus = () => document.activeElement.matches('body, :target') && box.focus({ preventScroll: true });
  focus();
  // Repeated after the browser has scrolled to a fragment, because that takes the focus away.
  addEventListener('load', () => setTimeout(focus, 50));
}

function showUnread() {
  const unread = store.get(`unread:${location.pathname}`);
  if (!unread || !$('.turn .ask')) return;
  const note = document.createElement('p');
  note.className = 'unread';
  note.textContent = t('Asked without the files that could not be read: {n}', unread);
  $('.turn .ask').after(note);
}
