"""How an answer appears in headless Chromium: gaps between paints, layout shift, and the end.

    python benchmarks/bench_portal.py [--rounds 3] [--screenshots FOLDER]

Starts the real site with a fake model, which writes a formatted answer at 30 tokens a second and needs 8
seconds for follow-up questions. Linux only.
"""

import argparse
import asyncio
import contextlib
import re
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from playwright.sync_api import TimeoutError  # noqa: E402
from streaming.world import world  # noqa: E402

from chat.tests.fake_openai import FakeOpenAI, completion_for  # noqa: E402
from chat.tests.upstream_faults import chunk  # noqa: E402
from chatsite.tests.chromium import MOVING, driven_chromium, open_page, sign_in  # noqa: E402

TOKENS_A_SECOND = 30
FOLLOWUP_SECONDS = 8
QUESTION = "How many days of leave may be carried into the next year, and until when?"
TEXT = """## Carrying leave over

Up to **five unused days** may be carried into the next year without a request {0}. They must be used by 31
March; after that date they lapse and are not paid out {0}. Part-time staff carry the *same share* {1}.

### What to do

1. Look up the balance in the leave sheet
2. Agree **exceptions** in writing with the head of department {0}
   - at most ten days
   - until 30 June
3. Enter the dates, see [the guide](https://intranet.example/leave)

- [x] Balance looked up
- [ ] Dates entered

| Case | Days | Agreed by | Use by |
|:-----|-----:|:---------:|-------:|
| Ordinary | 5 | – | 31 March |
| Exceptional | 10 | Head of department | 30 June |
| Parental leave | all | – | 31 December |

```python
from datetime import date

def last_day(year: int, exception: bool = False) -> date:
    \"\"\"Last day on which carried leave may be used.\"\"\"
    return date(year, 6, 30) if exception else date(year, 3, 31)  # page 4
```

The share of someone who works \\(h\\) of \\(H\\) hours is

\\[ d = 5 \\cdot \\frac{{h}}{{H}} \\]

> Carried days must be used by 31 March {0}.

The rota office reminds every crew in the first week of February, so that nobody loses any[^1].

[^1]: Ask the rota office where a reminder is missing.
"""
LABEL = re.compile(r"^(\S+\.(?:pdf|md|docx|html|txt)(?:#\S*)?): ", re.MULTILINE)
# Records the time of each frame in which the visible text has changed, layout shifts, and visible markup.
WATCH = """
window.paints = []; window.shift = 0; window.raw = []; window.ready = 0;
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({type: 'layout-shift', buffered: true});
const MARKUP = /\\*\\*|```|~~|\\|\\s*:?-|^#|^\\||\\]\\(|\\\\[(\\[]|\\[\\^|- \\[/m;
let before = '';
const frame = () => {
  const prose = [...document.querySelectorAll('.prose')].at(-1);
  const text = prose?.innerText ?? '';
  if (text !== before) window.paints.push(performance.now());
  before = text;
  const send = document.querySelector('#send');
  if (!window.ready && document.querySelector('.source-row') && send && !send.hidden)
    window.ready = performance.now();
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
setInterval(() => {
  const text = [...document.querySelectorAll('.prose')].at(-1)?.innerText ?? '';
  if (MARKUP.test(text)) window.raw.push(text.slice(-80));
}, 50);
"""


class Model(FakeOpenAI):
    """Writes TEXT with labels of the prompt at an even pace, and follow-up questions slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.side = side

    async def _answer(self, exchange):  # type: ignore[no-untyped-def]
        if exchange.request.streaming:
            self._script = [tell]
        await super()._answer(exchange)


def side(request):  # type: ignore[no-untyped-def]
    behave = completion_for(request)
    if "short questions" not in request.prompt:
        return behave

    async def slow(exchange):  # type: ignore[no-untyped-def]
        await asyncio.sleep(FOLLOWUP_SECONDS)
        await behave(exchange)

    return slow


async def tell(exchange) -> None:  # type: ignore[no-untyped-def]
    labels = list(dict.fromkeys(LABEL.findall(exchange.request.prompt))) or ["none"]
    text = TEXT.format(f"[{labels[0]}]", f"[{labels[-1]}]")
    await exchange.head()
    loop = asyncio.get_running_loop()
    due = loop.time()
    for piece in re.findall(r"\s*\S{1,5}", text):
        await exchange.send(chunk(piece))
        due += 1 / TOKENS_A_SECOND
        await asyncio.sleep(max(0, due - loop.time()))
    await exchange.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--screenshots", type=Path)
    options = parser.parse_args()
    with Model() as model, world(model.port, people=1) as site, driven_chromium() as chromium:
        for number in range(options.rounds):
            measure(chromium, site, options.screenshots if not number else None)


def measure(chromium, site, folder) -> None:  # type: ignore[no-untyped-def]
    """Measure one answer, from the question to its follow-up questions."""
    with open_page(chromium, site.site.url, viewport={"width": 1280, "height": 900}, **MOVING) as page:
        sign_in(page, "employee", site.site.passwords["employee"])
        page.goto("/")
        page.add_init_script(WATCH)
        page.get_by_label("Your question").fill(QUESTION)
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector(".prose h3")
        if folder:
            page.wait_for_selector(".prose .table")
            page.screenshot(path=folder / "streaming.png")
        page.wait_for_selector("#send:not([hidden])", timeout=60_000)
        paints, ready = page.evaluate("[window.paints, window.ready]")
        raw, shift = page.evaluate("[window.raw, window.shift]")
        gaps = [after - before for before, after in pairwise(paints)]
        p95 = quantiles(gaps, n=20)[18]
        late = ready - max(paint for paint in paints if paint <= ready)
        print(f"{len(paints)} paints; gaps: median {median(gaps):.0f} ms (target 50), p95 {p95:.0f} (120)")
        print(f"layout shift {shift:.4f} (target 0.02); samples that show markup: {len(raw)} {raw[:2]}")
        print(f"sources and Send {late:.0f} ms after the last word (target 150)")
        # On a slow machine, the site gives up waiting for the follow-up questions.
        with contextlib.suppress(TimeoutError):
            page.wait_for_selector(".next button", timeout=20_000)
        after = page.evaluate("performance.now()") - ready
        count = page.locator(".next button").count()
        print(f"{count} follow-up questions {after / 1000:.1f} s later", flush=True)
        if folder:
            pictures(page, folder)


def pictures(page, folder) -> None:  # type: ignore[no-untyped-def]
    """Take screenshots of the answer, its source page, and a statement that was not found."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1440, 1280, 1024, 390):
            page.set_viewport_size({"width": width, "height": 844 if width == 390 else 900})
            page.locator(".prose .cite").first.scroll_into_view_if_needed()
            page.mouse.move(0, 0)
            page.screenshot(path=folder / f"answer-{width}-{scheme}.png")
            page.locator(".prose .cite").first.click()
            page.get_by_role("tab", name="Page").click()
            page.wait_for_selector(".boxes rect")
            page.wait_for_function("() => document.querySelector('.stage img').complete")
            page.screenshot(path=folder / f"proof-{width}-{scheme}.png")
            page.keyboard.press("Escape")
            page.wait_for_selector("#source", state="hidden")
        page.set_viewport_size({"width": 1280, "height": 900})
        missing = page.locator(".missing").first
        if missing.count():
            missing.scroll_into_view_if_needed()
            page.locator(".missing ~ .nowrap .cite, .nowrap:has(.missing) .cite").first.hover()
            page.wait_for_selector(".cite-card")
            page.screenshot(path=folder / f"not-found-{scheme}.png")


if __name__ == "__main__":
    main()
