// Updates pages about work in progress: the start page while the first documents are read, documents in the admin,
// a bulk change, an evaluation. Fetches the current page every 3 seconds while it has a `data-running` element
// or an unfinished document, and copies the `data-live` regions and the cells of documents that have changed. If
// the running element has `data-reload`, reloads the page when the work has ended.

const EVERY = 3000;
const SHOWN = ['state', 'reason', 'page_count', 'title', 'language'];

// Maps documents to elements: the cells of an admin list, or the fields on the page of one document.
function cellsByName(page) {
  const found = new Map();
  for (const row of page.querySelectorAll('#result_list tbody tr')) {
    const id = row.querySelector('.action-select')?.value ?? row.querySelector('th a')?.getAttribute('href');
    for (const name of SHOWN) found.set(`${id} ${name}`, row.querySelector(`.field-${name}`));
  }
  for (const name of SHOWN) found.set(name, page.querySelector(`.form-row.field-${name} .readonly`));
  return found;
}

const isUnfinished = cell => cell?.textContent.trim().startsWith('…');
const isRunning = () =>
  document.querySelector('[data-running]') || [...cellsByName(document).values()].some(isUnfinished);

// What a region shows. Its HTML cannot be compared, because it contains CSRF tokens, which differ in each response.
const shown = region => `${region.textContent} ${region.querySelector('progress')?.value}`;

// Do not replace a region that contains the focus until its work has ended.
function copyRegions(page) {
  for (const region of document.querySelectorAll('[data-live]')) {
    const fresh = page.getElementById(region.id);
    const hasEnded = region.hasAttribute('data-running') && !fresh?.hasAttribute('data-running');
    if (!fresh || (region.contains(document.activeElement) && !hasEnded)) continue;
    if (hasEnded) region.removeAttribute('data-running');
    if (hasEnded || shown(region) !== shown(fresh)) region.replaceChildren(...fresh.childNodes);
  }
}

function copyCells(page) {
  const fresh = cellsByName(page);
  for (const [name, cell] of cellsByName(document)) {
    const other = fresh.get(name);
    if (cell && other && cell.textContent !== other.textContent) cell.replaceChildren(...other.childNodes);
  }
}

async function refresh() {
  try {
    const reply = document.hidden ? null : await fetch(location.href);
    const page = reply?.ok && new DOMParser().parseFromString(await reply.text(), 'text/html');
    const ended = document.querySelector('[data-reload]') && page && !page.querySelector('[data-reload]');
    // A redirect means that the person has been signed out.
    if (reply?.redirected || ended) {
      location.reload();
      return;
    }
    if (page) {
      copyRegions(page);
      copyCells(page);
    }
  } catch {
    /* offline: try again in the next round */
  }
  refreshSoon();
}

function refreshSoon() {
  if (isRunning()) setTimeout(refresh, EVERY);
}
refreshSoon();
