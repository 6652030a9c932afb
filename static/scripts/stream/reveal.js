// Reveals the newest text of an answer at an even pace, although the server sends it in bursts every 0.2 s.
// reveal(prose, parsed, painted) returns what answer_view.js calls: reset(blocks, html), block(html), show(html),
// grow(text), draw(), finish(), flush() and isDone(). `painted` is called after every frame.

const SECONDS = 0.24; // time to reveal one burst, slightly longer than the pause between two
const LAST_SECONDS = 0.08; // time to reveal the rest once the text is complete
const MIN_RATE = 40; // minimum characters per second
const WHOLE = 'math, .cite, .block-head, sup'; // elements that are revealed all at once
const still = matchMedia('(prefers-reduced-motion: reduce)');

export function reveal(prose, parsed, painted) {
  let box = prose.querySelector('.open');
  let blocks = []; // HTML of finished blocks that are not completely revealed yet
  let html = ''; // HTML of the open block, as the server sent it
  let grown = ''; // text that has arrived since then, to be appended to the open block
  let ends = []; // for each of `blocks`: its last node in the box, and the character position of its end
  let steps = []; // one for each text node and element of the box
  let shown = 0; // number of revealed characters in the box
  let total = 0;
  let rate = MIN_RATE;
  let last = 0;
  let frame = 0;
  let changed = false;
  let ending = false;

  if (box) {
    for (const node of [...box.childNodes]) visit(node);
    shown = total;
  }

  function addText(node) {
    const text = node.data;
    const rest = document.createElement('span');
    rest.className = 'coming';
    steps.push({
      start: total,
      show(count) {
        const end = Math.max(0, Math.min(count, text.length));
        if (node.data.length === end) return;
        node.data = text.slice(0, end);
        // Lay out the whole word invisibly, so that it does not jump to the next line while it is revealed.
        rest.textContent = end ? text.slice(end).match(/^\S{0,40}/)[0] : '';
        if (rest.textContent) node.after(rest);
        else rest.remove();
      },
    });
    total += text.length;
  }
  function visit(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data.trim()) addText(node);
      return;
    }
    const start = total;
    if (node.matches(WHOLE)) total += node.textContent.length || 1;
    else for (const child of [...node.childNodes]) visit(child);
    steps.push({ start, show: count => node.toggleAttribute('hidden', count <= 0 && shown < total) });
  }
  function lastText() {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    let found = null;
    while (walker.nextNode()) if (walker.currentNode.data.trim()) found = walker.currentNode;
    return found;
  }
  function build() {
    changed = false;
    if (!box?.isConnected) {
      box = document.createElement('div');
      box.className = 'open';
      prose.append(box);
    }
    box.replaceChildren();
    steps = [];
    ends = [];
    total = 0;
    for (const block of blocks) {
      box.append(parsed(block), '\n');
      measureNew();
      ends.push([box.lastChild, total]);
    }
    box.append(parsed(html));
    const end = grown && lastText();
    if (end) end.data += grown;
    measureNew();
  }
  function measureNew() {
    const from = ends.length ? ends.at(-1)[0].nextSibling : box.firstChild;
    for (let node = from; node; node = node.nextSibling) visit(node);
  }
  function paint() {
    for (const { start, show } of steps) show(Math.floor(shown) - start);
    settle();
  }
  // Move completely revealed blocks out of the box.
  function settle() {
    let gone = 0;
    while (ends.length && shown >= ends[0][1]) {
      const [node, end] = ends.shift();
      if (box.previousElementSibling) box.before('\n');
      while (box.firstChild !== node) box.before(box.firstChild);
      node.remove();
      blocks.shift();
      gone = end;
    }
    if (!gone && (blocks.length || html)) return;
    shown -= gone;
    if (blocks.length || html) {
      build();
      for (const { start, show } of steps) show(Math.floor(shown) - start);
      return;
    }
    box?.remove();
    box = null;
    steps = [];
    total = shown = 0;
  }
  function tick(now) {
    frame = 0;
    shown = Math.min(total, shown + (rate * Math.min(100, now - last)) / 1000);
    last = now;
    paint();
    painted();
    schedule();
  }
  function schedule() {
    if (!frame && !isDone()) frame = requestAnimationFrame(tick);
  }
  const isDone = () => !changed && shown >= total;
  function flush() {
    if (changed) build();
    shown = total;
    paint();
  }
  // Start revealing new text; the following animation frames continue.
  function draw() {
    if (!changed) return;
    if (still.matches || document.hidden) {
      flush();
      painted();
      return;
    }
    build();
    rate = Math.max(MIN_RATE, (total - shown) / (ending ? LAST_SECONDS : SECONDS));
    paint();
    if (!frame) last = performance.now();
    if (isDone()) queueMicrotask(painted);
    else schedule();
  }

  return {
    reset(all, value) {
      prose.replaceChildren();
      box = null;
      blocks = [...all];
      html = value;
      grown = '';
      changed = true;
      flush();
    },
    block(value) {
      blocks.push(value);
      html = grown = '';
      changed = true;
    },
    show(value) {
      html = value;
      grown = '';
      changed = true;
    },
    grow(text) {
      grown += text;
      changed = true;
    },
    finish() {
      ending = true;
      if (!isDone()) {
        changed = true;
        draw();
      } else queueMicrotask(painted);
    },
    flush,
    draw,
    isDone,
  };
}
