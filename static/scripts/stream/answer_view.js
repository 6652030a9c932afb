// Draws the answer that is being written, at most once per animation frame. Receives frames {seq, place, messages};
// `handlers` has one function per type of message. Calls whole() when the text is complete, done() when the run has
// ended, and painted() after each drawing. `now` is the state of the page in stream.js.
import { blockAnnouncer } from './announcing.js';
import { reveal } from './reveal.js';

const AT_ONCE = 3; // an answer that arrives in at most this many frames is scrolled to its beginning

export function answerView(tools, now, title, { whole, done, painted }) {
  const { $, $$, t, parsed, say, enliven } = tools;
  const thread = $('#thread');
  const announcer = blockAnnouncer(tools);
  const frames = [];
  let drawing = false;
  let answer = null;
  let prose;
  let open;
  let top; // the question of the answer, or the top of a later answer of a team
  let finishing = null;
  let seq = 0;
  let pieces = new Set(); // sequence numbers of the frames that contained text of the answer

  function follow(node) {
    open?.flush();
    answer = node;
    prose = node && $('.prose', node);
    open = node && reveal(prose, parsed, afterPaint);
    finishing = null;
    seq = 0;
    announcer.restart();
    pieces = new Set();
    if (node)
      top = node.previousElementSibling?.matches('.answer') ? node : $('.question', node.closest('.turn'));
  }
  // When the first text is drawn, remove the placeholders and the list of found passages in the same frame, so that
  // nothing moves later.
  const removePlaceholders = () => {
    for (const line of $$('.skeleton', prose)) line.remove();
    $('.found-now', answer)?.replaceChildren();
  };
  function afterPaint() {
    painted();
    if (finishing && open.isDone()) {
      finishing();
      finishing = null;
      scheduleDraw();
    }
  }
  function whenRevealed(act) {
    finishing = act;
    open.finish();
  }
  const handlers = {
    reset({ blocks, open: html }) {
      open.reset(blocks, html);
      if (!blocks.length && !html)
        prose.append(parsed('<div class="skeleton"></div><div class="skeleton short"></div>'));
    },
    status({ text: words, state }) {
      answer.dataset.state = state;
      const line = $('.state', answer);
      if (line && line.textContent !== words) {
        line.textContent = words;
        if (state === 'queued') say(`${words}.`);
      }
    },
    about({ html }) {
      const turn = answer.closest('.turn');
      $(':scope > :is(.chips, .as-before)', turn)?.remove();
      $('.ask', turn).after(parsed(html));
    },
    found({ html }) {
      $('.found-now', answer)?.replaceChildren(parsed(html));
    },
    block({ html }) {
      pieces.add(seq);
      removePlaceholders();
      announcer.announce([...parsed(html).children]);
      open.block(html);
    },
    open({ html }) {
      pieces.add(seq);
      removePlaceholders();
      open.show(html);
    },
    grow({ text }) {
      pieces.add(seq);
      open.grow(text);
    },
    title({ title: words }) {
      title.rename(words, Boolean(now.run));
    },
    // In a team, append the next agent's answer below the one that has just ended.
    next({ html }) {
      const fresh = parsed(html);
      const node = $('.answer', fresh);
      if (document.getElementById(node.id)) return;
      $('#latest')?.removeAttribute('id');
      $$('.turn', thread).at(-1).append(fresh);
      follow(node);
    },
    part(end) {
      whenRevealed(() => showEnd(end));
    },
    // The text is complete; the run continues until the follow-up questions have arrived.
    whole(end) {
      whenRevealed(() => {
        showEnd(end);
        showNothingStopped(end);
        whole();
      });
    },
    done(end) {
      whenRevealed(() => {
        if (answer.hasAttribute('aria-busy')) {
          showEnd(end);
          showNothingStopped(end);
        } else showFollowups(end);
        answer = null;
        done();
      });
    },
  };
  function showEnd(end) {
    open.flush();
    removePlaceholders();
    if (end.body !== undefined) prose.replaceChildren(parsed(end.body));
    $('.progress', answer).replaceChildren(parsed(end.steps));
    $('.found-now', answer)?.remove();
    $(':scope > .end', answer).replaceChildren(parsed(end.end));
    const language = $('[data-aloud]', answer)?.dataset.aloud;
    if (language) prose.lang = language;
    answer.dataset.state = end.state;
    answer.removeAttribute('aria-busy');
    enliven(answer);
    if (end.failed)
      $('.note', answer)?.setAttribute('role', 'alert'); // so that screen readers announce it
    else
      say(
        end.note ||
          (end.sources === 1
            ? t('Answer complete, 1 source.')
            : t('Answer complete, {n} sources.', end.sources)),
      );
  }
  // The page lags behind the server, so the answer may have ended before the stop arrived.
  function showNothingStopped({ state }) {
    if (!now.run || now.stopping !== now.run || state !== 'complete') return;
    const note = parsed('<div class="note plain"><div><p></p></div></div>');
    const words = t('Nothing was stopped: the answer was already complete.');
    $('p', note).textContent = words;
    $(':scope > .end', answer).prepend(note);
    say(words);
  }
  // Add the follow-up questions, which arrive after the answer, without moving the focus.
  function showFollowups(end) {
    const fresh = parsed(end.end);
    const next = $('.next', fresh);
    // The language model's second look may change marks in the text and notes about the sources.
    const rechecked = end.body !== undefined;
    if (rechecked) prose.replaceChildren(parsed(end.body));
    for (const part of rechecked ? ['.sources-head', '.sources'] : ['.sources-head']) {
      const [old, newer] = [answer, fresh].map(root => $(part, root));
      if (old && newer && old.innerHTML !== newer.innerHTML) old.replaceWith(newer);
    }
    if (rechecked) enliven(answer);
    if (next && !$('.next', answer) && answer === $$('.answer', thread).at(-1)) {
      $('.on', answer).append(next);
      enliven(answer);
    }
  }

  function drawFrames() {
    drawing = false;
    while (frames.length && !finishing) {
      const { seq: number, place, messages } = frames.shift();
      if (!now.run && !now.ending) continue;
      if (!answer || +answer.dataset.place !== place) {
        const node = document.getElementById(`m-${place}`);
        if (node) follow(node);
        else if (messages[0]?.type !== 'next') continue;
      }
      seq = number;
      for (const message of messages) if (answer) handlers[message.type]?.(message);
    }
    if (answer) open.draw();
    painted();
  }
  // Hidden tabs get no animation frames, so use a timer there.
  function scheduleDraw() {
    if (drawing) return;
    drawing = true;
    if (document.hidden) setTimeout(drawFrames, 200);
    else requestAnimationFrame(drawFrames);
  }
  return {
    follow,
    drawFrames,
    receive(frame) {
      if (!frame.messages.length) return;
      frames.push(frame);
      scheduleDraw();
    },
    flush() {
      if (!answer) return;
      open.flush();
      afterPaint();
    },
    leave() {
      answer = null;
    },
    answer: () => answer,
    seq: () => seq,
    place: () => ({ top, prose, isLong: pieces.size > AT_ONCE }),
  };
}
