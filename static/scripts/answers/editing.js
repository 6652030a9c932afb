// Edits a question in place, and sets the focus on the page of another version.
// Fetches the page that the link leads to, and takes its form, which is sent as a page.
// If there is no response, the link is followed.
import { isSendKey, store } from '../portal/browser.js';
import { $, $$, opensElsewhere } from '../portal/dom.js';

function showAsEdited(ask, edited) {
  ask.classList.toggle('edited', edited);
  $('.question', ask).classList.toggle('hidden', edited); // still the heading of what follows
}
function closeEdit() {
  const form = $('.ask form.edit');
  if (!form) return;
  const ask = form.closest('.ask');
  form.remove();
  showAsEdited(ask, false);
  $('[data-edit]', ask).focus();
}
async function openEdit(link) {
  closeEdit();
  let page;
  try {
    const reply = await fetch(link.href, { redirect: 'manual' });
    if (!reply.ok) throw new Error(reply.status);
    page = new DOMParser().parseFromString(await reply.text(), 'text/html');
  } catch {
    location.assign(link.href);
    return;
  }
  const ask = link.closest('.ask');
  if ($('.edit', ask)) return;
  showAsEdited(ask, true);
  ask.append(document.adoptNode($('form.edit', page)));
  const words = $('.edit textarea', ask);
  words.focus();
  words.setSelectionRange(words.value.length, words.value.length);
}
document.addEventListener('click', event => {
  const link = event.target.closest('[data-edit], .ask [data-cancel-edit]');
  if (!link || opensElsewhere(event)) return;
  event.preventDefault();
  if (link.matches('[data-edit]')) openEdit(link);
  else closeEdit();
});
document.addEventListener('keydown', event => {
  const form = event.target.closest('.ask form.edit');
  if (!form || event.isComposing) return;
  if (event.key === 'Escape') {
    event.preventDefault();
    closeEdit();
  } else if (event.target.matches('textarea') && isSendKey(event)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

// ---- Versions: the page that comes keeps the focus: on the switch, or in the box where something is asked again. ------
document.addEventListener('submit', ({ target, submitter }) => {
  const turn = submitter?.closest('.turn');
  const at = turn ? $$('.switch button', turn).indexOf(submitter) : -1;
  if (at >= 0) store.set('switched', String(at));
  if (target.matches('.edit, [action$="/again"]')) store.set('asked', 'yes');
});
addEventListener('load', () => {
  const at = store.get('switched');
  store.set('switched', null);
  // Later than the fragment, which takes the focus away. At the first or the last version only the other button leads on.
  const focus = () => {
    const turn = document.getElementById(location.hash.slice(1))?.closest('.turn');
    const button = turn && $$('.switch button', turn)[Number(at)];
    const leads = button?.matches('[aria-disabled]')
      ? $('button:not([aria-disabled])', button.parentElement)
      : button;
    leads?.focus({ preventScroll: true });
  };
  if (at) setTimeout(focus, 50);
});
