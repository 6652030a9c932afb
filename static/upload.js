// Uploads documents with progress, and updates their states while they are being read. Posts one file at a time and
// receives {documents, refused, problems}; polls the status URL every 2 seconds. Without this module, the form
// posts all files at once, and the page refreshes while documents are being read.

const $ = (selector, root = document) => root.querySelector(selector);
// Translations of this module's texts by their English form; empty in English.
const translations = JSON.parse($('#words')?.textContent ?? '{}');
const t = (text, value) => (translations[text] ?? text).replace('{n}', () => value);
const page = $('[data-status]');
const form = $('form[data-upload]');
const EVERY = 2000;

function createElement(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function createIcon(name) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  const use = document.createElementNS(space, 'use');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `${page.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}

// ---- States of documents that are being read ----------------------------------------------------------------------

function showState(place, found) {
  const badge = $('[data-badge]', place);
  const details = place.querySelectorAll('[data-detail]');
  const bar = $('progress', place);
  const pages = $('[data-pages]', place);
  badge.className = `badge ${found.tone}`;
  badge.replaceChildren(
    ...(found.icon ? [createIcon(found.icon)] : []),
    createElement('span', { textContent: found.words }),
  );
  const more = found.detail || (place.matches('.file') ? (found.readers ?? '') : '');
  for (const detail of details) detail.textContent = more;
  if (pages && found.pages) pages.textContent = found.pages;
  if (bar && !found.unfinished) bar.remove();
  else if (bar && found.total) {
    bar.max = found.total;
    bar.value = found.done;
  }
  if (found.unfinished) return;
  announceState(`${found.name ?? $('bdi', place)?.textContent ?? ''}: ${found.words}`);
  place.removeAttribute('data-document');
  if (place.hasAttribute('data-reload') && !document.activeElement?.closest('form')) location.reload();
}

// Announce to screen readers when a document is finished, not each page that was read.
let done = [];
function announceState(words) {
  const announcer = $('[data-announce]');
  done.push(`${words}.`);
  if (announcer) announcer.textContent = done.join(' ');
}

// Update the counts in the sidebar and above the list.
async function showCounts(searchable) {
  $('[data-searchable]').textContent = searchable;
  const pills = $('.section-head:has(.pills)', page);
  if (!pills || pills.contains(document.activeElement)) return;
  const reply = await fetch(location.href, { redirect: 'error' });
  const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
  pills.replaceWith(document.adoptNode($('.section-head:has(.pills)', fresh)));
}

async function pollStates() {
  const places = [...document.querySelectorAll('[data-document]')].slice(0, 100);
  done = [];
  try {
    if (places.length && !document.hidden) {
      const query = new URLSearchParams(places.map(place => ['id', place.dataset.document]));
      const reply = await fetch(`${page.dataset.status}?${query}`, {
        headers: { Accept: 'application/json' },
      });
      if (reply.redirected) {
        location.reload();
        return;
      } // the person has been signed out
      if (reply.ok) {
        const { documents, searchable } = await reply.json();
        const found = new Map(documents.map(each => [each.id, each]));
        if (searchable) await showCounts(searchable);
        for (const place of places) {
          if (found.has(place.dataset.document)) showState(place, found.get(place.dataset.document));
          else place.removeAttribute('data-document'); // deleted, or no longer readable for this person
        }
      }
    }
  } catch {
    /* offline: try again in the next round */
  }
  setTimeout(pollStates, EVERY);
}
if (page) setTimeout(pollStates, EVERY);

// ---- Uploading, one file after the other --------------------------------------------------------------------------

function createLine(file) {
  const cancel = createElement(
    'button',
    { type: 'button', className: 'icon-button', title: t('Cancel upload of {n}', file.name) },
    createIcon('close'),
  );
  cancel.setAttribute('aria-label', cancel.title);
  const bar = createElement('progress', { max: 100, value: 0 });
  bar.setAttribute('aria-label', t('Uploading {n}', file.name));
  const badge = createElement(
    'span',
    { className: 'badge' },
    createElement('span', { textContent: t('Waiting') }),
  );
  badge.dataset.badge = '';
  const detail = createElement('span', { className: 'meta' });
  detail.dataset.detail = '';
  const place = createElement(
    'div',
    { className: 'file' },
    createIcon('doc'),
    createElement('span', {}, createElement('bdi', { textContent: file.name })),
    bar,
    detail,
    createElement('span', { className: 'end' }, badge, cancel),
  );
  place.setAttribute('role', 'listitem');
  return place;
}

function showFailure(place, words, detail, cancelled = false) {
  showState(place, {
    tone: cancelled ? '' : 'danger',
    icon: cancelled ? '' : 'error',
    words,
    detail,
    unfinished: false,
  });
  $('.icon-button', place)?.remove();
}

function uploadFile(file, place) {
  return new Promise(resolve => {
    const request = new XMLHttpRequest();
    const body = new FormData(form);
    body.delete('file');
    body.append('file', file, file.name);
    request.open('POST', form.action);
    request.setRequestHeader('Accept', 'application/json');
    request.responseType = 'json';
    request.upload.addEventListener('progress', event => {
      if (!event.lengthComputable) return;
      const share = Math.floor((event.loaded * 100) / event.total);
      $('progress', place).value = share;
      $('[data-badge] span', place).textContent = share < 100 ? t('Uploading, {n} %', share) : t('Waiting');
    });
    $('.icon-button', place).addEventListener('click', () => request.abort());
    request.addEventListener('abort', () => {
      showFailure(place, t('Cancelled'), t('Nothing was saved.'), true);
      resolve();
    });
    request.addEventListener('error', () => {
      showFailure(place, t('Failed'), t('The connection was lost. Choose the file again to retry.'));
      resolve();
    });
    request.addEventListener('load', () => {
      resolve(request.response ?? {});
      showResult(request, place);
    });
    request.send(body);
  });
}

function showResult(request, place) {
  const reply = request.response ?? {};
  const made = reply.documents?.[0];
  if (!made) {
    const problem = reply.refused?.[0]?.message ?? reply.problems?.join(' ');
    const words =
      request.status === 413
        ? t('The file is too large.')
        : t('The upload failed. Reload the page and try again.');
    showFailure(place, t('Failed'), problem ?? words);
    return;
  }
  $('.icon-button', place).remove();
  // A document that was added before is listed only once: remove its older line.
  for (const other of document.querySelectorAll('.file a'))
    if (other.getAttribute('href') === made.url) other.closest('.file').remove();
  if (made.outcome === 'unchanged') made.detail = t('This file is already here, unchanged.');
  const link = createElement('a', { href: made.url }, createElement('bdi', { textContent: made.name }));
  let shown = link;
  if (made.outcome_words) {
    const words = createElement('span', { className: 'meta', textContent: made.outcome_words });
    shown = createElement('span', {}, createElement('span', {}, link), createElement('br'), words);
  }
  place.children[1].replaceWith(shown);
  $('progress', place).removeAttribute('value');
  place.dataset.document = made.id;
  showState(place, made);
  const use = $('[data-use]');
  if (use) use.textContent = reply.use;
}

// Errors of the form itself, such as an unknown name, are shown above it; the files stay selected.
function showProblems(problems) {
  const note = $('[data-problems]');
  note.hidden = !problems.length;
  $('div', note).replaceChildren(...problems.map(problem => createElement('p', { textContent: problem })));
  if (problems.length) note.scrollIntoView({ block: 'nearest' });
}

if (form) {
  const input = $('input[type=file]', form);
  const drop = $('[data-drop]', form);
  const showChosen = () => {
    const list = $('[data-chosen]', form);
    const names = [...input.files].map(file => createElement('bdi', { textContent: file.name }));
    list.replaceChildren(...names.map(name => createElement('li', {}, name)));
    list.hidden = names.length < 2; // the input shows the name of a single file
  };
  input.addEventListener('change', showChosen);
  form.addEventListener('submit', async event => {
    event.preventDefault();
    const files = [...input.files];
    const places = files.map(createLine);
    const section = $('[data-progress]');
    const button = $('.primary', form);
    showProblems([]);
    section.hidden = false;
    $('.files', section).prepend(...places);
    button.disabled = true;
    for (const [index, file] of files.entries()) {
      const reply = await uploadFile(file, places[index]);
      if (reply?.problems?.length) {
        showProblems(reply.problems);
        for (const place of places.slice(index)) place.remove();
        button.disabled = false;
        return;
      }
    }
    button.disabled = false;
    input.value = '';
    showChosen();
  });
  for (const name of ['dragenter', 'dragover'])
    drop.addEventListener(name, event => {
      event.preventDefault();
      drop.classList.add('over');
    });
  for (const name of ['dragleave', 'drop']) drop.addEventListener(name, () => drop.classList.remove('over'));
  drop.addEventListener('drop', event => {
    event.preventDefault();
    const several = event.dataTransfer.files.length > 1;
    showProblems(several && !input.multiple ? [t('Choose one file.')] : []);
    if (event.dataTransfer.files.length && (input.multiple || !several))
      input.files = event.dataTransfer.files;
    showChosen();
  });
}
