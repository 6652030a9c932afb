// The page of a conversation while answers arrive. `now` has the runs and the question that the page waits for.
// Sends: ask {key, text, seen, scope}, follow {run, after}, wait {first}, stop {run}.
// Posts the question as a form if no socket could ever be opened.
// Receives: accepted, asked, branched, refused, and frames {seq, place, messages} for the answer's view.
import { answerView } from './scripts/stream/answer_view.js';
import { connection } from './scripts/stream/connection.js';
import { pageTitle } from './scripts/stream/page_title.js';
import { scrolling } from './scripts/stream/scrolling.js';

export function begin(tools) {
  const { $, $$, t, parsed, say, tell, enliven, conversation, state, mark, tellTabs } = tools;
  const thread = $('#thread');
  const now = {
    run: tools.run, // the run whose answer is being written
    ending: null, // the run whose follow-up questions are awaited
    asking: null, // the question that the server has not accepted yet
    stopping: null, // the run that the person wants to stop
  };
  const title = pageTitle(tools);
  const view = answerView(tools, now, title, {
    painted: () => scroll.keepUp(),
    whole() {
      showReady();
      showSeen();
    },
    done() {
      if (now.run) showReady();
      finishRun();
    },
  });
  const scroll = scrolling(tools, () => Boolean(now.run), view.place);
  const socket = connection(tools, now, {
    opened,
    received,
    polled: pollPage,
    givenUp() {
      const { asking } = now;
      forgetQuestion();
      if (socket.hasOpened()) state.lost();
      else tools.post(asking);
    },
    ended: forgetQuestion,
  });

  function forgetQuestion() {
    now.asking = null;
    state.busy(false);
  }
  function showRunning() {
    state.running(true);
    state.busy(false);
    title.showRunning();
    showDot(true);
  }
  function showReady() {
    now.ending = now.run ?? now.ending;
    now.run = null;
    state.running(false);
    title.showReady();
    showDot(false);
    socket.stopPolling();
  }
  function finishRun() {
    now.ending = null;
    showSeen();
    waitForQuestion();
  }
  // Report at once which answers were shown while the page was visible, so that other pages do not mark them as
  // new.
  function showSeen() {
    if (document.hidden || now.run) return;
    const body = new FormData();
    body.append('csrfmiddlewaretoken', $('[name=csrfmiddlewaretoken]').value);
    if (now.ending) body.append('whole', '1');
    const request = { method: 'POST', body, redirect: 'manual', keepalive: true };
    fetch(`/c/${conversation}/seen`, request).then(tellTabs, () => {});
  }
  function showDot(live) {
    mark(conversation, live ? 'running' : '');
    tellTabs();
  }

  // ---- Questions
  // --------------------------------------------------------------------------------------------------
  // Appends turns to the thread, and removes older copies of them.
  function append(html) {
    const fresh = parsed(html);
    // A question also brings the conversation back from the archive.
    for (const old of $$('.next, #archived', thread)) old.remove();
    $('#latest')?.removeAttribute('id');
    for (const article of $$('article', fresh)) document.getElementById(article.id)?.remove();
    thread.append(fresh);
  }
  function showAccepted({ run, html, left }) {
    view.drawFrames();
    state.left(left);
    append(html);
    now.run = run;
    now.ending = null;
    view.follow($('.answer', $$('.turn', thread).at(-1)));
    state.accepted(now.asking?.text ?? '');
    now.asking = null;
    showRunning();
    scroll.follow();
    scroll.keepUp();
  }
  // Show a question asked on another device or in another tab; the text in the box is kept.
  function showAskedElsewhere({ run, html }) {
    view.drawFrames();
    if (scroll.isAtEnd()) scroll.follow();
    append(html);
    enliven(thread);
    if (run) {
      now.run = run;
      view.follow($$('.answer[aria-busy]', thread).at(-1));
      showRunning();
    } else waitForQuestion();
    scroll.keepUp();
  }
  function showRefused({ key, code, message }) {
    const { asking } = now;
    const isMine = asking && key === asking.key;
    // Another tab has asked a question first: show its answer, and keep the text in the box.
    if (isMine && code === 'generation_in_progress' && !now.run) state.overtaken(asking.text, message);
    else if (isMine) {
      forgetQuestion();
      state.refused(message, code === 'busy');
    } else if (now.run) location.reload();
  }
  // Another branch was chosen elsewhere. Do not reload the page while an edited question has unsent text: the question
  // may not be in that branch.
  function showBranched() {
    const form = $('.ask form.edit');
    const words = form && $('textarea', form);
    if (words && words.value !== words.defaultValue) form.dataset.branched = '';
    else location.reload();
  }
  // The last position on this page: the ids of turns and answers end with positions.
  const lastPlace = () => Math.max(-1, ...$$('.turn, .answer', thread).map(({ id }) => +id.slice(2)));
  function waitForQuestion() {
    if (socket.isOpen() && !now.run && !now.ending) socket.send({ type: 'wait', first: 1 + lastPlace() });
  }

  // ---- Messages of the socket
  // -------------------------------------------------------------------------------------
  function opened() {
    const { run, ending, asking, stopping } = now;
    if (run || ending) socket.send({ type: 'follow', run: run ?? ending, after: view.seq() });
    // Send the stop again: the previous socket may have lost it.
    if (run && stopping === run) socket.send({ type: 'stop', run });
    if (asking) socket.send({ type: 'ask', ...asking });
    else waitForQuestion();
  }
  function received(message) {
    if (message.messages) view.receive(message);
    if (message.type === 'accepted') showAccepted(message);
    if (message.type === 'asked') showAskedElsewhere(message);
    if (message.type === 'branched') showBranched();
    if (message.type === 'refused') showRefused(message);
  }
  // Replace the unfinished answer of a turn, and append those that follow it.
  function showAnswers(turn, answers) {
    for (const answer of answers) {
      const old = document.getElementById(answer.id);
      if (old && !old.hasAttribute('aria-busy')) continue;
      if (old) old.replaceWith(document.adoptNode(answer));
      else {
        $('#latest')?.removeAttribute('id');
        turn.append(document.adoptNode(answer));
      }
      view.follow(answer);
      enliven(answer);
    }
  }
  // Called every two seconds during an answer if no socket can be opened, for instance because a proxy forbids it;
  // every 15 seconds if too many tabs are open.
  async function pollPage() {
    try {
      const reply = await fetch(location.pathname, { redirect: 'manual' });
      if (socket.endIfGone(reply)) return;
      if (!reply.ok) throw new Error(reply.status);
      if (!now.run || socket.isOpen()) return;
      const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
      const turn = view.answer()?.closest('.turn');
      const newer = turn && fresh.getElementById(turn.id);
      if (!socket.isFull()) tell();
      if (!newer) return;
      showAnswers(turn, $$('.answer', newer));
      // In a team, the next agent may begin later.
      if (fresh.body.dataset.run !== now.run && !$('.answer[aria-busy]', turn)) {
        title.rename($('.bar h1', fresh).textContent, true);
        say(t('Answer complete.'));
        showReady();
        view.leave();
        finishRun();
      }
    } catch {
      if (now.run && !socket.isOpen()) socket.showLost();
    }
  }

  document.addEventListener('visibilitychange', () => {
    view.flush();
    if (document.hidden) return;
    socket.connect();
    view.drawFrames();
    if (title.clearReadyMark()) showSeen();
  });
  if (now.run) {
    view.follow($$('.answer[aria-busy]').at(-1));
    scroll.follow();
    scroll.keepUp();
  }
  socket.connect();
  if ('unseen' in document.body.dataset) showSeen();

  return {
    ask(text) {
      if (socket.isEnded()) {
        socket.showEnd();
        return;
      }
      if (now.run || now.asking) return;
      const scope = $('#scope')?.value;
      now.asking = { key: state.keyOf(`${text}\n${scope}`), text, scope };
      if (lastPlace() >= 0) now.asking.seen = lastPlace();
      state.busy(true);
      if (socket.isOpen()) socket.send({ type: 'ask', ...now.asking });
      socket.hurry();
    },
    stop() {
      if (!now.run) return;
      now.stopping = now.run;
      if (socket.isOpen()) socket.send({ type: 'stop', run: now.run });
      else state.stop();
    },
  };
}
