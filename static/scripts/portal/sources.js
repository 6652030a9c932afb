// Opens sources: chips are links, and the source panel opens them in place.
// Loads panel.js with the first of them.
// Sends and receives nothing itself.
import { page } from './browser.js';
import { $, opensElsewhere } from './dom.js';
import { shared } from './shared.js';

let opening;
function panel() {
  opening ??= import(page.panel).then(module => module.begin(shared));
  return opening;
}
const aside = $('#source');
if (aside) {
  if (!aside.hidden) panel();
  document.addEventListener('click', event => {
    const link = event.target.closest('a[data-source]');
    if (!link || opensElsewhere(event)) return;
    event.preventDefault();
    panel().then(open => open.show(link));
  });
  for (const name of ['pointerover', 'focusin']) {
    document.addEventListener(name, event => {
      const link = event.target.closest?.('a[data-source]');
      if (link?.matches('.prose .cite')) panel().then(open => open.card(link));
      else if (link) panel().then(open => open.prefetch(link));
    });
  }
}
