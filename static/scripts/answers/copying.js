// Copies answers as Markdown and HTML, code as text, and tables as CSV. Fetches the Markdown of an answer from the
// server as text.
import { $, $$, t } from '../portal/dom.js';
import { toast } from '../portal/overlays.js';

const BUTTONS = '[data-copy], [data-copy-passage], [data-copy-text], [data-copies]';

export function showCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const button of $$(BUTTONS, root)) button.hidden = false;
}
function answerHtml(answer) {
  const prose = $('.prose', answer).cloneNode(true);
  for (const extra of $$('button, .block-head, .hidden', prose)) extra.remove();
  for (const chip of $$('.cite', prose)) chip.replaceWith(`[${chip.textContent}]`);
  for (const task of $$('.task', prose)) task.replaceWith(task.matches('.done') ? '☑' : '☐');
  for (const node of [prose, ...$$('*', prose)])
    for (const { name } of [...node.attributes])
      if (!['href', 'colspan', 'start', 'display'].includes(name)) node.removeAttribute(name);
  const rows = $$('.source-row', answer).map(row =>
    [...row.children].map(part => part.textContent.trim()).filter(Boolean),
  );
  const list = document.createElement('p');
  list.append(
    ...rows.flatMap(([number, ...name]) => [`[${number}] ${name.join(', ')}`, document.createElement('br')]),
  );
  if (rows.length) prose.append(list);
  return prose.innerHTML;
}
// Pass the clipboard a promise: the Markdown must be fetched first, but a write is only allowed right after a
// click.
function copyAnswer(answer, url) {
  const markdown = fetch(url).then(reply => {
    if (!reply.ok) throw new Error(reply.status);
    return reply.blob();
  });
  return navigator.clipboard.write([
    new ClipboardItem({
      'text/plain': markdown.then(blob => new Blob([blob], { type: 'text/plain' })),
      'text/html': new Blob([answerHtml(answer)], { type: 'text/html' }),
    }),
  ]);
}
// Matches where a spreadsheet could see a formula, as on the server (csv_cells.py). An apostrophe there keeps it from
// executing the text. Plain numbers stay numbers.
const FORMULA =
  /^(?=['"]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])|(?<=[;\t\r\n])(?=['"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
const NUMBER = /^[+-][\d.,\u00a0 ]*%?$/;
function cell(content) {
  const text = NUMBER.test(content) ? content : content.replace(FORMULA, "'");
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
// Remove the numbers of citations. Keep the sentence below a table that mentions omitted rows of its source.
function csv(table) {
  const plain = table.cloneNode(true);
  for (const chip of $$('.cite', plain)) chip.remove();
  const lines = $$('tr', plain).map(row =>
    [...row.cells].map(({ textContent }) => cell(textContent.trim())).join(','),
  );
  const blocks = [...$$('.block, .rows-shown', table.closest('.prose') ?? document)];
  const next = blocks[blocks.indexOf(table.closest('.block')) + 1];
  if (next?.matches('.rows-shown')) lines.push(cell(next.textContent.trim()));
  return lines.join('\r\n');
}
function copyOf(button) {
  const block = button.closest('.block');
  if (block)
    return navigator.clipboard.writeText(
      $('table', block) ? csv($('table', block)) : $('code', block).textContent,
    );
  if (button.dataset.copyText) return navigator.clipboard.writeText(button.dataset.copyText);
  const answer = button.closest('.answer');
  if (answer) return copyAnswer(answer, button.dataset.copy);
  const parts = $$('.passage > :not(.around)').map(part => part.innerText.trim());
  return navigator.clipboard.writeText(parts.join('\n'));
}
document.addEventListener('click', async event => {
  const button = event.target.closest(BUTTONS);
  if (!button) return;
  try {
    await copyOf(button);
  } catch {
    toast(t('Nothing was copied. Select the text and copy it with the keyboard.'));
    return;
  }
  const count = button.dataset.copy ? $$('.source-row', button.closest('.answer')).length : 0;
  toast(count > 1 ? t('Copied with {n} sources.', count) : count ? t('Copied with 1 source.') : t('Copied.'));
});
