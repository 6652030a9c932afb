// The list of conversations: state dots (synchronised across tabs and devices), row menus, scroll position and
// width. A tab notifies the other tabs of a change with an empty message on a BroadcastChannel. Polls the site
// every 15 s for {running, fresh, unopened}. Fetches a page to get the menu of a row.
import { keepCookie, likes, page, store } from './browser.js';
import { $, $$, opensElsewhere, parsed, t } from './dom.js';
import { rove } from './roving.js';

const rowsOf = id => $$(`.row[data-conversation${id ? `="${id}"` : ''}]`);
export function mark(id, state) {
  for (const row of rowsOf(id)) {
    if ((row.dataset.state ?? '') === state && state) continue;
    row.dataset.state = state;
    for (const old of $$('.dot, .hidden', row)) old.remove();
    if (!state) continue;
    const dot = parsed('<span class="dot"></span><span class="hidden"></span>');
    $('.dot', dot).classList.toggle('live', state === 'running');
    $('.hidden', dot).textContent = state === 'running' ? t(', being answered') : t(', new answer');
    row.append(dot);
  }
}
// Shows how many shares of other people have not been opened yet.
function markReceived(number) {
  const row = $('[data-received]');
  if (!row) return;
  $('.badge', row)?.remove();
  if (!number) return;
  const badge = parsed('<span class="badge new"></span>').firstElementChild;
  badge.textContent = t('{n} new', number);
  row.append(badge);
}
const tabs = 'BroadcastChannel' in window ? new BroadcastChannel('conversations') : null;
export const tellTabs = () => tabs?.postMessage('');
async function lookAtDots() {
  if (document.hidden || !navigator.onLine) return;
  try {
    const reply = await fetch(page.dots, { redirect: 'manual' });
    if (!reply.ok) return;
    const { running, fresh, unopened } = await reply.json();
    markReceived(unopened);
    for (const { dataset } of rowsOf()) {
      const id = dataset.conversation;
      if (id === page.conversation) continue; // the open page of this conversation has newer information
      mark(id, running.includes(id) ? 'running' : fresh.includes(id) ? 'new' : '');
    }
  } catch {
    /* the next poll may succeed */
  }
}
if (page.dots) {
  setInterval(lookAtDots, 15000);
  document.addEventListener('visibilitychange', lookAtDots);
  if (tabs) tabs.onmessage = lookAtDots;
}
// Scroll the list to the current conversation: a new one may be above the rows at the stored scroll position.
// (scrollIntoView could also scroll the page.)
function showCurrent(list) {
  const row = $('[aria-current]', list)?.getBoundingClientRect();
  if (!row) return;
  const { top, bottom } = list.getBoundingClientRect();
  list.scrollTop += Math.min(row.top - top, 0) || Math.max(row.bottom - bottom, 0);
}
const list = $('.history');
if (list) {
  list.scrollTop = Number(store.get('list'));
  showCurrent(list);
  list.addEventListener('scroll', () => store.set('list', String(list.scrollTop)), { passive: true });
  rove(list);
}
const collapse = $('#collapse');
if (collapse) {
  collapse.hidden = false;
  collapse.addEventListener('click', () => {
    const closed = likes.side !== 'closed';
    if (closed) likes.side = 'closed';
    else delete likes.side;
    collapse.setAttribute('aria-pressed', String(closed));
    keepCookie('side', closed ? 'closed' : 'open');
    if ($('#side:popover-open')) $('#side').hidePopover();
    (closed ? $('.menu-button') : collapse).focus();
  });
}
// The menu is the list on a separate page, which the link opens if this module is not loaded.
document.addEventListener('click', async event => {
  const link = event.target.closest('[data-row-menu]');
  if (!link || opensElsewhere(event)) return;
  event.preventDefault();
  $('#row-menu')?.remove();
  try {
    const reply = await fetch(link.href, { redirect: 'manual' });
    if (!reply.ok) throw new Error(reply.status);
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const menu = document.adoptNode($('.manage .menu-list', page));
    menu.id = 'row-menu';
    menu.popover = 'auto';
    link.after(menu);
    menu.showPopover();
    const { left, right, bottom } = link.getBoundingClientRect();
    const { width, height } = menu.getBoundingClientRect();
    const fits = left + width < innerWidth;
    menu.style.left = `${fits ? left : Math.max(8, right - width)}px`;
    menu.style.top = `${Math.min(bottom, innerHeight - height - 8)}px`;
    link.setAttribute('aria-expanded', 'true');
    menu.addEventListener('toggle', ({ newState }) => {
      if (newState !== 'closed') return;
      const held = menu.contains(document.activeElement);
      link.removeAttribute('aria-expanded');
      menu.remove();
      if (held) link.focus();
    });
    $('.row', menu).focus();
  } catch {
    location.assign(link.href);
  }
});
