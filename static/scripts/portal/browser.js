// Facts about this browser (preferences, touch screen) and access to its storage (drafts, cookies). The server
// writes preferences and URLs into `data-` attributes of the page; other modules read them here. Sends nothing
// itself, but the server reads the cookies `zone` and `side`.

export const likes = document.documentElement.dataset;
export const page = document.body.dataset;
export const touch = matchMedia('(pointer: coarse)');

// Whether a key press sends the text: Enter with Ctrl or ⌘ always does. Enter alone does, except on a touch screen or
// if the person prefers that it begins a new line.
export const isSendKey = event =>
  event.key === 'Enter' &&
  !event.isComposing &&
  (event.ctrlKey || event.metaKey || !(event.shiftKey || likes.enter === 'line' || touch.matches));

// Session storage; it lasts as long as the tab, and is separate for each person who signs in there.
const own = key => `${page.person}:${key}`;
export const store = {
  get(key) {
    try {
      return sessionStorage.getItem(own(key));
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      if (value) sessionStorage.setItem(own(key), value);
      else sessionStorage.removeItem(own(key));
    } catch {
      /* storage is disabled */
    }
  },
};

export function keepCookie(name, value) {
  const secure = location.protocol === 'https:' ? '; secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: browsers lack the Cookie Store API on plain HTTP
  document.cookie = `${name}=${value}; path=/; max-age=31536000; samesite=lax${secure}`;
}

// Tell the server the browser's time zone, in which the next page shows times.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (timeZone && !document.cookie.includes(`zone=${timeZone}`)) keepCookie('zone', timeZone);
