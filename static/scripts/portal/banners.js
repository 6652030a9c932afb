// Banners above the page: one about the browser (offline, signed out), and the site's, which may change at any
// time. Measures their height, so that the sticky bar stays below them.
// Asks the site for its banner every 15 s: {kind, text}.
import { $, $$ } from './dom.js';

const banner = $('#banner');
const notice = $('#site-banner');

// Show a banner, or hide it if there is no text; `link` is the id of the link that it has, if any.
export function tell(text, link) {
  if (!banner) return;
  banner.hidden = !text;
  $('span', banner).textContent = text ?? '';
  for (const each of $$('a', banner)) each.hidden = each.id !== link;
  $('#sign-in', banner).href = `/accounts/sign-in/?next=${encodeURIComponent(location.pathname)}`;
}
const above = () => {
  const shown = [banner, notice].find(each => each?.offsetHeight);
  document.documentElement.style.setProperty('--banner', `${shown?.offsetHeight ?? 0}px`);
};
async function lookAtBanner() {
  if (document.hidden || !navigator.onLine) return;
  try {
    const reply = await fetch(`${notice.dataset.address}?language=${document.documentElement.lang}`);
    if (!reply.ok) return;
    const { kind, text } = await reply.json();
    notice.classList.toggle('info', kind === 'info');
    if ($('bdi', notice).textContent !== text) $('bdi', notice).textContent = text;
    notice.hidden = !text;
  } catch {
    /* the next request may succeed */
  }
}
if (notice) {
  new ResizeObserver(above).observe(notice);
  new ResizeObserver(above).observe(banner);
  setInterval(lookAtBanner, 15000);
  document.addEventListener('visibilitychange', lookAtBanner);
}
