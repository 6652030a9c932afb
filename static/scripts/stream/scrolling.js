// Keeps the end of the growing text in view until the person scrolls up. The question stays in view too, except for
// long answers, which need the space. `place()` returns {top, prose, isLong} of the answer; call keepUp() after
// each drawing. Sends and receives nothing.

const NEAR = 4; // within this many pixels of the end, the view counts as at the end

export function scrolling({ $ }, isRunning, place) {
  const jump = $('#jump');
  const scrollHeight = () => document.documentElement.scrollHeight;
  const isAtEnd = () => innerHeight + scrollY > scrollHeight() - NEAR;
  const scrollToEnd = () => scrollTo({ top: scrollHeight(), behavior: 'instant' });
  let follows = false;
  let lastTop = scrollY;
  let lastHeight = scrollHeight();

  function followText() {
    const { top, prose, isLong } = place();
    const bar = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const start = top?.isConnected ? top.getBoundingClientRect().top : Infinity;
    const length = prose ? prose.getBoundingClientRect().bottom - start : 0;
    const room = Math.min(innerHeight, $('.dock').getBoundingClientRect().top) - bar;
    if (start === Infinity || (isLong && length > room)) scrollToEnd();
    else
      scrollTo({
        top: Math.max(scrollY, Math.min(scrollHeight(), scrollY + start - bar)),
        behavior: 'instant',
      });
  }
  function keepUp() {
    if (follows) followText();
    updateJumpButton();
  }
  function updateJumpButton() {
    jump.hidden = follows || isAtEnd() || !isRunning();
  }
  function leaveEnd() {
    follows = false;
    updateJumpButton();
  }
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
  return {
    isAtEnd,
    keepUp,
    follow() {
      follows = true;
    },
  };
}
