// The source panel: fetched when opened, cached for 30 seconds, part of the history, so that Back closes it.
// Requests GET source/<answer>.<citation>/ and puts the HTML it receives into #source.
// begin() returns show(link) and prefetch(link).

const FRESH = 30000;
const COVERS = matchMedia('(max-width: 40rem)');

export function begin({ $, $$, parsed, rove, enliven }) {
  const aside = $('#source');
  const main = $('main');
  const base = location.pathname;
  const known = new Map();
  let opener = null;
  let opened = 0;

  const queryOf = url => new URL(url, location.href).searchParams;
  function fetchSource(query) {
    const key = query.toString();
    const kept = known.get(key);
    if (kept && kept.until > Date.now()) return kept.promise;
    const rest = new URLSearchParams(query);
    const place = rest.get('source');
    rest.delete('source');
    const promise = fetch(`${base}source/${encodeURIComponent(place)}/?${rest}`, { redirect: 'error' }).then(
      answer => {
        if (!answer.ok) throw new Error(answer.status);
        return answer.text();
      },
    );
    promise.catch(() => known.delete(key));
    known.set(key, { promise, until: Date.now() + FRESH });
    return promise;
  }

  // Links of the server become tabs: one Tab stop, arrow keys inside.
  function setUpTabs() {
    const bar = $('.tabs', aside);
    const view = $('#view', aside);
    if (!bar) return;
    bar.setAttribute('role', 'tablist');
    const nav = bar.closest('nav');
    bar.setAttribute('aria-label', nav.getAttribute('aria-label'));
    nav.removeAttribute('aria-label');
    nav.setAttribute('role', 'presentation');
    for (const tab of $$('a', bar)) {
      const current = tab.hasAttribute('aria-current');
      tab.setAttribute('role', 'tab');
      tab.removeAttribute('aria-current');
      tab.setAttribute('aria-selected', String(current));
      if (current) tab.setAttribute('aria-controls', 'view');
    }
    view.setAttribute('role', 'tabpanel');
    view.tabIndex = 0;
    rove(bar);
    for (const tab of $$('a', bar)) tab.tabIndex = tab.getAttribute('aria-selected') === 'true' ? 0 : -1;
  }
  function markCitations(place) {
    for (const link of $$('[data-source][aria-current]', main)) link.removeAttribute('aria-current');
    if (place)
      for (const link of $$(`[data-source="${CSS.escape(place)}"]:not([data-view])`, main))
        link.setAttribute('aria-current', 'true');
  }
  function setUpPanel(place) {
    setUpTabs();
    enliven(aside);
    markCitations(place);
    aside.hidden = false;
    main.inert = COVERS.matches;
    // Cited words far down a long section; under a page's image the image comes first.
    const word = $('mark', aside);
    const view = word && !$('img', aside) && word.getBoundingClientRect();
    if (view && view.bottom > innerHeight) aside.scrollTop += view.top - innerHeight / 3;
  }
  function showSkeleton() {
    const lines = parsed(
      '<section class="view" id="view"><div class="skeleton"></div><div class="skeleton"></div><div class="skeleton short"></div></section>',
    );
    const view = $('#view', aside);
    if (view) view.replaceWith(lines);
    else
      aside.replaceChildren(
        parsed(
          '<div class="source-head"><div class="source-nav"><p class="meta"></p></div><h2 id="source-title" tabindex="-1">Source</h2></div>',
        ),
        lines,
      );
    aside.hidden = false;
  }
  function showFailure(query) {
    const note = parsed(
      '<section class="view" id="view"><div class="note danger" role="alert"><div><p>The source could not be loaded.</p><div class="actions"><button class="button" type="button">Try again</button></div></div></div></section>',
    );
    $('button', note).addEventListener('click', () => openSource(query, true));
    showSkeleton();
    $('#view', aside).replaceWith(note);
  }
  async function openSource(query, focus) {
    const turn = ++opened;
    const slow = setTimeout(showSkeleton, 200);
    try {
      const html = await fetchSource(query);
      if (turn !== opened) return;
      aside.replaceChildren(parsed(html));
      setUpPanel(query.get('source'));
      if (focus === 'tab') $('[role=tab][aria-selected=true]', aside)?.focus();
      else if (focus) $('#source-title').focus();
    } catch {
      if (turn === opened) showFailure(query);
    } finally {
      clearTimeout(slow);
    }
  }
  function closePanel(back) {
    opened++;
    aside.hidden = true;
    aside.replaceChildren();
    main.inert = false;
    markCitations();
    if (back) {
      if (history.state?.panel) history.back();
      else history.replaceState(null, '', base);
    }
    (opener?.isConnected ? opener : $('.cite[data-source], .source-row', main))?.focus();
  }

  aside.addEventListener('click', event => {
    if (event.target.closest('[data-close-source]')) {
      event.preventDefault();
      closePanel(true);
    }
  });
  document.addEventListener('keydown', event => {
    if (
      event.key !== 'Escape' ||
      aside.hidden ||
      event.defaultPrevented ||
      $('dialog[open], .side:popover-open')
    )
      return;
    event.preventDefault();
    closePanel(true);
  });
  aside.addEventListener('keydown', event => {
    const step = { ArrowLeft: 'previous', ArrowRight: 'next' }[event.key];
    if (step && event.target.closest('.source-nav')) $(`[data-turn=${step}]`, aside)?.click();
  });
  addEventListener('popstate', () => {
    const query = queryOf(location.href);
    if (query.has('source')) openSource(query, true);
    else if (!aside.hidden) closePanel(false);
  });
  COVERS.addEventListener('change', () => {
    main.inert = !aside.hidden && COVERS.matches;
  });
  if (!aside.hidden) {
    setUpPanel(queryOf(location.href).get('source'));
    // A link from elsewhere: the answer whose source is open comes into view.
    if (!scrollY && !location.hash) $('.cite[aria-current]', main)?.scrollIntoView({ block: 'center' });
  }

  return {
    show(link) {
      const query = queryOf(link.href);
      const inside = aside.contains(link);
      if (!inside) opener = link;
      const url = `${base}?${query}`;
      if (history.state?.panel) history.replaceState({ panel: true }, '', url);
      else if (aside.hidden) history.pushState({ panel: true }, '', url);
      else history.replaceState(null, '', url);
      openSource(query, inside && link.closest('.tabs') ? 'tab' : true);
    },
    prefetch(link) {
      fetchSource(queryOf(link.href)).catch(() => {});
    },
  };
}
