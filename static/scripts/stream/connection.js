// The WebSocket of a page. Reconnects when it is lost, and polls the page if no socket can be opened. Sends and
// receives JSON. Calls functions of stream.js: opened(), received(message), givenUp() if a question could not be
// delivered, polled(), and ended() if the page can ask no more. `now` is the state of the page in stream.js.

const TRIES_BEFORE_POLLING = 3;
const MAX_IDLE_TRIES = 8; // connection attempts of a page that waits for no answer
const POLL = 2000;
const LATER = 30_000;
const UNKNOWN = 4404;
const FULL = 4429;
// While an answer runs, the server sends something every 3 s, so a socket that is silent for this long is dead.
const SILENCE = 7000;

export function connection({ t, tell, conversation }, now, { opened, received, givenUp, polled, ended }) {
  let socket;
  let tries = 0;
  let waiting;
  let late;
  let polling = null;
  let heard = Date.now();
  let hasOpened = false;
  let full = false; // the person has more pages open than the site allows
  let showEnd = null; // says why no socket can be opened any more

  const isOpen = () => socket?.readyState === WebSocket.OPEN;
  const send = message => socket.send(JSON.stringify(message));
  function connect() {
    clearTimeout(waiting);
    if (showEnd || isOpen() || socket?.readyState === WebSocket.CONNECTING) return;
    heard = Date.now();
    socket = new WebSocket(
      `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws/c/${conversation}/`,
    );
    socket.onopen = () => {
      tries = 0;
      hasOpened = true;
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
      stopPolling();
      opened();
    };
    socket.onmessage = ({ data }) => {
      heard = Date.now();
      received(JSON.parse(data));
    };
    socket.onclose = ({ code }) => {
      if (code === UNKNOWN) findReason();
      else if (code === FULL) reconnectMuchLater();
      else reconnectLater();
    };
  }
  function reconnectLater() {
    tries++;
    if (now.asking && tries >= TRIES_BEFORE_POLLING) givenUp();
    if (now.run && tries >= TRIES_BEFORE_POLLING) polling ??= setInterval(polled, POLL);
    if (!now.run && !now.asking && tries > MAX_IDLE_TRIES) {
      tell();
      return;
    }
    late ??= setTimeout(() => {
      if (now.run || now.asking) showLost();
    }, 2000);
    waiting = setTimeout(
      connect,
      Math.min(8000, 500 * 2 ** Math.min(tries - 1, 5)) * (0.75 + Math.random() / 2),
    );
  }
  function reconnectMuchLater() {
    full = true;
    socket = null;
    if (now.asking) givenUp();
    if (now.run) polling ??= setInterval(polled, LATER / 2);
    waiting = setTimeout(connect, LATER * (0.75 + Math.random() / 2));
    tell(t('Too many tabs of this site are open. Close some of them; this one tries again in 30 seconds.'));
  }
  function showLost() {
    if (navigator.onLine) tell(t('Connection lost. Reconnecting …'));
  }
  // After the device slept, or on a network that drops all packets, a dead socket may look open for minutes.
  function drop() {
    if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
    socket?.close();
    socket = null;
  }
  setInterval(() => {
    if ((now.run || now.asking) && socket && Date.now() - heard > SILENCE) {
      drop();
      reconnectLater();
    }
  }, 1000);
  function stopPolling() {
    clearInterval(polling);
    polling = null;
  }
  // The server closes the socket with the same code if the person was signed out or the conversation was deleted.
  async function findReason() {
    try {
      const reply = await fetch(location.pathname, { redirect: 'manual' });
      if (reply.ok || !endIfGone(reply)) reconnectLater();
    } catch {
      reconnectLater();
    }
  }
  // Stop if a response shows that the page of the conversation cannot be opened any more.
  function endIfGone({ type, status }) {
    if (type === 'opaqueredirect')
      end(() => tell(t('You were signed out. Sign in to continue; your text is kept.'), 'sign-in'));
    else if (status === 404)
      end(() => tell(t('This conversation was deleted. Your text is kept.'), 'new-conversation'));
    return Boolean(showEnd);
  }
  function end(show) {
    showEnd = show;
    clearTimeout(late);
    clearTimeout(waiting);
    stopPolling();
    ended();
    showEnd();
  }
  addEventListener('online', () => {
    tries = 0;
    drop();
    connect();
  });
  return {
    connect,
    endIfGone,
    isOpen,
    send,
    showLost,
    showEnd: () => showEnd?.(),
    stopPolling,
    hasOpened: () => hasOpened,
    isEnded: () => Boolean(showEnd),
    isFull: () => full,
    // A question was just sent, or waits for a socket: restart the silence timer, and reopen a lost socket at once.
    hurry() {
      heard = Date.now();
      if (isOpen()) return;
      tries = 0;
      connect();
    },
  };
}
