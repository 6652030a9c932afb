"""Take the pictures of the documentation, from a new site with the demo's accounts and documents.

    .venv-dev/bin/python -m benchmarks.pictures [FOLDER]

Writes the PNG files into FOLDER (default: docs/). A scripted model writes the answer, whose last statement
differs from its source. Look at each picture before you commit it. Needs Chromium.
"""

import argparse
import re
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Page, ViewportSize, expect

from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_faults import Exchange, answer, completion
from chatsite.tests.chromium import driven_chromium, open_page, sign_in

from .streaming.world import World, world

DOCS = Path(__file__).resolve().parent.parent / "docs"
QUESTION = "How many days a year may I work from abroad, and how do I apply?"
TITLE = "Working from abroad"
SHORT_STAYS, HOW_TO_APPLY = "20 working days in a calendar year", "Use form PF-27"  # words of the passages
ANSWER = """You may work from abroad for **up to 20 working days in a calendar year**, divided into no
more than three stays {short}. Days that are not used cannot be carried over {short}.

## How to apply

1. Use form PF-27 and send it to your manager at least six weeks before departure {apply}
2. State the address, the dates and the reason {apply}
3. Wait for the written approval before you book {apply}

| Stay | Longest | Approved |
|:-----|--------:|:---------|
| Short | 20 working days | by the manager |
| Longer | 60 working days | only in special family situations |

The manager answers within five working days and passes the form to the People Team {apply}.
"""
SOURCE = re.compile(r"^(working-abroad\.md#\S+): ", re.MULTILINE)
ACCESS = {
    "Person": "employee",
    "Document": "salary-bands-2026.xlsx",
    "Question": "How many days of leave may I carry over?",
    "Reason": "Ticket 4711: which leave rules the employee can see",
}
DESK, PANEL, PANEL_DARK = (1280, 900), (1440, 900), (1024, 900)
PHONE, ADMIN, TALL = (390, 844), (1100, 900), (1280, 1100)
ABOVE_CARD = 100  # pixels of the page above the card of a citation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=DOCS)
    folder = parser.parse_args().folder
    with FakeOpenAI() as model, driven_chromium() as chromium:
        model.side = lambda request: completion(TITLE if "title of at most" in request.prompt else "")
        model.script(write_answer)
        with world(model.port, people=1) as site:
            take_portal(chromium, site, folder)
            take_access_page(chromium, site, folder)


async def write_answer(exchange: Exchange) -> None:
    """Stream ANSWER with the labels of the passages that contain its words."""
    _, *parts = SOURCE.split(exchange.request.prompt)
    passages = dict(zip(parts[::2], parts[1::2], strict=True))
    short, apply = (
        next(f"[{label}]" for label, text in passages.items() if words in text)
        for words in (SHORT_STAYS, HOW_TO_APPLY)
    )
    await answer(*re.findall(r"\s*\S+", ANSWER.format(short=short, apply=apply)))(exchange)


def take_portal(chromium: Browser, site: World, folder: Path) -> None:
    """An answer, the panel of its source, and the statement that its source does not contain."""
    with open_page(chromium, site.site.url, viewport=size(DESK)) as page:
        sign_in(page, "employee", site.site.passwords["employee"])
        page.goto("/")
        page.get_by_label("Your question").fill(QUESTION)
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".source-row").first).to_be_visible()
        expect(page.locator(".missing").first).to_be_visible()
        expect(page.get_by_role("link", name=TITLE)).to_be_visible()
        page.reload()
        expect(page.locator(".missing").first).to_be_visible()

        take(page, folder / "portal-answer.png", DESK)
        take(page, folder / "portal-narrow-dark.png", PHONE, scheme="dark")
        for name, window, scheme in (
            ("portal-panel", PANEL, "light"),
            ("portal-panel-dark", PANEL_DARK, "dark"),
        ):
            page.set_viewport_size(size(window))
            page.locator(".prose .cite").first.click()
            expect(page.locator("#source mark").first).to_be_visible()
            take(page, folder / f"{name}.png", window, scheme)
            page.keyboard.press("Escape")
            expect(page.locator("#source")).to_be_hidden()
        take_missing(page, folder / "portal-not-found.png")


def take_missing(page: Page, path: Path) -> None:
    """A picture of the statement that was not found, and of all below it up to the list of sources."""
    page.set_viewport_size(size(TALL))
    page.emulate_media(color_scheme="light")
    scroll_to_top(page)
    page.locator(".missing ~ .nowrap .cite, .nowrap:has(.missing) .cite").first.hover()
    expect(page.locator(".cite-card")).to_be_visible()
    card, source = box_of(page, ".cite-card"), box_of(page, ".source-row >> nth=-1")
    main, top = box_of(page, "main"), card["y"] - ABOVE_CARD
    clip = FloatRect(x=main["x"], y=top, width=main["width"], height=source["y"] + source["height"] - top)
    page.screenshot(path=path, clip=clip)


def box_of(page: Page, selector: str) -> FloatRect:
    box = page.locator(selector).bounding_box()
    assert box is not None, selector
    return box


def take_access_page(chromium: Browser, site: World, folder: Path) -> None:
    with open_page(chromium, site.site.url, viewport=size(ADMIN)) as page:
        sign_in(page, "admin", site.site.passwords["admin"])
        page.goto("/admin/ingestion/document/access/")
        for label, value in ACCESS.items():
            page.get_by_label(label, exact=False).first.fill(value)
        page.get_by_role("button", name="Show").click()
        expect(page.locator("#found")).to_be_visible()
        take(page, folder / "admin-access.png", ADMIN)


def take(page: Page, path: Path, window: tuple[int, int], scheme: str = "light") -> None:
    """A picture of the window, from its top, without a pointer over it."""
    page.set_viewport_size(size(window))
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.mouse.move(0, 0)
    scroll_to_top(page)
    page.screenshot(path=path, animations="disabled")


def scroll_to_top(page: Page) -> None:
    """Scroll the page and all of its areas to the top, and remove the focus."""
    page.evaluate("""() => {
        document.activeElement.blur();
        for (const each of document.querySelectorAll('*')) each.scrollTop = 0;
    }""")


def size(window: tuple[int, int]) -> ViewportSize:
    return ViewportSize(width=window[0], height=window[1])


if __name__ == "__main__":
    main()
