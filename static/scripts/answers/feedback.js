// Sends feedback on an answer without leaving the page. Posts the form and receives JSON: {end}, the HTML of the
// part below the answer. Shows a message if the request fails.
import { tell } from '../portal/banners.js';
import { $, parsed, t } from '../portal/dom.js';
import { toast } from '../portal/overlays.js';
import { enliven } from './answer_tools.js';

document.addEventListener('submit', async event => {
  const form = event.target.closest('form[data-feedback]');
  if (!form) return;
  event.preventDefault();
  const { submitter } = event;
  const answer = form.closest('.answer');
  const body = new FormData(form, submitter);
  $('.feedback-problem', answer)?.remove();
  let reply;
  try {
    const headers = { Accept: 'application/json' };
    reply = await fetch(form.action, { method: 'POST', body, headers, redirect: 'manual' });
  } catch {
    /* the failure is reported below */
  }
  if (reply?.type === 'opaqueredirect') {
    tell(t('You were signed out. Sign in to continue.'), 'sign-in');
    return;
  }
  if (!reply?.ok) {
    const problem = parsed('<p class="feedback-problem unproved" role="alert"></p>');
    $('p', problem).textContent = t('Your feedback was not saved. Try again.');
    form.closest('.on').after(problem);
    return;
  }
  $('.end', answer).replaceChildren(parsed((await reply.json()).end));
  enliven(answer);
  const { rating } = submitter.dataset;
  const opened = rating && $('.feedback[open]', answer);
  if (!rating) toast(t('Feedback saved.'));
  else if (!opened) toast(t('Feedback removed.'));
  opened?.scrollIntoView({ block: 'nearest' }); // it may be hidden behind the question box
  const next =
    opened && rating === 'bad'
      ? $('input:not([type=hidden])', opened)
      : rating && $(`[data-rating=${rating}]`, answer);
  (next || $('.feedback summary', answer))?.focus();
});
