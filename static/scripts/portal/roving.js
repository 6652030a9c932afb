// Roving tabindex for toolbars, sources and the list of conversations: one Tab stop each, with arrow keys inside.
// Call rove(bar) again after the buttons of a bar have changed. Sends and receives nothing.
import { $, $$ } from './dom.js';

const roving = new WeakSet();
const itemsOf = bar =>
  $$('button, a', bar).filter(
    item => !(item.hidden || item.matches('#row-menu *, .history [data-row-menu]')),
  );
function stopAt(bar, item) {
  for (const each of $$('button, a', bar)) if (!each.matches('#row-menu *')) each.tabIndex = -1;
  if (item) item.tabIndex = 0;
}
export function rove(bar) {
  stopAt(bar, $('[aria-current]', bar) ?? itemsOf(bar)[0]);
  if (roving.has(bar)) return;
  roving.add(bar);
  bar.addEventListener('focusin', ({ target }) => {
    if (target.tabIndex < 0 && target.matches('button, a')) stopAt(bar, target);
  });
  bar.addEventListener('keydown', event => {
    const { activeElement: now } = document;
    if (now.matches('#row-menu *')) return;
    const all = itemsOf(bar);
    const at = all.indexOf(now.matches('[data-row-menu]') ? $('.row', now.closest('li')) : now);
    const step = getComputedStyle(bar).direction === 'rtl' ? -1 : 1;
    const down = bar.matches('[role=tablist]') ? {} : { ArrowDown: at + 1, ArrowUp: at - 1 };
    // The left and right keys wrap around within one row of a toolbar.
    const row = all.filter(item => item.closest('.tools') === now.closest('.tools'));
    const beside = by => all.indexOf(row[(row.indexOf(now) + by + row.length) % row.length]);
    const along = bar.matches('.history') ? {} : { ArrowRight: beside(step), ArrowLeft: beside(-step) };
    const to = { ...along, Home: 0, End: all.length - 1, ...down }[event.key];
    const inRow = bar.matches('.history') && ['ArrowRight', 'ArrowLeft'].includes(event.key);
    const next = inRow
      ? $(now === all[at] ? '[data-row-menu]' : '.row', now.closest('li') ?? now)
      : all[(to + all.length) % all.length];
    if (at < 0 || !next) return;
    event.preventDefault();
    stopAt(bar, next);
    next.focus();
  });
}
