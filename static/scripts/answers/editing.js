// Edits a question in place, and restores the focus after switching to another version. Fetches the page of the
// “Edit” link and shows its form here; submitting the form loads a new page. Follows the link if the request fails.
// The text is kept until the question is asked or the form is cancelled, in case the session ends meanwhile.
import { page as here, isSendKey, store } from '../portal/browser.js';
import { $, $$, opensElsewhere } from '../portal/dom.js';

function showAsEdited(ask, edited) {
  ask.classList.toggle('edited', edited);
  // Hidden only visually: it remains the heading of the answer.
  $('.question', ask).classList.toggle('hidden', edited);
}
const draftOf = form => `edit:${form.action}`;
function restoreDraft(form) {
  const words = $('textarea', form);
  words.value = store.get(draftOf(form)) ?? words.value;
}
const forgetDraft = form => store.set(draftOf(form), null);
function closeEdit() {
  const form = $('.ask form.edit');
  if (!form) return;
  if ('branched' in form.dataset) location.reload(); // which stream.js left to this form
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
  restoreDraft($('.edit', ask));
  const words = $('.edit textarea', ask);
  words.focus();
  words.setSelectionRange(words.value.length, words.value.length);
}
document.addEventListener('click', event => {
  const link = event.target.closest('[data-edit], [data-cancel-edit]');
  if (!link || opensElsewhere(event)) return;
  if (link.matches('[data-cancel-edit]')) forgetDraft(link.closest('form'));
  if (!link.closest('.ask')) return;
  event.preventDefault();
  if (link.matches('[data-edit]')) openEdit(link);
  else closeEdit();
});
document.addEventListener('keydown', event => {
  const form = event.target.closest('.ask form.edit');
  if (!form || event.isComposing) return;
  if (event.key === 'Escape') {
    event.preventDefault();
    forgetDraft(form);
    closeEdit();
  } else if (event.target.matches('textarea') && isSendKey(event)) {
    event.preventDefault();
    form.requestSubmit();
  }
});
document.addEventListener('input', ({ target }) => {
  const form = target.closest('form.edit');
  if (form) store.set(draftOf(form), target.value);
});
// An edited question that was asked is no longer on the page, unless its other version is chosen again.
const asked = store.get('edited');
if (here.conversation && asked) {
  if (!$$('[data-edit]').some(({ href }) => href === asked)) store.set(`edit:${asked}`, null);
  store.set('edited', null);
}
$$('form.edit').forEach(restoreDraft);

// ---- Versions: the next page puts the focus back on the version switch, or into the question box. ------
document.addEventListener('submit', ({ target, submitter }) => {
  const turn = submitter?.closest('.turn');
  const at = turn ? $$('.switch button', turn).indexOf(submitter) : -1;
  if (at >= 0) store.set('switched', String(at));
  if (target.matches('.edit')) store.set('edited', target.action);
  if (target.matches('.edit, [action$="/again"]')) store.set('asked', 'yes');
});
addEventListener('load', () => {
  const at = store.get('switched');
  store.set('switched', null);
  // Called after the browser has scrolled to the fragment, which would take the focus away. The button for the same
  // direction is disabled at the first or last version; then focus the other one.
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
