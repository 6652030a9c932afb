// The admin: updates the state of documents that are being read, in the list and on a document's page.
// Fetches the page it is on every 3 seconds and copies the cells that have changed.
// Stops when no document is unfinished.

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

async function refreshCells() {
  const now = cellsByName(document);
  if (![...now.values()].some(cell => cell && unfinished(cell))) return;
  try {
    const reply = document.hidden ? null : await fetch(location.href);
    if (reply?.redirected) {
      location.reload();
      return;
    } // signed out meanwhile
    if (reply?.ok) {
      const fresh = cellsByName(new DOMParser().parseFromString(await reply.text(), 'text/html'));
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
