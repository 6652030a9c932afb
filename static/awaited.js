// The start page while the first documents are being read: fetches the page every 3 seconds and shows what is new.
// The question box keeps its text. Stops once something can be searched.

const EVERY = 3000;
const PLACES = ['.welcome', '[data-searchable]'];

async function showAwaited() {
  try {
    const reply = document.hidden ? null : await fetch(location.href);
    if (reply?.redirected) {
      location.reload();
      return;
    } // signed out meanwhile
    if (reply?.ok) {
      const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
      for (const place of PLACES) {
        const [former, now] = [document.querySelector(place), fresh.querySelector(place)];
        if (former?.contains(document.activeElement)) continue;
        if (former && now && former.textContent !== now.textContent)
          former.replaceChildren(...document.adoptNode(now).childNodes);
      }
      if (!document.querySelector('[data-awaited]')) return;
    }
  } catch {
    /* offline: the next round asks again */
  }
  setTimeout(showAwaited, EVERY);
}
setTimeout(showAwaited, EVERY);
