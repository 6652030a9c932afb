// A page about what the worker does: the start page while the first documents are read, documents in the admin,
// a change of many documents, a run of the proof.
// Fetches the page it is on every 3 seconds while something in it is `data-running`, or a document is unfinished,
// and copies the regions marked `data-live` and the cells of documents that have changed.
// If the running element has `data-reload`, the page is reloaded once it has ended.

const EVERY = 3000;
const SHOWN = ['state', 'reason', 'page_count', 'title', 'language'];

// The cell of each row of the admin's list by the row's document, or the fields of one document's page.
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

// The content of a region without the tokens of its forms, which differ each time.
const told = region => `${region.textContent} ${region.querySelector('progress')?.value}`;

// A region that contains the keyboard focus stays unchanged until its task has ended.
function copyRegions(page) {
  for (const region of document.querySelectorAll('[data-live]')) {
    const fresh = page.getElementById(region.id);
    const hasEnded = region.hasAttribute('data-running') && !fresh?.hasAttribute('data-running');
    if (!fresh || (region.contains(document.activeElement) && !hasEnded)) continue;
    if (hasEnded) region.removeAttribute('data-running');
    if (hasEnded || told(region) !== told(fresh)) region.replaceChildren(...fresh.childNodes);
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
    // A redirect means that the person was signed out meanwhile.
    if (reply?.redirected || ended) {
      location.reload();
      return;
    }
    if (page) {
      copyRegions(page);
      copyCells(page);
    }
  } catch {
    /* offline: the next round asks again */
  }
  refreshSoon();
}

function refreshSoon() {
  if (isRunning()) setTimeout(refresh, EVERY);
}
refreshSoon();
