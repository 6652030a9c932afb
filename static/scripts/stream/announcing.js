// Announces an answer to screen readers while it is written: its finished blocks, up to a limit for long answers.
// Call restart() for each answer, and announce(nodes) for each finished block. Sends and receives nothing.

const LONG = 1200; // characters after which no more blocks are announced

// A formula in one line. Its text alone would turn x² into x2, and a fraction into one number.
const inBrackets = text => ([...text].length > 1 ? `(${text})` : text);
function linear(node) {
  const parts = [...node.children].map(linear);
  const [first, second, third] = parts.map(inBrackets);
  switch (node.localName) {
    case 'mfrac':
      return `${first}/${second}`;
    case 'msup':
    case 'mover':
      return `${first}^${second}`;
    case 'msub':
    case 'munder':
      return `${first}_${second}`;
    case 'msubsup':
    case 'munderover':
      return `${first}_${second}^${third}`;
    case 'msqrt':
      return `√${inBrackets(parts.join(' '))}`;
    case 'mroot':
      return `${first}^(1/${second})`;
    case 'mtable':
      return parts.join('; ');
    default:
      return parts.length ? parts.join(' ') : node.textContent.trim();
  }
}

export function blockAnnouncer({ $, $$, t, say, speak }) {
  let chars = 0;
  const wordsOf = node => {
    const table = $('table', node);
    if (table)
      return `${table.parentElement.getAttribute('aria-label')}, ${t('{n} rows', $$('tbody tr', table).length)}`;
    const copy = node.cloneNode(true);
    for (const chip of $$('.cite', copy)) chip.replaceWith(` ${t('source {n}', chip.textContent)}`);
    for (const mark of $$('sup a', copy)) mark.replaceWith(` ${t('note {n}', mark.textContent)} `);
    for (const image of $$('[role=img]', copy)) image.replaceWith(`${image.getAttribute('aria-label')}:`);
    for (const formula of $$('math', copy)) formula.replaceWith(linear(formula));
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
