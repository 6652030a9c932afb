// An answer as it arrives: finished blocks as safe HTML of the server, the unfinished tail as plain text.
const NEAR = 80;
const TRIES_BEFORE_POLLING = 3;
const LONG = 1200;
const POLL = 2000;
const LATER = 30_000;
const UNKNOWN = 4404;
const FULL = 4429;
const SILENCE = 7000; // the site says something every 3 s while an answer runs: a socket that is silent for longer is dead

export function begin({ $, $$, parsed, say, tell, enliven, conversation, run, state, speak }) {
  const thread = $('#thread');
  const jump = $('#jump');
  const title = document.title.replace(/^Answering… – /, '');
  let socket;
  let tries = 0;
  let waiting;
  let late;
  let seq = 0;
  let name = title;
  let ended = false;
  let polling;
  let asking = null;
  let stopping = null;
  let chars = 0;
  let heard = Date.now();
  let full = false;
  let answer;
  let prose;
  let tail;
  let text;
  const frames = [];
  let drawing = false;

  // ---- The answer that is being followed. ------------------------------------------------------------------------
  function take(node) {
    answer = node;
    prose = node && $('.prose', node);
    tail = node && $('.tail', node);
    text = tail && (tail.firstChild ?? tail.appendChild(document.createTextNode('')));
    seq = 0;
    chars = 0;
  }
  function showTail(value) {
    if (!value) {
      tail?.remove();
      tail = text = null;
      return;
    }
    if (!tail) {
      tail = document.createElement('p');
      tail.className = 'tail';
      text = document.createTextNode('');
      tail.append(text);
      prose.append(tail);
    }
    if (text.data !== value) text.data = value;
  }
  const bare = () => {
    for (const line of $$('.skeleton', prose)) line.remove();
  };
  function insert(html) {
    bare();
    const block = parsed(html);
    const nodes = [...block.children];
    const space = tail ? tail.previousElementSibling : prose.lastElementChild;
    if (space) block.prepend('\n');
    if (tail) tail.before(block);
    else prose.append(block);
    return nodes;
  }
  // What a screen reader is told about a finished block.
  function read(nodes) {
    if (speak === 'end') return;
    for (const node of nodes) {
      const table = $('table', node);
      const copy = node.cloneNode(true);
      for (const chip of $$('.cite', copy)) chip.replaceWith(` source ${chip.textContent}`);
      const words = table
        ? `${node.getAttribute('aria-label')}, ${$$('tbody tr', table).length} rows`
        : node.matches('pre')
          ? `Code, ${node.textContent.trim().split('\n').length} lines`
          : copy.textContent;
      if (chars < LONG) say(words);
      else if (chars < Infinity) {
        say('The answer continues.');
        chars = Infinity;
        continue;
      }
      chars += words.length;
    }
  }
  const acts = {
    reset({ blocks, tail: rest }) {
      prose.replaceChildren();
      tail = text = null;
      for (const html of blocks) insert(html);
      if (!blocks.length && !rest)
        prose.append(parsed('<div class="skeleton"></div><div class="skeleton short"></div>'));
      showTail(rest);
    },
    status({ text: words, state: now }) {
      answer.dataset.state = now;
      const line = $('.state', answer);
      if (line && line.textContent !== words) {
        line.textContent = words;
        if (now === 'queued') say(`${words}.`);
      }
    },
    block({ html, tail: rest }) {
      read(insert(html));
      showTail(rest);
    },
    tail({ text: more }) {
      bare();
      if (text) text.appendData(more);
      else showTail(more);
    },
    retail({ text: all }) {
      bare();
      showTail(all);
    },
    title({ title: words }) {
      name = words + title.slice(title.lastIndexOf(' – '));
      document.title = `Answering… – ${name}`;
      const row = $(`.row[data-conversation="${conversation}"]`);
      for (const bdi of [$('.bar h1 bdi'), row && $('bdi', row)]) if (bdi) bdi.textContent = words;
      if (row) row.title = words;
      if ($('#new-title')) $('#new-title').value = words;
    },
    // Of a team: the next agent's answer, below the one that has just ended.
    next({ html }) {
      const fresh = parsed(html);
      const node = $('.answer', fresh);
      if (document.getElementById(node.id)) return;
      $('#latest')?.removeAttribute('id');
      $$('.exchange', thread).at(-1).append(fresh);
      take(node);
    },
    part(end) {
      close(end);
    },
    done(end) {
      close(end);
      finish();
    },
  };
  function close(end) {
    showTail('');
    bare();
    if (end.body !== undefined) prose.replaceChildren(parsed(end.body));
    $('.progress', answer).replaceChildren(parsed(end.steps));
    $('.end', answer).replaceChildren(parsed(end.end));
    answer.dataset.state = end.state;
    answer.removeAttribute('aria-busy');
    enliven(answer);
    if (end.failed)
      $('.note', answer)?.setAttribute('role', 'alert'); // which is read out by itself
    else say(end.note || `Answer complete, ${end.sources} source${end.sources === 1 ? '' : 's'}.`);
  }
  function finish() {
    run = null;
    answer = null;
    state.running(false);
    document.title = (document.hidden ? '● ' : '') + name;
    dot(false);
    clearInterval(polling);
    polling = null;
    wait();
  }
  function dot(live) {
    const row = $(`.row[data-conversation="${conversation}"]`);
    if (!row) return;
    for (const old of $$('.dot, .hidden', row)) old.remove();
    if (live)
      row.append(parsed('<span class="dot live"></span><span class="hidden">, being answered</span>'));
  }

  // ---- At most once per animation frame; a hidden tab draws no frames. ---------------------------------------------
  const atEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - NEAR;
  const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight });
  const jumping = () => {
    jump.hidden = atEnd() || !run;
  };
  function draw() {
    drawing = false;
    const follows = atEnd();
    for (const { seq: number, place, messages } of frames.splice(0)) {
      if (!run) continue;
      if (!answer || +answer.dataset.place !== place) {
        const node = document.getElementById(`m-${place}`);
        if (node) take(node);
        else if (messages[0]?.type !== 'next') continue;
      }
      seq = number;
      for (const message of messages) if (answer) acts[message.type]?.(message);
    }
    if (follows) toEnd();
    jumping();
  }
  function soon() {
    if (drawing) return;
    drawing = true;
    if (document.hidden) setTimeout(draw, 200);
    else requestAnimationFrame(draw);
  }
  addEventListener('scroll', jumping, { passive: true });
  jump.addEventListener('click', toEnd);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    connect();
    draw();
    document.title = document.title.replace(/^● /, '');
  });

  // ---- Questions. --------------------------------------------------------------------------------------------------
  function accepted({ run: id, html, left }) {
    draw();
    state.left(left);
    for (const old of $$('.next', thread)) old.remove();
    $('#latest')?.removeAttribute('id');
    const exchange = parsed(html);
    const article = $('article', exchange);
    $(`#${article.id}`)?.remove();
    thread.append(exchange);
    run = id;
    take($('.answer', article));
    state.accepted(asking?.text ?? '');
    asking = null;
    running();
    toEnd();
  }
  // On another device, or in another tab. What is typed here stays.
  function asked({ run: id, html }) {
    draw();
    const follows = atEnd();
    const fresh = parsed(html);
    for (const old of $$('.next', thread)) old.remove();
    $('#latest')?.removeAttribute('id');
    for (const article of $$('article', fresh)) document.getElementById(article.id)?.remove();
    thread.append(fresh);
    enliven(thread);
    if (id) {
      run = id;
      take($$('.answer[aria-busy]', thread).at(-1));
      running();
    } else wait();
    if (follows) toEnd();
    jumping();
  }
  // The positions that this page has are those before `first`.
  function wait() {
    if (open() && !run)
      send({
        type: 'wait',
        first: 1 + Math.max(-1, ...$$('.answer', thread).map(node => +node.dataset.place)),
      });
  }
  function running() {
    state.running(true);
    state.busy(false);
    document.title = `Answering… – ${name}`;
    dot(true);
  }

  // ---- The socket. -------------------------------------------------------------------------------------------------
  const send = message => socket.send(JSON.stringify(message));
  const open = () => socket?.readyState === WebSocket.OPEN;
  function receive({ data }) {
    const message = JSON.parse(data);
    heard = Date.now();
    if (message.messages) {
      if (message.messages.length) {
        frames.push(message);
        soon();
      }
      return;
    }
    if (message.type === 'accepted') accepted(message);
    if (message.type === 'asked') asked(message);
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
  function connect() {
    clearTimeout(waiting);
    if (ended || open() || socket?.readyState === WebSocket.CONNECTING) return;
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
          if (open()) {
            full = false;
            tell();
          }
        }, 2000);
      clearInterval(polling);
      polling = null;
      if (run) send({ type: 'follow', run, after: seq });
      if (run && stopping === run) send({ type: 'stop', run }); // what a dead socket was told is not known
      if (asking) send({ type: 'ask', ...asking });
      else wait();
    };
    socket.onmessage = receive;
    socket.onclose = ({ code }) => {
      if (code === UNKNOWN) signedOut();
      else if (code === FULL) crowded();
      else lost();
    };
  }
  function lost() {
    tries++;
    if (asking && tries >= TRIES_BEFORE_POLLING) {
      asking = null;
      state.busy(false);
      state.lost();
    }
    if (run && tries >= TRIES_BEFORE_POLLING) polling ??= setInterval(poll, POLL);
    if (!run && !asking && tries > 8) {
      tell();
      return;
    }
    late ??= setTimeout(() => {
      if (run || asking) away();
    }, 2000);
    waiting = setTimeout(
      connect,
      Math.min(8000, 500 * 2 ** Math.min(tries - 1, 5)) * (0.75 + Math.random() / 2),
    );
  }
  // More pages of this person are open than the site serves at once.
  function crowded() {
    full = true;
    socket = null;
    if (asking) {
      asking = null;
      state.busy(false);
      state.lost();
    }
    if (run) polling ??= setInterval(poll, LATER / 2);
    waiting = setTimeout(connect, LATER * (0.75 + Math.random() / 2));
    tell('Too many tabs of this site are open. Close some of them; this one tries again in 30 seconds.');
  }
  function away() {
    if (navigator.onLine) tell('Connection lost. Reconnecting …');
  }
  // After a sleep, or behind a network that swallows everything, a socket may look open for minutes.
  function leave() {
    if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
    socket?.close();
    socket = null;
  }
  setInterval(() => {
    if ((run || asking) && socket && Date.now() - heard > SILENCE) {
      leave();
      lost();
    }
  }, 1000);
  function signedOut() {
    ended = true;
    asking = null;
    state.busy(false);
    clearTimeout(late);
    tell('You were signed out. Sign in to continue; your text is kept.', true);
  }
  // Without a socket (a proxy that allows none) the page itself is asked every two seconds.
  async function poll() {
    try {
      const page = await fetch(location.pathname, { redirect: 'manual' });
      if (page.type === 'opaqueredirect') {
        clearInterval(polling);
        signedOut();
        return;
      }
      if (!page.ok) throw new Error(page.status);
      if (!run || open()) return;
      const fresh = new DOMParser().parseFromString(await page.text(), 'text/html');
      const now = answer && fresh.getElementById(answer.id);
      if (!full) tell();
      if (!now) return;
      answer.replaceWith(document.adoptNode(now));
      take(now);
      enliven(now);
      if (!now.hasAttribute('aria-busy')) {
        acts.title({ title: $('.bar h1', fresh).textContent });
        say('Answer complete.');
        finish();
      }
    } catch {
      if (run && !open()) away();
    }
  }
  addEventListener('online', () => {
    tries = 0;
    leave();
    connect();
  });

  if (run) {
    take($$('.answer[aria-busy]').at(-1));
    toEnd();
  }
  connect();

  return {
    ask(words) {
      if (ended) return tell('You were signed out. Sign in to continue; your text is kept.', true);
      if (run || asking) return undefined;
      asking = { key: state.keyOf(words), text: words };
      state.busy(true);
      heard = Date.now();
      if (open()) send({ type: 'ask', ...asking });
      else {
        tries = 0;
        connect();
      }
      return undefined;
    },
    stop() {
      if (!run) return;
      stopping = run;
      if (open()) send({ type: 'stop', run });
      else state.stop();
    },
  };
}
