// Announces an answer to screen readers while it is written: its finished blocks, up to a limit for long answers.
// Call restart() for each answer, and announce(nodes) for each finished block. Sends and receives nothing.

const LONG = 1200; // characters after which no more blocks are announced

export function blockAnnouncer({ $, $$, t, say, speak }) {
  let chars = 0;
  const wordsOf = node => {
    const table = $('table', node);
    if (table)
      return `${table.parentElement.getAttribute('aria-label')}, ${t('{n} rows', $$('tbody tr', table).length)}`;
    const copy = node.cloneNode(true);
    for (const chip of $$('.cite', copy)) chip.replaceWith(` ${t('source {n}', chip.textContent)}`);
    return $('pre', node)?.getAttribute('aria-label') ?? copy.textContent;
  };
  return {
    restart() {
      chars = 0;
    },
    announce(nodes) {
      if (speak === 'end') return;
      for (const node of nodes) {
        const words = wordsOf(node);
        if (chars < LONG) say(words);
        else if (chars < Infinity) {
          say(t('The answer continues.'));
          chars = Infinity;
          continue;
        }
        chars += words.length;
      }
    },
  };
}
