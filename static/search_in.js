// The page “Search in”: updates the results as the person types. Posts the form like its button “Find”, and
// replaces the two parts of the page that depend on the search. Selected checkboxes are posted too, so they are
// kept. Without this module, the button “Find” does the same.

const PAUSE = 150; // ms after the last key press before the text is sent

const form = document.querySelector('form.search-in');
let waiting;
let asked = 0;

async function find() {
  asked += 1;
  const number = asked;
  const answer = await fetch(form.action, { method: 'POST', body: new FormData(form), redirect: 'error' });
  if (!answer.ok || number !== asked) return;
  const found = new DOMParser().parseFromString(await answer.text(), 'text/html');
  if (number !== asked) return;
  for (const part of ['.offered', '[role=status]'])
    form.querySelector(part).replaceChildren(...found.querySelector(`.search-in ${part}`).childNodes);
}

function findSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => find().catch(() => {}), PAUSE);
}

const words = form.querySelector('#q');
words?.addEventListener('input', findSoon);
if (words && words.value !== words.defaultValue) findSoon(); // the person typed before this module was loaded
