// Activates the buttons, terms and sources of answers that were added to the page.
// enliven(root) is called for every answer or panel whose HTML has arrived.
// Sends and receives nothing.
import { $$ } from '../portal/dom.js';
import { rove } from '../portal/roving.js';
import { showCopyButtons } from './copying.js';
import { showAloudButtons, whenVoicesChange } from './reading_aloud.js';
import { markTerm } from './terms.js';

export function enliven(root) {
  showCopyButtons(root);
  showAloudButtons(root);
  $$('[role=toolbar], .sources', root).forEach(rove);
  $$('[data-explains]', root).forEach(markTerm);
}

$$('.starts:has([data-ask])').forEach(rove);
enliven(document);
whenVoicesChange(() => enliven(document));
