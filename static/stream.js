// Shows an answer while it arrives: safe HTML from the server, of which new words are revealed evenly.
// Sends: ask {key, text, seen, scope}, follow {run, after}, wait {first}, stop {run}.
// Receives: accepted, asked, branched, refused, and frames {seq, place, messages}; `handlers` has one function per message.

const NEAR = 4;
const AT_ONCE = 3; // text that comes in no more frames is read from its beginning
const TRIES_BEFORE_POLLING = 3;
const LONG = 1200;
const POLL = 2000;
const LATER = 30_000;
const UNKNOWN = 4404;
const FULL = 4429;
const SILENCE = 7000; // the site says something every 3 s while an answer runs: a socket that is silent for longer is dead

export function begin({
  $,
  $$,
  t,
  parsed,
  say,
  tell,
  enliven,
  reveal,
  conversation,
  run,
  state,
  speak,
  mark,
  tellTabs,
}) {
  const thread = $('#thread');
  const jump = $('#jump');
  const answering = `${t('Answering…')} – `;
  const title = document.title.replace(answering, '');
  let socket;
  let tries = 0;
  let waiting;
  let late;
  let seq = 0;
  let name = title;
  let ended = false;
  let ending = null; // the run whose follow-up questions are awaited
  let polling;
  let asking = null;
  let stopping = null;
  let chars = 0;
  let heard = Date.now();
  let full = false;
  let answer;
  let prose;
  let open;
  let finishing = null;
  let follows = false;
  let top; // the question of the answer, or what comes first of a later answer of a team
  let pieces = new Set(); // numbers of the frames that had text of the answer
  let lastTop = scrollY;
  const frames = [];
  let drawing = false;

  // ---- The answer that is being followed. ------------------------------------------------------------------------
  function followAnswer(node) {
    open?.flush();
    answer = node;
    prose = node && $('.prose', node);
    open = node && reveal(prose, parsed, afterPaint);
    finishing = null;
    seq = 0;
    chars = 0;
    pieces = new Set();
    if (node)
      top = node.previousElementSibling?.matches('.answer') ? node : $('.question', node.closest('.turn'));
  }
  // A placeholder until the text arrives. The found documents come in the same frame, so nothing moves later.
  const removePlaceholders = () => {
    for (const line of $$('.skeleton', prose)) line.remove();
    $('.found-now', answer)?.replaceChildren();
  };
  function afterPaint() {
    if (follows) followText();
    updateJumpButton();
    if (finishing && open.isDone()) {
      finishing();
      finishing = null;
      scheduleDraw();
    }
  }
  // The text that a screen reader announces for a finished block.
  function announceBlock(nodes) {
    if (speak === 'end') return;
    for (const node of nodes) {
      const table = $('table', node);
      const code = $('pre', node);
      const copy = node.cloneNode(true);
      for (const chip of $$('.cite', copy)) chip.replaceWith(` ${t('source {n}', chip.textContent)}`);
      const words = table
        ? `${table.parentElement.getAttribute('aria-label')}, ${t('{n} rows', $$('tbody tr', table).length)}`
        : (code?.getAttribute('aria-label') ?? copy.textContent);
      if (chars < LONG) say(words);
      else if (chars < Infinity) {
        say(t('The answer continues.'));
        chars = Infinity;
        continue;
      }
      chars += words.length;
    }
  }
  const handlers = {
    reset({ blocks, open: html }) {
      open.reset(blocks, html);
      if (!blocks.length && !html)
        prose.append(parsed('<div class="skeleton"></div><div class="skeleton short"></div>'));
    },
    status({ text: words, state: now }) {
      answer.dataset.state = now;
      const line = $('.state', answer);
      if (line && line.textContent !== words) {
        line.textContent = words;
        if (now === 'queued') say(`${words}.`);
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
      announceBlock([...parsed(html).children]);
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
      name = words + title.slice(title.lastIndexOf(' – '));
      document.title = run ? answering + name : name;
      const row = $(`.row[data-conversation="${conversation}"]`);
      for (const bdi of [$('.bar h1 bdi'), row && $('bdi', row)]) if (bdi) bdi.textContent = words;
      if (row) row.title = words;
      if ($('#new-title')) $('#new-title').value = words;
    },
    // In a team, the next agent's answer, below the one that has just ended.
    next({ html }) {
      const fresh = parsed(html);
      const node = $('.answer', fresh);
      if (document.getElementById(node.id)) return;
      $('#latest')?.removeAttribute('id');
      $$('.turn', thread).at(-1).append(fresh);
      followAnswer(node);
    },
    part(end) {
      whenRevealed(() => showEnd(end));
    },
    // The text is whole; the run goes on until its follow-up questions are there.
    whole(end) {
      whenRevealed(() => {
        showEnd(end);
        ready();
      });
    },
    done(end) {
      whenRevealed(() => {
        if (answer.hasAttribute('aria-busy')) showEnd(end);
        else showFollowups(end);
        if (run) ready();
        finishRun();
      });
    },
  };
  function whenRevealed(act) {
    finishing = act;
    open.finish();
  }
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
      $('.note', answer)?.setAttribute('role', 'alert'); // which is read out by itself
    else
      say(
        end.note ||
          (end.sources === 1
            ? t('Answer complete, 1 source.')
            : t('Answer complete, {n} sources.', end.sources)),
      );
  }
  // They come after the rest: what has the focus there keeps it.
  function showFollowups(end) {
    const fresh = parsed(end.end);
    const next = $('.next', fresh);
    // A second look of the language model changes marks in the text, and what is said of the sources.
    const rechecked = end.body !== undefined;
    if (rechecked) prose.replaceChildren(parsed(end.body));
    for (const part of rechecked ? ['.sources-head', '.sources'] : ['.sources-head']) {
      const [old, now] = [answer, fresh].map(root => $(part, root));
      if (old && now && old.innerHTML !== now.innerHTML) old.replaceWith(now);
    }
    if (rechecked) enliven(answer);
    if (next && !$('.next', answer) && answer === $$('.answer', thread).at(-1)) {
      $('.on', answer).append(next);
      enliven(answer);
    }
  }
  function ready() {
    ending = run ?? ending;
    run = null;
    state.running(false);
    document.title = (document.hidden ? '● ' : '') + name;
    showDot(false);
    clearInterval(polling);
    polling = null;
  }
  function finishRun() {
    ending = null;
    answer = null;
    showSeen();
    waitForQuestion();
  }
  // What has come while the page was looked at is new on no other page.
  function showSeen() {
    if (document.hidden || run) return;
    const body = new FormData();
    body.append('csrfmiddlewaretoken', $('[name=csrfmiddlewaretoken]').value);
    fetch(`/c/${conversation}/seen`, { method: 'POST', body, redirect: 'manual' }).then(tellTabs, () => {});
  }
  function showDot(live) {
    mark(conversation, live ? 'running' : '');
    tellTabs();
  }

  // ---- The view follows the end of the text, until somebody scrolls up. --------------------------------------------
  // The question stays in view, unless the text is written at length and needs the room.
  const isAtEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - NEAR;
  const scrollToEnd = () => scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
  function followText() {
    const bar = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const start = top?.isConnected ? top.getBoundingClientRect().top : Infinity;
    const length = prose ? prose.getBoundingClientRect().bottom - start : 0;
    const room = $('.dock').getBoundingClientRect().top - bar;
    if (start === Infinity || (pieces.size > AT_ONCE && length > room)) scrollToEnd();
    else
      scrollTo({
        top: Math.max(scrollY, Math.min(scrollHeight(), scrollY + start - bar)),
        behavior: 'instant',
      });
  }
  const updateJumpButton = () => {
    jump.hidden = follows || isAtEnd() || !run;
  };
  const leaveEnd = () => {
    follows = false;
    updateJumpButton();
  };
  const scrollHeight = () => document.documentElement.scrollHeight;
  let lastHeight = scrollHeight();
  addEventListener('wheel', event => event.deltaY < 0 && scrollY > 0 && leaveEnd(), { passive: true });
  addEventListener('keydown', event => {
    const up = ['ArrowUp', 'PageUp', 'Home'].includes(event.key);
    if (up && scrollY > 0 && !event.target.matches('input, textarea, select')) leaveEnd();
  });
  addEventListener(
    'scroll',
    () => {
      if (scrollY > lastTop && isAtEnd()) follows = true;
      else if (scrollY < lastTop && scrollHeight() >= lastHeight) follows = false;
      lastTop = scrollY;
      lastHeight = scrollHeight();
      updateJumpButton();
    },
    { passive: true },
  );
  jump.addEventListener('click', () => {
    follows = true;
    scrollToEnd();
  });

  // ---- At most once per animation frame; a hidden tab draws no frames. ---------------------------------------------
  function drawFrames() {
    drawing = false;
    while (frames.length && !finishing) {
      const { seq: number, place, messages } = frames.shift();
      if (!run && !ending) continue;
      if (!answer || +answer.dataset.place !== place) {
        const node = document.getElementById(`m-${place}`);
        if (node) followAnswer(node);
        else if (messages[0]?.type !== 'next') continue;
      }
      seq = number;
      for (const message of messages) if (answer) handlers[message.type]?.(message);
    }
    if (answer) open.draw();
    if (follows) followText();
    updateJumpButton();
  }
  function scheduleDraw() {
    if (drawing) return;
    drawing = true;
    if (document.hidden) setTimeout(drawFrames, 200);
    else requestAnimationFrame(drawFrames);
  }
  document.addEventListener('visibilitychange', () => {
    if (answer) {
      open.flush();
      afterPaint();
    }
    if (document.hidden) return;
    connectSocket();
    drawFrames();
    if (document.title.startsWith('● ')) showSeen();
    document.title = document.title.replace(/^● /, '');
  });

  // ---- Questions. --------------------------------------------------------------------------------------------------
  function showAccepted({ run: id, html, left }) {
    drawFrames();
    state.left(left);
    for (const old of $$('.next', thread)) old.remove();
    $('#latest')?.removeAttribute('id');
    const turn = parsed(html);
    const article = $('article', turn);
    $(`#${article.id}`)?.remove();
    thread.append(turn);
    run = id;
    ending = null;
    followAnswer($('.answer', article));
    state.accepted(asking?.text ?? '');
    asking = null;
    showRunning();
    follows = true;
    followText();
  }
  // On another device, or in another tab. What is typed here stays.
  function showAskedElsewhere({ run: id, html }) {
    drawFrames();
    follows ||= isAtEnd();
    const fresh = parsed(html);
    for (const old of $$('.next', thread)) old.remove();
    $('#latest')?.removeAttribute('id');
    for (const article of $$('article', fresh)) document.getElementById(article.id)?.remove();
    thread.append(fresh);
    enliven(thread);
    if (id) {
      run = id;
      followAnswer($$('.answer[aria-busy]', thread).at(-1));
      showRunning();
    } else waitForQuestion();
    if (follows) followText();
    updateJumpButton();
  }
  // The last position that this page has: the identifiers of turns and answers end with theirs.
  const lastPlace = () => Math.max(-1, ...$$('.turn, .answer', thread).map(({ id }) => +id.slice(2)));
  function waitForQuestion() {
    if (isOpen() && !run && !ending) sendMessage({ type: 'wait', first: 1 + lastPlace() });
  }
  function showRunning() {
    state.running(true);
    state.busy(false);
    document.title = answering + name;
    showDot(true);
  }

  // ---- The socket. -------------------------------------------------------------------------------------------------
  const sendMessage = message => socket.send(JSON.stringify(message));
  const isOpen = () => socket?.readyState === WebSocket.OPEN;
  function receiveMessage({ data }) {
    const message = JSON.parse(data);
    heard = Date.now();
    if (message.messages) {
      if (message.messages.length) {
        frames.push(message);
        scheduleDraw();
      }
      return;
    }
    if (message.type === 'accepted') showAccepted(message);
    if (message.type === 'asked') showAskedElsewhere(message);
    if (message.type === 'branched') location.reload();
    if (message.type === 'refused') {
      const mine = asking && message.key === asking.key;
      // Asked meanwhile in another tab: its answer is shown, and what was typed here stays in the box.
      if (mine && message.code === 'generation_in_progress' && !run)
        state.overtaken(asking.text, message.message);
      else if (mine) {
        asking = null;
        state.busy(false);
        state.refused(message.message, message.code === 'busy');
      } else if (run) location.reload();
    }
  }
  function connectSocket() {
    clearTimeout(waiting);
    if (ended || isOpen() || socket?.readyState === WebSocket.CONNECTING) return;
    heard = Date.now();
    socket = new WebSocket(
      `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws/c/${conversation}/`,
    );
    socket.onopen = () => {
      tries = 0;
      heard = Date.now();
      clearTimeout(late);
      late = null;
      if (navigator.onLine && !full) tell();
      if (full)
        setTimeout(() => {
          if (isOpen()) {
            full = false;
            tell();
          }
        }, 2000);
      clearInterval(polling);
      polling = null;
      if (run || ending) sendMessage({ type: 'follow', run: run ?? ending, after: seq });
      if (run && stopping === run) sendMessage({ type: 'stop', run }); // it is unknown what a dead socket has delivered
      if (asking) sendMessage({ type: 'ask', ...asking });
      else waitForQuestion();
    };
    socket.onmessage = receiveMessage;
    socket.onclose = ({ code }) => {
      if (code === UNKNOWN) showSignedOut();
      else if (code === FULL) reconnectMuchLater();
      else reconnectLater();
    };
  }
  function reconnectLater() {
    tries++;
    if (asking && tries >= TRIES_BEFORE_POLLING) {
      asking = null;
      state.busy(false);
      state.lost();
    }
    if (run && tries >= TRIES_BEFORE_POLLING) polling ??= setInterval(pollPage, POLL);
    if (!run && !asking && tries > 8) {
      tell();
      return;
    }
    late ??= setTimeout(() => {
      if (run || asking) showConnectionLost();
    }, 2000);
    waiting = setTimeout(
      connectSocket,
      Math.min(8000, 500 * 2 ** Math.min(tries - 1, 5)) * (0.75 + Math.random() / 2),
    );
  }
  // More pages of this person are open than the site serves at once.
  function reconnectMuchLater() {
    full = true;
    socket = null;
    if (asking) {
      asking = null;
      state.busy(false);
      state.lost();
    }
    if (run) polling ??= setInterval(pollPage, LATER / 2);
    waiting = setTimeout(connectSocket, LATER * (0.75 + Math.random() / 2));
    tell(t('Too many tabs of this site are open. Close some of them; this one tries again in 30 seconds.'));
  }
  function showConnectionLost() {
    if (navigator.onLine) tell(t('Connection lost. Reconnecting …'));
  }
  // After a sleep, or behind a network that swallows everything, a socket may look open for minutes.
  function dropSocket() {
    if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
    socket?.close();
    socket = null;
  }
  setInterval(() => {
    if ((run || asking) && socket && Date.now() - heard > SILENCE) {
      dropSocket();
      reconnectLater();
    }
  }, 1000);
  function showSignedOut() {
    ended = true;
    asking = null;
    state.busy(false);
    clearTimeout(late);
    tell(t('You were signed out. Sign in to continue; your text is kept.'), true);
  }
  // Without a socket (a proxy that allows none) the page itself is asked every two seconds.
  async function pollPage() {
    try {
      const page = await fetch(location.pathname, { redirect: 'manual' });
      if (page.type === 'opaqueredirect') {
        clearInterval(polling);
        showSignedOut();
        return;
      }
      if (!page.ok) throw new Error(page.status);
      if (!run || isOpen()) return;
      const fresh = new DOMParser().parseFromString(await page.text(), 'text/html');
      const now = answer && fresh.getElementById(answer.id);
      if (!full) tell();
      if (!now) return;
      answer.replaceWith(document.adoptNode(now));
      followAnswer(now);
      enliven(now);
      if (!now.hasAttribute('aria-busy')) {
        handlers.title({ title: $('.bar h1', fresh).textContent });
        say(t('Answer complete.'));
        ready();
        finishRun();
      }
    } catch {
      if (run && !isOpen()) showConnectionLost();
    }
  }
  addEventListener('online', () => {
    tries = 0;
    dropSocket();
    connectSocket();
  });

  if (run) {
    followAnswer($$('.answer[aria-busy]').at(-1));
    follows = true;
    followText();
  }
  connectSocket();
  if ('unseen' in document.body.dataset) showSeen();

  return {
    ask(words) {
      if (ended) return tell(t('You were signed out. Sign in to continue; your text is kept.'), true);
      if (run || asking) return undefined;
      const scope = $('#scope')?.value;
      asking = { key: state.keyOf(`${words}\n${scope}`), text: words, scope };
      if (lastPlace() >= 0) asking.seen = lastPlace();
      state.busy(true);
      heard = Date.now();
      if (isOpen()) sendMessage({ type: 'ask', ...asking });
      else {
        tries = 0;
        connectSocket();
      }
      return undefined;
    },
    stop() {
      if (!run) return;
      stopping = run;
      if (isOpen()) sendMessage({ type: 'stop', run });
      else state.stop();
    },
  };
}
