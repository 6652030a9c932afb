// The page of a document: moves between the hits of “Find in this document” without reloading the page. Enter in
// the field moves to the next hit, Shift and Enter to the previous one. A hit on another page is opened as a link.
// Without this module, every step is a link.

const finder = document.querySelector('[data-finder]');
const steps = [...(finder?.querySelectorAll('[data-hit-step]') ?? [])];
const field = finder?.querySelector('input');
const searched = field?.value;
const current = () => document.querySelector('mark[aria-current]');
const numberOf = mark => Number(mark.id.replace('hit-', ''));
const hitOf = link => Number(new URL(link.href).searchParams.get('hit'));

function go(link) {
  const next = document.getElementById(`hit-${hitOf(link)}`);
  if (!next) {
    location.assign(link.href);
    return;
  }
  const status = finder.querySelector('[data-hit-words]');
  const { total } = status.dataset;
  current()?.removeAttribute('aria-current');
  next.setAttribute('aria-current', 'true');
  next.scrollIntoView({ block: 'center' });
  history.replaceState(history.state, '', link.href);
  const number = numberOf(next);
  status.textContent = status.dataset.hitWords.replace(
    '{n}',
    number.toLocaleString(document.documentElement.lang),
  );
  for (const step of steps) {
    const to = ((number - 1 + Number(step.dataset.hitStep) + Number(total)) % total) + 1;
    const url = new URL(step.href);
    url.searchParams.set('hit', to);
    url.hash = `hit-${to}`;
    step.href = url;
  }
}

for (const step of steps)
  step.addEventListener('click', event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(step);
  });
field?.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.isComposing || !steps.length || field.value !== searched) return;
  event.preventDefault();
  go(steps[event.shiftKey ? 0 : 1]);
});
// With a fragment in the URL, the field on the next page would lose its focus.
field?.form.setAttribute('action', location.pathname);
// After a search, scroll to the first hit, but keep the focus in the field so that Enter moves on.
if (current()) {
  current().scrollIntoView({ block: 'center' });
  if (!matchMedia('(pointer: coarse)').matches) field.focus({ preventScroll: true });
}
