// Activates the buttons, glossary terms and sources of answers that are added to the page. Call enliven(root) for
// each answer or panel after its HTML was inserted. Sends and receives nothing.
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
