// Opens sources in the source panel instead of following the links of citations. Loads panel.js when a link to a
// source is first hovered, focused or clicked, or if the page shows a source. Sends and receives nothing itself.
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
      if (!link) return;
      // Ignore touch, which does not hover, and focus that only returns to the link when a source closes.
      const pointed = name === 'focusin' ? link.matches(':focus-visible') : event.pointerType !== 'touch';
      if (pointed && link.matches('.prose .cite')) panel().then(open => open.card(link));
      else panel().then(open => open.prefetch(link));
    });
  }
}
