// The page of “Search in”: what is found changes while one types. Posts the form as its button “Find” does, and takes
// the two parts of the page that are found anew. Ticks stay, for they are posted too.
// Without this module the button finds.

const PAUSE = 150; // ms without a key before the words are sent

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
if (words && words.value !== words.defaultValue) findSoon(); // typed before this module was loaded
