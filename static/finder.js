// The page of a document: moves between the hits of “Find in this document” without reloading the page.
// Enter in the field goes on to the next hit, Shift and Enter to the one before. A hit on another page is a link.
// Without this module each step is a link.

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
// A fragment would take away the focus that the next page gives to the field.
field?.form.setAttribute('action', location.pathname);
// After a search the first hit comes into view, and the field keeps the focus for Enter.
if (current()) {
  current().scrollIntoView({ block: 'center' });
  if (!matchMedia('(pointer: coarse)').matches) field.focus({ preventScroll: true });
}
