// The entry module: composer, keyboard, dialogs, toasts, copying. Every page and every form works without it.
// Loads panel.js when a source is opened, palette.js at Ctrl or ⌘ K, attach.js with the first file, and stream.js on
// the page of a conversation.
// Posts the first question of a conversation as a form and receives JSON: {url} or {code, message}.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// The words of this module in the page's language; in English they are the keys.
const words = JSON.parse($('#words')?.textContent ?? '{}');
export const t = (text, n) => (words[text] ?? text).replace('{n}', () => n);

const { dataset: likes } = document.documentElement;
const {
  conversation,
  run,
  panel: panelModule,
  stream: streamModule,
  reveal: revealModule,
  palette: paletteModule,
  attach: attachModule,
  places: paletteAddress,
  dots: dotsAddress,
} = document.body.dataset;
// Times on the next page are those of this browser.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
if (timeZone && !document.cookie.includes(`zone=${timeZone}`)) {
  const secure = location.protocol === 'https:' ? '; secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: browsers lack the Cookie Store API on plain HTTP
  document.cookie = `zone=${timeZone}; path=/; max-age=31536000; samesite=lax${secure}`;
}
const touch = matchMedia('(pointer: coarse)');
// Whether a key sends what is typed: Ctrl or ⌘ and Enter always, Enter alone as one likes it.
const sends = event =>
  event.key === 'Enter' &&
  !event.isComposing &&
  (event.ctrlKey || event.metaKey || !(event.shiftKey || likes.enter === 'line' || touch.matches));
const form = $('#composer');
const box = $('#question');
const log = $('#announcer');
const banner = $('#banner');

const store = {
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

// ---- HTML of our own templates, parsed once. --------------------------------------------------------------------
const policy = window.trustedTypes?.createPolicy('portal', { createHTML: html => html });
function parsed(html) {
  const template = document.createElement('template');
  template.innerHTML = policy ? policy.createHTML(html) : html;
  const token = $('[name=csrfmiddlewaretoken]');
  for (const post of $$('form[method=post]', template.content)) {
    if (token && !$('[name=csrfmiddlewaretoken]', post)) post.append(token.cloneNode());
  }
  return template.content;
}

// ---- What a screen reader hears: whole blocks, never fragments, at most one every 1.5 s. -------------------------
const spoken = [];
let lastSpoken = 0;
let speaking;
function say(text) {
  if (!log || likes.speak === 'off') return;
  spoken.push(text);
  speak();
}
function speak() {
  clearTimeout(speaking);
  const wait = lastSpoken + 1500 - Date.now();
  if (wait > 0) {
    speaking = setTimeout(speak, wait);
    return;
  }
  if (!spoken.length) return;
  const line = document.createElement('p');
  line.textContent = spoken.splice(0).join(' ');
  log.append(line);
  lastSpoken = Date.now();
  setTimeout(() => line.remove(), 20000);
}

// ---- Banner, toast, dialogs, menu. ------------------------------------------------------------------------------
function tell(text, signIn = false) {
  if (!banner) return;
  const link = $('a', banner);
  banner.hidden = !text;
  $('span', banner).textContent = text ?? '';
  link.hidden = !signIn;
  link.href = `/accounts/sign-in/?next=${encodeURIComponent(location.pathname)}`;
}
// The site's own banner, which changes on pages that are open. The bar below it sticks under all of its lines.
const notice = $('#site-banner');
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
    /* asked again later */
  }
}
if (notice) {
  new ResizeObserver(above).observe(notice);
  new ResizeObserver(above).observe(banner);
  setInterval(lookAtBanner, 15000);
  document.addEventListener('visibilitychange', lookAtBanner);
}
function keepFor(toast, milliseconds) {
  let timer;
  const start = () => {
    timer = setTimeout(() => toast.remove(), milliseconds);
  };
  const pause = () => clearTimeout(timer);
  for (const [name, act] of [
    ['pointerenter', pause],
    ['focusin', pause],
    ['pointerleave', start],
    ['focusout', start],
  ])
    toast.addEventListener(name, act);
  const close = $('[data-close-toast]', toast);
  if (close) {
    close.hidden = false;
    close.addEventListener('click', () => toast.remove());
  }
  start();
}
function toast(text) {
  $('#toast')?.remove();
  const note = document.createElement('div');
  note.className = 'toast';
  note.id = 'toast';
  note.setAttribute('role', 'status');
  document.body.append(note);
  const words = document.createElement('span');
  words.textContent = text;
  note.append(words);
  keepFor(note, 8000);
}
if ($('#toast')) keepFor($('#toast'), $('#toast form') ? 30000 : 8000);
document.addEventListener('click', event => {
  const opener = event.target.closest('[data-dialog]');
  const dialog = opener && $(`#${opener.dataset.dialog}`);
  if (dialog) {
    event.preventDefault();
    if (opener.closest('#menu')) $('#menu summary').focus(); // to which the focus returns: the menu closes
    $('#menu')?.removeAttribute('open');
    dialog.showModal();
  }
  if (event.target.closest('[data-close-dialog]')) event.target.closest('dialog').close();
  if (!event.target.closest('#menu')) $('#menu')?.removeAttribute('open');
});

// ---- The list of conversations: dots that are right in all tabs and devices, menus, its place, and its width. -----
const rowsOf = id => $$(`.row[data-conversation${id ? `="${id}"` : ''}]`);
function mark(id, state) {
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
// How much that others share has not been opened.
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
const tellTabs = () => tabs?.postMessage('');
async function lookAtDots() {
  if (document.hidden || !navigator.onLine) return;
  try {
    const reply = await fetch(dotsAddress, { redirect: 'manual' });
    if (!reply.ok) return;
    const { running, fresh, unopened } = await reply.json();
    markReceived(unopened);
    for (const { dataset } of rowsOf()) {
      const id = dataset.conversation;
      if (id === conversation) continue; // its page knows better
      mark(id, running.includes(id) ? 'running' : fresh.includes(id) ? 'new' : '');
    }
  } catch {
    /* asked again later */
  }
}
if (dotsAddress) {
  setInterval(lookAtDots, 15000);
  document.addEventListener('visibilitychange', lookAtDots);
  if (tabs) tabs.onmessage = lookAtDots;
}
const list = $('.history');
if (list) {
  list.scrollTop = Number(store.get('list'));
  list.addEventListener('scroll', () => store.set('list', String(list.scrollTop)), { passive: true });
}
const collapse = $('#collapse');
if (collapse) {
  collapse.hidden = false;
  collapse.addEventListener('click', () => {
    const closed = likes.side !== 'closed';
    if (closed) likes.side = 'closed';
    else delete likes.side;
    collapse.setAttribute('aria-pressed', String(closed));
    const secure = location.protocol === 'https:' ? '; secure' : '';
    // biome-ignore lint/suspicious/noDocumentCookie: browsers lack the Cookie Store API on plain HTTP
    document.cookie = `side=${closed ? 'closed' : 'open'}; path=/; max-age=31536000; samesite=lax${secure}`;
    if ($('#side:popover-open')) $('#side').hidePopover();
    (closed ? $('.menu-button') : collapse).focus();
  });
}
// The menu of a row is the list of a page of its own, to which the link leads without this module.
document.addEventListener('click', async event => {
  const link = event.target.closest('[data-row-menu]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
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

// ---- Toolbars, sources and the list of conversations: one Tab stop each, arrows inside. ---------------------------
const roving = new WeakSet();
const itemsOf = bar =>
  $$('button, a', bar).filter(
    item => !(item.hidden || item.matches('#row-menu *, .history [data-row-menu]')),
  );
function stopAt(bar, item) {
  for (const each of $$('button, a', bar)) if (!each.matches('#row-menu *')) each.tabIndex = -1;
  if (item) item.tabIndex = 0;
}
function rove(bar) {
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
    // Left and right stay in a row of a toolbar, so that its last button is one key from its first.
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
if (list) rove(list);
$$('.starts:has([data-ask])').forEach(rove);
function enliven(root) {
  if (navigator.clipboard)
    for (const button of $$('[data-copy], [data-copy-passage], [data-copy-text], [data-copies]', root))
      button.hidden = false;
  for (const button of $$('[data-aloud]', root)) {
    button.hidden = !voiceFor(button);
    button.setAttribute('aria-pressed', String(button.closest('.answer') === aloud));
  }
  $$('[role=toolbar], .sources', root).forEach(rove);
  $$('[data-explains]', root).forEach(markTerm);
}

// ---- Words of the house: where one first occurs in an answer it is marked, and says what it means. ----------------
function markTerm(meaning) {
  const prose = $('.prose', meaning.closest('.answer'));
  if (!prose || $(`[aria-describedby="${meaning.id}"]`, prose)) return;
  const name = meaning.dataset.explains.split(' ');
  const texts = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const place = placeOf(name, text.data);
    if (!place || text.parentElement.closest('a, button, pre, code, .cite, .term, math')) continue;
    const found = text.splitText(place.begin);
    found.splitText(place.end - place.begin);
    const term = document.createElement('span');
    term.className = 'term';
    term.tabIndex = 0;
    term.setAttribute('role', 'button');
    term.setAttribute('aria-describedby', meaning.id);
    found.replaceWith(term);
    term.append(found);
    return;
  }
}
// Where a text has the words of a name one after the other, whatever stands between them.
function placeOf(name, text) {
  const words = [...text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)];
  const at = words.findIndex((_, start) =>
    name.every((word, i) => words[start + i]?.[0].toLowerCase() === word),
  );
  if (at < 0) return null;
  const last = words[at + name.length - 1];
  return { begin: words[at].index, end: last.index + last[0].length };
}
const bubble = document.createElement('div');
bubble.className = 'meaning';
bubble.hidden = true;
bubble.setAttribute('aria-hidden', 'true'); // the description of the word is read out already
document.body.append(bubble);
let explained = null; // the word that the bubble is at
function explain(term) {
  explained = term;
  bubble.hidden = !term;
  if (!term) return;
  const meaning = document.getElementById(term.getAttribute('aria-describedby'));
  bubble.textContent = meaning?.textContent ?? '';
  bubble.dir = 'auto';
  const { left, top, bottom } = term.getBoundingClientRect();
  const { width, height } = bubble.getBoundingClientRect();
  const room = document.documentElement.clientWidth - width - 8;
  bubble.style.left = `${Math.max(8, Math.min(left, room))}px`;
  bubble.style.top = `${bottom + height < innerHeight ? bottom : Math.max(0, top - height)}px`;
}
// The pointer may go on to the bubble, which touches the word, and stay there.
document.addEventListener('pointerover', ({ target, pointerType }) => {
  if (pointerType !== 'mouse' || bubble.contains(target)) return;
  const term = target.closest?.('.term');
  if (term) explain(term);
  else if (explained && explained !== document.activeElement) explain(null);
});
document.addEventListener('focusin', ({ target }) => explain(target.closest('.term')));
document.addEventListener('click', ({ target }) => {
  const term = target.closest('.term');
  if (term || !bubble.contains(target)) explain(term);
});
document.addEventListener('keydown', event => {
  const term = event.target.closest?.('.term');
  if (event.key === 'Escape' && explained) explain(null);
  else if (term && (event.key === 'Enter' || event.key === ' ')) {
    event.preventDefault();
    explain(explained ? null : term);
  }
});
addEventListener('scroll', () => explained && explain(explained), { passive: true, capture: true });

// ---- Reading aloud, by voices of this device alone: others send the text to their maker. -------------------------
const speech = window.speechSynthesis;
let aloud = null; // the answer that is being read
let reading = []; // its sentences
let voices = []; // some devices have thousands
function findVoices() {
  voices = speech?.getVoices().filter(voice => voice.localService) ?? [];
  enliven(document);
}
function languageOf(button) {
  return button.dataset.aloud || document.documentElement.lang;
}
function voiceFor(button) {
  const language = languageOf(button).split('-')[0];
  const own = voices.filter(({ lang }) => lang.split(/[-_]/)[0].toLowerCase() === language);
  const usual = ({ default: preset, lang }) => preset || navigator.languages.includes(lang.replace('_', '-'));
  return own.find(usual) ?? own[0];
}
// Sentence by sentence, because some voices stop in the middle of a long text.
function sentencesOf(prose, language) {
  const copy = prose.cloneNode(true);
  for (const extra of $$('.cite, .note-mark, .host, .block-head, .hidden, .skeleton, pre, button', copy))
    extra.remove();
  for (const cell of $$('th, td', copy)) cell.append(', ');
  for (const block of $$('p, li, tr, h3, h4, h5, blockquote, .formula', copy)) {
    block.prepend('\0');
    block.append('\0');
  }
  const blocks = copy.textContent.replace(/\s+/g, ' ').split('\0');
  const { Segmenter } = Intl;
  const cut = Segmenter && new Segmenter(language, { granularity: 'sentence' });
  return blocks
    .flatMap(block => (cut ? [...cut.segment(block)].map(({ segment }) => segment) : [block]))
    .map(sentence => sentence.trim().replace(/,$/, ''))
    .filter(sentence => /[\p{L}\p{N}]/u.test(sentence));
}
function markAloud(answer) {
  aloud = answer;
  for (const button of $$('[data-aloud]'))
    button.setAttribute('aria-pressed', String(button.closest('.answer') === aloud));
}
function readAloud(button) {
  const answer = button.closest('.answer');
  const stops = answer === aloud;
  markAloud(null);
  speech.cancel();
  if (stops) return;
  const voice = voiceFor(button);
  reading = sentencesOf($('.prose', answer), languageOf(button)).map(sentence => {
    const part = new SpeechSynthesisUtterance(sentence);
    part.voice = voice;
    part.lang = voice.lang;
    return part;
  });
  if (!reading.length) return;
  markAloud(answer);
  const all = reading;
  const ended = () => all === reading && markAloud(null);
  all.at(-1).onend = ended;
  for (const part of all) {
    part.onerror = ended;
    speech.speak(part);
  }
}
document.addEventListener('click', event => {
  const button = event.target.closest('[data-aloud]');
  if (button) readAloud(button);
});
speech?.addEventListener?.('voiceschanged', findVoices); // browsers find them late
addEventListener('pagehide', () => speech?.cancel());
findVoices();

// ---- Copying: an answer as Markdown and as HTML, code as text, a table as CSV. ------------------------------------
function answerHtml(answer) {
  const prose = $('.prose', answer).cloneNode(true);
  for (const extra of $$('button, .block-head, .hidden', prose)) extra.remove();
  for (const chip of $$('.cite', prose)) chip.replaceWith(`[${chip.textContent}]`);
  for (const node of [prose, ...$$('*', prose)])
    for (const { name } of [...node.attributes])
      if (!['href', 'colspan', 'start', 'display'].includes(name)) node.removeAttribute(name);
  const rows = $$('.source-row', answer).map(row =>
    [...row.children].map(part => part.textContent.trim()).filter(Boolean),
  );
  const list = document.createElement('p');
  list.append(
    ...rows.flatMap(([number, ...name]) => [`[${number}] ${name.join(', ')}`, document.createElement('br')]),
  );
  if (rows.length) prose.append(list);
  return prose.innerHTML;
}
// The Markdown is the server's: it is fetched while the clipboard waits for it.
function copyAnswer(answer, url) {
  const markdown = fetch(url).then(reply => {
    if (!reply.ok) throw new Error(reply.status);
    return reply.blob();
  });
  return navigator.clipboard.write([
    new ClipboardItem({
      'text/plain': markdown.then(blob => new Blob([blob], { type: 'text/plain' })),
      'text/html': new Blob([answerHtml(answer)], { type: 'text/html' }),
    }),
  ]);
}
// With the sentence below a table that lacks rows of its source.
function csv(table) {
  const cell = text => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const lines = $$('tr', table).map(row =>
    [...row.cells].map(({ textContent }) => cell(textContent.trim())).join(','),
  );
  const blocks = [...$$('.block, .rows-shown', table.closest('.prose') ?? document)];
  const next = blocks[blocks.indexOf(table.closest('.block')) + 1];
  if (next?.matches('.rows-shown')) lines.push(cell(next.textContent.trim()));
  return lines.join('\r\n');
}
function copyOf(button) {
  const block = button.closest('.block');
  if (block)
    return navigator.clipboard.writeText(
      $('table', block) ? csv($('table', block)) : $('code', block).textContent,
    );
  if (button.dataset.copyText) return navigator.clipboard.writeText(button.dataset.copyText);
  const answer = button.closest('.answer');
  if (answer) return copyAnswer(answer, button.dataset.copy);
  return navigator.clipboard.writeText($('.passage .words').textContent);
}
document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy], [data-copy-passage], [data-copy-text], [data-copies]');
  if (!button) return;
  try {
    await copyOf(button);
  } catch {
    return;
  }
  const count = button.dataset.copy ? $$('.source-row', button.closest('.answer')).length : 0;
  toast(count > 1 ? t('Copied with {n} sources.', count) : count ? t('Copied with 1 source.') : t('Copied.'));
});

// ---- Editing a question in its place: the form is that of the page which the link leads to. -----------------------
function showAsEdited(ask, edited) {
  ask.classList.toggle('edited', edited);
  $('.question', ask).classList.toggle('hidden', edited); // still the heading of what follows
}
function closeEdit() {
  const form = $('.ask form.edit');
  if (!form) return;
  const ask = form.closest('.ask');
  form.remove();
  showAsEdited(ask, false);
  $('[data-edit]', ask).focus();
}
async function openEdit(link) {
  closeEdit();
  let page;
  try {
    const reply = await fetch(link.href, { redirect: 'manual' });
    if (!reply.ok) throw new Error(reply.status);
    page = new DOMParser().parseFromString(await reply.text(), 'text/html');
  } catch {
    location.assign(link.href);
    return;
  }
  const ask = link.closest('.ask');
  if ($('.edit', ask)) return;
  showAsEdited(ask, true);
  ask.append(document.adoptNode($('form.edit', page)));
  const words = $('.edit textarea', ask);
  words.focus();
  words.setSelectionRange(words.value.length, words.value.length);
}
document.addEventListener('click', event => {
  const link = event.target.closest('[data-edit], .ask [data-cancel-edit]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link.matches('[data-edit]')) openEdit(link);
  else closeEdit();
});
document.addEventListener('keydown', event => {
  const form = event.target.closest('.ask form.edit');
  if (!form || event.isComposing) return;
  if (event.key === 'Escape') {
    event.preventDefault();
    closeEdit();
  } else if (event.target.matches('textarea') && sends(event)) {
    event.preventDefault();
    form.requestSubmit();
  }
});

// ---- Feedback: what stands below the answer comes back as HTML; without an answer the form is sent as a page. --------
document.addEventListener('submit', async event => {
  const form = event.target.closest('form[data-feedback]');
  if (!form) return;
  event.preventDefault();
  const { submitter } = event;
  const answer = form.closest('.answer');
  const body = new FormData(form, submitter);
  $('.feedback-problem', answer)?.remove();
  let reply;
  try {
    const headers = { Accept: 'application/json' };
    reply = await fetch(form.action, { method: 'POST', body, headers, redirect: 'manual' });
  } catch {
    /* said below */
  }
  if (reply?.type === 'opaqueredirect') {
    tell(t('You were signed out. Sign in to continue.'), true);
    return;
  }
  if (!reply?.ok) {
    const problem = parsed('<p class="feedback-problem unproved" role="alert"></p>');
    $('p', problem).textContent = t('Your feedback was not saved. Try again.');
    form.closest('.on').after(problem);
    return;
  }
  $('.end', answer).replaceChildren(parsed((await reply.json()).end));
  enliven(answer);
  const { rating } = submitter.dataset;
  const opened = rating && $('.feedback[open]', answer);
  if (!rating) toast(t('Feedback saved.'));
  else if (!opened) toast(t('Feedback removed.'));
  opened?.scrollIntoView({ block: 'nearest' }); // it may have opened behind the question box
  const next =
    opened && rating === 'bad'
      ? $('input:not([type=hidden])', opened)
      : rating && $(`[data-rating=${rating}]`, answer);
  (next || $('.feedback summary', answer))?.focus();
});

// ---- Source panel: chips are links; the module opens them in place. ---------------------------------------------
const shared = { $, $$, t, parsed, say, tell, toast, rove, enliven, mark, tellTabs };
let opening;
function panel() {
  opening ??= import(panelModule).then(module => module.begin(shared));
  return opening;
}
let places;
function palette() {
  places ??= import(paletteModule).then(module => module.begin(shared, paletteAddress));
  return places;
}
// A click into the search of the conversations, or typing there, opens the palette, which finds while one types.
function findAsTyped(event) {
  if (event.isComposing) return;
  event.stopPropagation();
  const field = event.currentTarget;
  palette()
    .then(found => found.open(() => field.value))
    .catch(() => {}); // Enter finds, too
}
for (const name of ['click', 'input', 'compositionend']) $('#find')?.addEventListener(name, findAsTyped);
// Where the list is a drawer the bar has a link to that search.
$('[data-find]')?.addEventListener('click', event => {
  const link = event.currentTarget;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  palette()
    .then(found => found.open(() => ''))
    .catch(() => location.assign(link.href));
});
// Keeps the keys that are typed before the palette has come; returns a function that ends this and returns their text.
function keepTyped() {
  let text = '';
  const keep = event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === 'Backspace') text = text.slice(0, -1);
    else if (event.key.length === 1) text += event.key;
    else if (event.key !== 'Enter') return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener('keydown', keep, true);
  return () => {
    document.removeEventListener('keydown', keep, true);
    return text;
  };
}
const aside = $('#source');
if (aside) {
  if (!aside.hidden) panel();
  document.addEventListener('click', event => {
    const link = event.target.closest('a[data-source]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
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

// ---- Keyboard. --------------------------------------------------------------------------------------------------
document.addEventListener('keydown', event => {
  if (event.defaultPrevented || event.isComposing) return;
  const typing = event.target.matches('input, textarea, select, [contenteditable]');
  const bare = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.key === 'Escape' && $('#menu[open]')) {
    event.preventDefault();
    $('#menu').open = false;
    $('#menu summary').focus();
  }
  if (!typing && bare && likes.keys !== 'off') {
    if (event.key === '/' && box) {
      event.preventDefault();
      box.focus();
    }
    if (event.key === '?') location.assign('/help/#keys');
  }
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && $('#find')) {
    event.preventDefault();
    const typed = keepTyped();
    palette()
      .then(places => places.open(typed))
      .catch(() => $('#find').focus())
      .finally(typed);
  }
});

// ---- Versions: the page that comes keeps the focus: on the switch, or in the box where something is asked again. ------
document.addEventListener('submit', ({ target, submitter }) => {
  const at = $$('.switch button').indexOf(submitter);
  if (at >= 0) store.set('switched', String(at));
  if (target.matches('.edit, [action$="/again"]')) store.set('asked', 'yes');
});
addEventListener('load', () => {
  const at = store.get('switched');
  store.set('switched', null);
  // Later than the fragment, which takes the focus away. At the first or the last version only the other button leads on.
  const focus = () => {
    const button = $$('.switch button')[Number(at)];
    const leads = button?.matches('[aria-disabled]')
      ? $('button:not([aria-disabled])', button.parentElement)
      : button;
    leads?.focus({ preventScroll: true });
  };
  if (at) setTimeout(focus, 50);
});

// ---- Composer: the text stays in the box until the server has it; a draft outlives a reload. --------------------
function random() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map(byte => byte.toString(16).padStart(2, '0'))
    .join('');
}
// Files: chosen, pasted, or dropped anywhere on the page. The rest is in a module of its own.
function attaching(show) {
  const button = $('#attach');
  if (!button) return null;
  const input = $('input', button.parentElement);
  let loading;
  let module;
  const load = () => {
    loading ??= import(attachModule).then(({ begin }) => {
      module = begin({ ...shared, show });
      return module;
    });
    return loading;
  };
  let starting = 0; // files of which the module does not know yet
  const add = async (files, pasted) => {
    starting += 1;
    box.focus({ preventScroll: true }); // the question comes next
    const open = await load().finally(() => {
      starting -= 1;
    });
    open.add(files, pasted);
  };
  const holdsFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files');
  if ($('#attached li')) load();
  button.hidden = false;
  button.addEventListener('click', () => input.click());
  input.addEventListener('change', () => {
    add([...input.files]);
    input.value = '';
  });
  document.addEventListener('paste', event => {
    const files = event.clipboardData?.files;
    if (!files?.length || event.clipboardData.types.includes('text/plain')) return;
    event.preventDefault();
    add([...files], true);
  });
  for (const name of ['dragenter', 'dragover'])
    document.addEventListener(name, event => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      form.classList.add('over');
    });
  document.addEventListener('dragleave', event => {
    if (!event.relatedTarget) form.classList.remove('over');
  });
  document.addEventListener('drop', event => {
    form.classList.remove('over');
    if (!holdsFiles(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  return {
    get busy() {
      return Boolean(starting || module?.busy);
    },
    get unread() {
      return module?.unread ?? [];
    },
    arrived: () => load().then(open => open.arrived()),
  };
}
function composer() {
  const drafts = `draft:${form.action}`; // the page of “Search in” has the same
  const keys = `key:${location.pathname}`;
  const hint = $('#hint');
  const rest = touch.matches ? form.dataset.touch : form.dataset.hint;
  // Describes the box, and does not change: a screen reader would read each change out in the middle of an answer.
  $('#keys').textContent = rest;
  const send = $('#send');
  const stop = $('#stop');
  const problem = $('#problem');
  const words = form.dataset;
  const most = Number(words.most);
  let running = Boolean(run);
  let stream;

  const show = text => {
    problem.replaceChildren();
    if (!text) return;
    const note = parsed('<div class="note danger" role="alert"><div><p></p></div></div>');
    $('p', note).textContent = text;
    problem.append(note);
  };
  const hinted = () => {
    const length = box.value.length;
    const edits = !length && likes.keys !== 'off' && $('[data-edit]');
    hint.textContent = !navigator.onLine
      ? words.offline
      : length > most * 0.9
        ? words.long.replace('{n}', length.toLocaleString()).replace('{most}', most.toLocaleString())
        : running
          ? words.answering
          : edits
            ? `${rest}, ${words.edits}`
            : rest;
    hint.toggleAttribute('data-rest', hint.textContent.startsWith(rest));
    send.setAttribute('aria-disabled', String(!navigator.onLine));
  };
  const state = {
    // A question that may have arrived keeps its key: sent again, it is not asked twice.
    keyOf(text) {
      const [known, kept] = JSON.parse(store.get(keys) ?? '[]');
      if (kept === text) return known;
      const key = random();
      store.set(keys, JSON.stringify([key, text]));
      return key;
    },
    accepted(text) {
      store.set(keys, null);
      if (box.value === text) {
        box.value = '';
        store.set(drafts, null);
      }
      show();
      hinted();
    },
    refused(text, unsure) {
      if (!unsure) store.set(keys, null);
      show(`${text} ${words.kept}`);
    },
    // Another question came first: the page is loaded anew to show it, and says there what became of this one.
    overtaken(question, text) {
      store.set(keys, null);
      store.set(drafts, box.value || question);
      store.set('overtaken', `${text} ${words.kept}`);
      location.reload();
    },
    running(value) {
      const goes = value ? send : stop;
      const comes = value ? stop : send;
      const held = goes === document.activeElement;
      running = value;
      goes.hidden = true;
      comes.hidden = false;
      // The focus of a button that goes; on touch the box would raise the keyboard.
      if (held) (touch.matches ? comes : box).focus({ preventScroll: true });
      if (!value) show();
      hinted();
    },
    busy(value) {
      send.toggleAttribute('aria-busy', value);
    },
    lost() {
      show(words.lost);
    },
    left(text) {
      $('#left').textContent = text;
    },
    // Without a socket; where nothing gets through, the next socket says it.
    stop() {
      fetch(stop.formAction, { method: 'POST', body: new FormData(form), redirect: 'manual' }).catch(
        () => {},
      );
    },
  };
  if (conversation && streamModule) {
    let loading;
    stream = () => {
      loading ??= Promise.all([import(streamModule), import(revealModule)]).then(([module, { reveal }]) =>
        module.begin({ ...shared, reveal, conversation, run, state, speak: likes.speak }),
      );
      return loading;
    };
    stream(); // also hears what is asked here on another device
    document.addEventListener('click', event => {
      const next = event.target.closest('.next button[data-ask]');
      if (!next) return;
      event.preventDefault();
      stream().then(open => open.ask(next.value));
    });
    stop.addEventListener('click', event => {
      event.preventDefault();
      stream().then(open => open.stop());
    });
  }
  const files = attaching(show);
  async function askAnew(text) {
    state.busy(true);
    try {
      const body = new FormData(form);
      body.set('key', state.keyOf(text));
      const answer = await fetch(form.action, {
        method: 'POST',
        body,
        headers: { Accept: 'application/json' },
        redirect: 'manual',
      });
      const reply = answer.headers.get('Content-Type')?.startsWith('application/json')
        ? await answer.json()
        : {};
      if (reply.url) {
        state.accepted(text);
        store.set('asked', 'yes');
        // The next page has no chips of files that failed.
        if (files?.unread.length)
          store.set(`unread:${new URL(reply.url, location.href).pathname}`, files.unread.join(', '));
        location.assign(reply.url);
        return;
      }
      if (answer.type === 'opaqueredirect') {
        tell(t('You were signed out. Sign in to continue; your text is kept.'), true);
        return;
      }
      if (reply.message) state.refused(reply.message);
      else state.lost();
    } catch {
      state.lost();
    } finally {
      state.busy(false);
    }
  }
  form.addEventListener('submit', event => {
    if (event.submitter?.formNoValidate) return; // a page of its own, to which the text goes
    event.preventDefault();
    const text = box.value;
    if (!text.trim()) {
      box.focus();
      return;
    }
    if (text.length > most) {
      show(words.tooLong.replace('{most}', most.toLocaleString()));
      return;
    }
    if (!navigator.onLine || running || send.hasAttribute('aria-busy')) {
      hinted();
      return;
    }
    if (files?.busy) {
      hint.textContent = words.arriving;
      hint.removeAttribute('data-rest');
      files.arrived().then(all => all && form.requestSubmit());
    } else if (stream) stream().then(open => open.ask(text));
    else askAnew(text);
  });
  box.addEventListener('keydown', event => {
    const edit = event.key === 'ArrowUp' && !box.value && likes.keys !== 'off' && $$('[data-edit]').at(-1);
    if (edit) {
      event.preventDefault();
      edit.click();
      return;
    }
    if (!sends(event)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  box.value ||= store.get(drafts) ?? '';
  box.addEventListener('input', () => {
    store.set(drafts, box.value);
    show();
    hinted();
  });
  addEventListener('online', () => {
    tell();
    hinted();
  });
  addEventListener('offline', () => {
    tell(t('You are offline. Your text is kept, and the answer continues on the server.'));
    hinted();
  });
  hinted();
  // On the page for a new question the focus is in the box; a phone opens its keyboard when the box is touched. A first question
  // has led to a page of its own: the focus stays in the box there, too, but on touch the answer is to be seen whole.
  // The attribute autofocus would scroll past the beginning of the page.
  const begins = 'focus' in words || (!touch.matches && (store.get('asked') || store.get('overtaken')));
  const focus = () => document.activeElement.matches('body, :target') && box.focus({ preventScroll: true });
  if (begins) {
    focus();
    addEventListener('load', () => setTimeout(focus, 50)); // a fragment takes the focus away
  }
  const unread = store.get(`unread:${location.pathname}`);
  if (unread && $('.turn .ask')) {
    const note = document.createElement('p');
    note.className = 'unread';
    note.textContent = t('Asked without what could not be read: {n}', unread);
    $('.turn .ask').after(note);
  }
  if (store.get('overtaken')) show(store.get('overtaken'));
  store.set('asked', null);
  store.set('overtaken', null);
}
if (form) composer();
