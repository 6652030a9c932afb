// Reads answers aloud, only with voices that run on this device: other voices send the text to their vendor. One
// answer is read at a time; its button stays in the pressed state until the end. Sends and receives nothing.
import { $, $$ } from '../portal/dom.js';

const speech = window.speechSynthesis;
let aloud = null; // the answer that is being read
let reading = []; // sentences that are still to be read
let voices = []; // cached, because some devices have thousands
const findVoices = () => {
  voices = speech?.getVoices().filter(voice => voice.localService) ?? [];
};
function languageOf(button) {
  return button.dataset.aloud || document.documentElement.lang;
}
function voiceFor(button) {
  const language = languageOf(button).split('-')[0];
  const own = voices.filter(({ lang }) => lang.split(/[-_]/)[0].toLowerCase() === language);
  const usual = ({ default: preset, lang }) => preset || navigator.languages.includes(lang.replace('_', '-'));
  return own.find(usual) ?? own[0];
}
// Read sentence by sentence, because some voices stop in the middle of a long text.
function sentencesOf(prose, language) {
  const copy = prose.cloneNode(true);
  for (const extra of $$('.cite, .note-mark, .host, .block-head, .hidden, .skeleton, pre, button', copy))
    extra.remove();
  for (const cell of $$('th, td', copy)) cell.append(', ');
  for (const block of $$('p, li, tr, h3, h4, h5, blockquote, .formula', copy)) {
    block.prepend('\0');
    block.append('\0');
  }
  const blocks = copy.textContent.replace(/\s+/g, ' ').split('\0');
  const { Segmenter } = Intl;
  const cut = Segmenter && new Segmenter(language, { granularity: 'sentence' });
  return blocks
    .flatMap(block => (cut ? [...cut.segment(block)].map(({ segment }) => segment) : [block]))
    .map(sentence => sentence.trim().replace(/,$/, ''))
    .filter(sentence => /[\p{L}\p{N}]/u.test(sentence));
}
// Show the button only if the device has a voice for the answer's language.
export function showAloudButtons(root) {
  for (const button of $$('[data-aloud]', root)) {
    button.hidden = !voiceFor(button);
    button.setAttribute('aria-pressed', String(button.closest('.answer') === aloud));
  }
}
function markAloud(answer) {
  aloud = answer;
  for (const button of $$('[data-aloud]'))
    button.setAttribute('aria-pressed', String(button.closest('.answer') === aloud));
}
function readAloud(button) {
  const answer = button.closest('.answer');
  const stops = answer === aloud;
  markAloud(null);
  speech.cancel();
  if (stops) return;
  const voice = voiceFor(button);
  reading = sentencesOf($('.prose', answer), languageOf(button)).map(sentence => {
    const part = new SpeechSynthesisUtterance(sentence);
    part.voice = voice;
    part.lang = voice.lang;
    return part;
  });
  if (!reading.length) return;
  markAloud(answer);
  const all = reading;
  const ended = () => all === reading && markAloud(null);
  all.at(-1).onend = ended;
  for (const part of all) {
    part.onerror = ended;
    speech.speak(part);
  }
}
document.addEventListener('click', event => {
  const button = event.target.closest('[data-aloud]');
  if (button) readAloud(button);
});
// Browsers load their voices after the page.
export function whenVoicesChange(act) {
  speech?.addEventListener?.('voiceschanged', () => {
    findVoices();
    act();
  });
}
addEventListener('pagehide', () => speech?.cancel());
findVoices();
