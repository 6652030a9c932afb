// The admin: updates the state of documents that are being read, in the list and on a document's page,
// and how far a change of many documents is.
// Fetches the page it is on every 3 seconds and copies the cells and regions that have changed.
// Stops when no document is unfinished and no change is running.

const EVERY = 3000;
const SHOWN = ['state', 'reason', 'page_count', 'title', 'language'];
const unfinished = cell => cell.textContent.trim().startsWith('…');

// The cell of each row of the list by the row's document, or the fields of one document's page.
function cellsByName(page) {
  const found = new Map();
  for (const row of page.querySelectorAll('#result_list tbody tr')) {
    const id = row.querySelector('.action-select')?.value ?? row.querySelector('th a')?.getAttribute('href');
    for (const name of SHOWN) found.set(`${id} ${name}`, row.querySelector(`.field-${name}`));
  }
  for (const name of SHOWN) found.set(name, page.querySelector(`.form-row.field-${name} .readonly`));
  return found;
}

// A region with the keyboard's focus in it stays as it is until the change has ended.
function refreshRegions(page) {
  for (const region of document.querySelectorAll('[data-live]')) {
    const fresh = page.getElementById(region.id);
    if (!fresh || (region.contains(document.activeElement) && fresh.hasAttribute('data-running'))) continue;
    region.toggleAttribute('data-running', fresh.hasAttribute('data-running'));
    region.replaceChildren(...fresh.childNodes);
  }
}

async function refreshCells() {
  const now = cellsByName(document);
  const running = document.querySelector('[data-running]');
  if (!running && ![...now.values()].some(cell => cell && unfinished(cell))) return;
  try {
    const reply = document.hidden ? null : await fetch(location.href);
    if (reply?.redirected) {
      location.reload();
      return;
    } // signed out meanwhile
    if (reply?.ok) {
      const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
      const fresh = cellsByName(page);
      refreshRegions(page);
      for (const [name, cell] of now) {
        const other = fresh.get(name);
        if (cell && other && cell.textContent !== other.textContent)
          cell.replaceChildren(...other.childNodes);
      }
    }
  } catch {
    /* offline: the next round asks again */
  }
  setTimeout(refreshCells, EVERY);
}
setTimeout(refreshCells, EVERY);
