// Properties of this browser and what it stores: the person's preferences, a touch screen, drafts and cookies.
// The server writes preferences and addresses into the page's `data-` attributes; other modules read them here.
// Sends nothing itself; the server reads the cookies `zone` and `side`.

export const likes = document.documentElement.dataset;
export const page = document.body.dataset;
export const touch = matchMedia('(pointer: coarse)');

// Whether a key sends what is typed: Ctrl or ⌘ and Enter always, Enter alone if the person prefers it.
export const isSendKey = event =>
  event.key === 'Enter' &&
  !event.isComposing &&
  (event.ctrlKey || event.metaKey || !(event.shiftKey || likes.enter === 'line' || touch.matches));

// Storage that lasts as long as the tab is open.
export const store = {
  get(key) {
    try {
      return sessionStorage.getItem(key);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      if (value) sessionStorage.setItem(key, value);
      else sessionStorage.removeItem(key);
    } catch {
      /* storage is off */
    }
  },
};

export function keepCookie(name, value) {
  const secure = location.protocol === 'https:' ? '; secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: browsers lack the Cookie Store API on plain HTTP
  document.cookie = `${name}=${value}; path=/; max-age=31536000; samesite=lax${secure}`;
}

// The next page shows times in the time zone of this browser.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (timeZone && !document.cookie.includes(`zone=${timeZone}`)) keepCookie('zone', timeZone);
