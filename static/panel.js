// The source panel. Its HTML is cached for at most 30 seconds; the panel has a history entry, so that Back closes
// it. Requests GET source/<answer>.<citation>/ and puts the received HTML into #source. begin() returns show(link),
// prefetch(link) and card(link), which shows a card beside a citation.

// On a shared page a source is cached for only a second: the share, or the reader's rights, may be revoked at any time.
const FRESH = 'shared' in document.body.dataset ? 1000 : 30000;
const SIZES = [0.5, 0.75, 1, 1.5, 2, 3]; // sizes of a page's image, relative to the width of the panel
const COVERS = matchMedia('(max-width: 40rem)');

export function begin({ $, $$, t, parsed, rove, enliven }) {
  const aside = $('#source');
  const main = $('main');
  const base = location.pathname;
  const known = new Map();
  let opener = null;
  let opened = 0;
  let zoom = 1;

  // An error message with a “try again” button, unless trying again is useless.
  function failureNote(text, retry) {
    const note = parsed(
      `<div class="note danger" role="alert"><div><p></p><div class="actions">
      <button class="button" type="button"></button></div></div></div>`,
    );
    $('p', note).textContent = text;
    const button = $('button', note);
    button.textContent = t('Try again');
    if (retry) button.addEventListener('click', retry);
    else button.parentElement.remove();
    return note;
  }
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

  // Turn the links that the server sent into tabs: one Tab stop, with arrow keys between them.
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
  // Several citations may refer to the same source; mark only the opened one as current.
  function markCitations(query) {
    for (const link of $$('[data-source][aria-current]', main)) link.removeAttribute('aria-current');
    if (!query) return;
    const place = CSS.escape(query.get('source'));
    for (const link of $$(`[data-source="${place}"]:not([data-view])`, main)) {
      const own = queryOf(link.href).get('s');
      if (!own || !query.has('s') || own === query.get('s')) link.setAttribute('aria-current', 'true');
    }
  }
  const markedWords = root =>
    $$('mark', root)
      .map(mark => mark.textContent)
      .join(' … ')
      .slice(0, 320);
  const verdictOf = root => $('.facts :is(.checked, .unproved, .compare)', root);
  function setUpPanel(query) {
    setUpTabs();
    enliven(aside);
    markCitations(query);
    showPanel();
    aside.scrollTop = 0; // not the scroll position of the previous source or view
    setUpStage();
    // Describe the title with the marked words, because few screen readers announce marks within the text.
    const said = [markedWords(aside), verdictOf(aside)?.textContent.trim().replace(/\s+/g, ' ')]
      .filter(Boolean)
      .join('. ');
    if (said) $('#source-title').setAttribute('aria-description', said);
    // Scroll to the cited words in a long section, unless there is an image of the page, which comes first.
    const word = $('mark', aside);
    const view = word && !$('img', aside) && word.getBoundingClientRect();
    if (view && view.bottom > innerHeight) aside.scrollTop += view.top - innerHeight / 3;
  }
  // Set up the image of a page: restore its size, and scroll to the marked words.
  function setUpStage() {
    const stage = $('.stage', aside);
    if (!stage) return;
    const bar = $('.stage-bar', aside);
    bar.hidden = false;
    bar.addEventListener('click', event => {
      const button = event.target.closest('[data-zoom]');
      if (button) zoomTo(button.dataset.zoom);
    });
    zoomTo('');
    followImage($('.page-image', stage));
  }
  // Show that the image is loading; if it fails, offer to try again.
  function followImage(figure) {
    const image = $('img', figure);
    const status = $('.page-state', aside);
    const loaded = () => {
      figure.removeAttribute('aria-busy');
      status.textContent = '';
    };
    const failed = () => {
      loaded();
      figure.classList.add('failed');
      const retry = () => {
        $('.note', figure).remove();
        figure.classList.remove('failed');
        const { src } = image;
        image.src = '';
        image.src = src;
        load();
        figure.closest('.stage').focus({ preventScroll: true });
      };
      figure.append(failureNote(t('The image of the page could not be loaded.'), retry));
    };
    function load() {
      figure.setAttribute('aria-busy', 'true');
      status.textContent = t('Loading the page…');
      image.addEventListener('load', loaded, { once: true });
      image.addEventListener('error', failed, { once: true });
    }
    if (!image.complete) load();
    else if (!image.naturalWidth) failed();
  }
  function zoomTo(way) {
    const place = SIZES.indexOf(zoom);
    if (way === 'fit') zoom = 1;
    if (way === 'in') zoom = SIZES[Math.min(place + 1, SIZES.length - 1)];
    if (way === 'out') zoom = SIZES[Math.max(place - 1, 0)];
    $('.page-image', aside).style.inlineSize = `${zoom * 100}%`;
    $('#zoom', aside).textContent = `${zoom * 100} %`;
    showMarks();
  }
  function showMarks() {
    const stage = $('.stage', aside);
    const box = $('.boxes rect', stage)?.getBoundingClientRect();
    if (!box) return;
    const view = stage.getBoundingClientRect();
    stage.scrollLeft += box.left + box.width / 2 - view.left - view.width / 2;
    stage.scrollTop += box.top - view.top - view.height / 3;
  }
  function showPanel() {
    aside.hidden = false;
    main.inert = COVERS.matches;
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
          `<div class="source-head"><div class="source-nav"><p class="meta"></p>
          <button class="button quiet" type="button" data-close-source>${t('Close')}</button></div>
          <h2 id="source-title" tabindex="-1">${t('Source')}</h2></div>`,
        ),
        lines,
      );
    showPanel();
  }
  function showFailure(query, focus, isGone) {
    showSkeleton();
    $('#view', aside).replaceChildren(
      isGone
        ? failureNote(t('You can no longer open this source.'))
        : failureNote(t('The source could not be loaded.'), () => openSource(query, true)),
    );
    if (focus) $('#source-title').focus();
  }
  async function openSource(query, focus) {
    const turn = ++opened;
    const slow = setTimeout(showSkeleton, 200);
    try {
      const html = await fetchSource(query);
      if (turn !== opened) return;
      aside.replaceChildren(parsed(html));
      setUpPanel(query);
      if (focus === 'tab') $('[role=tab][aria-selected=true]', aside)?.focus();
      else if (focus) $('#source-title').focus();
    } catch ({ message }) {
      if (turn === opened) showFailure(query, focus, message === '404');
    } finally {
      clearTimeout(slow);
    }
  }
  function closePanel() {
    opened++;
    main.inert = false;
    const place = opener?.isConnected ? opener : $('.cite[data-source], .source-row', main);
    place?.focus();
    aside.hidden = true;
    aside.replaceChildren();
    markCitations();
  }
  // If the panel has a history entry, only go back: the listener of `popstate` then closes the panel, because screen
  // readers miss a focus change while Chromium goes back.
  function leavePanel() {
    if (history.state?.panel) history.back();
    else {
      history.replaceState(null, '', base);
      closePanel();
    }
  }

  aside.addEventListener('click', event => {
    if (event.target.closest('[data-close-source]')) {
      event.preventDefault();
      leavePanel();
    }
  });
  document.addEventListener('keydown', event => {
    if (
      event.key !== 'Escape' ||
      (carded && card.isConnected) ||
      aside.hidden ||
      event.defaultPrevented ||
      $('dialog[open], .side:popover-open')
    )
      return;
    event.preventDefault();
    leavePanel();
  });
  aside.addEventListener('keydown', event => {
    const step = { ArrowLeft: 'previous', ArrowRight: 'next' }[event.key];
    if (step && event.target.closest('.source-nav')) $(`[data-turn=${step}]`, aside)?.click();
    if (!$('.stage', aside) || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { '+': 'in', '=': 'in', '-': 'out', 0: 'fit' }[event.key];
    if (way) zoomTo(way);
    const turn = { PageUp: 'first-child', PageDown: 'last-child' }[event.key];
    const link = turn && $(`.page-turn a:${turn}`, aside);
    if (link) link.click();
    if (way || link) event.preventDefault();
  });
  addEventListener('popstate', () => {
    const query = queryOf(location.href);
    if (query.has('source')) openSource(query, true);
    else if (!aside.hidden) closePanel();
  });
  COVERS.addEventListener('change', () => {
    main.inert = !aside.hidden && COVERS.matches;
  });
  if (!aside.hidden) {
    setUpPanel(queryOf(location.href));
    // If the page was opened by a link to this source and is not scrolled yet, scroll the citation into view.
    if (!scrollY && ['', '#marked'].includes(location.hash))
      $('.cite[aria-current]', main)?.scrollIntoView({ block: 'center' });
  }

  // ---- The card of a citation: previews the source while the citation is hovered or focused.
  // --------------------------------
  const card = document.createElement('div');
  card.className = 'cite-card';
  card.id = 'cite-card';
  card.setAttribute('role', 'tooltip');
  let carded = null;
  async function showCard(link) {
    hideCard();
    carded = link;
    // The card replaces the tooltip, and a screen reader would read the title after the same name in `aria-label`.
    link.removeAttribute('title');
    let panel;
    try {
      panel = parsed(await fetchSource(queryOf(link.href)));
    } catch {
      return;
    }
    if (carded !== link || !link.isConnected) return;
    const title = document.createElement('strong');
    title.textContent = $('#source-title', panel).textContent;
    const place = document.createElement('span');
    place.className = 'meta';
    place.textContent = $('.source-head > .meta', panel)?.textContent ?? '';
    const words = document.createElement('q');
    words.textContent = markedWords(panel);
    // The link's accessible name contains the title and the place.
    for (const known of [title, place]) known.setAttribute('aria-hidden', 'true');
    const said = [words.textContent && words, verdictOf(panel)?.cloneNode(true)].filter(Boolean);
    card.replaceChildren(title, place, ...said);
    main.append(card);
    link.setAttribute('aria-describedby', card.id);
    const chip = link.getBoundingClientRect();
    const area = main.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = card;
    const left = Math.min(Math.max(chip.left - 16, area.left + 8), area.right - width - 8);
    const top = chip.top > height + 16 ? chip.top - height - 8 : chip.bottom + 8;
    card.style.insetInlineStart = 'auto';
    card.style.left = `${left}px`;
    card.style.top = `${top}px`;
  }
  function hideCard() {
    carded?.removeAttribute('aria-describedby');
    carded = null;
    card.remove();
  }
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape' && card.isConnected) {
      event.preventDefault();
      hideCard();
    }
  });
  document.addEventListener('pointerout', event => {
    if (carded && !event.relatedTarget?.closest?.('.cite, .cite-card')) hideCard();
  });
  document.addEventListener('focusout', hideCard);
  addEventListener('scroll', () => card.isConnected && hideCard(), { passive: true });

  return {
    card(link) {
      if (link !== carded) showCard(link);
    },
    show(link) {
      hideCard();
      const query = queryOf(link.href);
      const inside = aside.contains(link);
      if (!inside) opener = link;
      const url = `${base}?${query}`;
      if (history.state?.panel) history.replaceState({ panel: true }, '', url);
      else if (aside.hidden) {
        // When the browser goes back, a fragment in the URL would move focus and scroll position away from the
        // citation.
        if (location.hash) history.replaceState(history.state, '', location.pathname + location.search);
        history.pushState({ panel: true }, '', url);
      } else history.replaceState(null, '', url);
      openSource(query, inside && link.closest('.tabs') ? 'tab' : true);
    },
    prefetch(link) {
      fetchSource(queryOf(link.href)).catch(() => {});
    },
  };
}
