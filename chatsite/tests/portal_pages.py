"""Actions of a person on the portal's pages in Chromium, and the waits between them."""

import contextlib
import time

from playwright.sync_api import expect

from chatsite.tests.chromium import open_page
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS

QUESTION = "When must carried days of leave be used?"
ANSWER_SECONDS = 30
WIDE = {"viewport": {"width": 1440, "height": 800}}
LAST = "[...document.querySelectorAll('.answer')].at(-1)"
LAST_TEXT = f"({LAST}?.querySelector('.prose')?.innerText ?? '')"


@contextlib.contextmanager
def signed_in(chromium, site, username="employee", **options):
    """Open the first page as a person of the demo; `options` are those of `open_page`.

    The session is created without Chromium, which would need a second for the form. Tests of the form use
    `sign_in`.
    """
    cookies = site.sign_in(username).cookies
    with open_page(chromium, site.url, **options) as page:
        page.context.add_cookies(
            [{"name": name, "value": value, "url": site.url} for name, value in cookies.items()]
        )
        page.goto("/")
        yield page


def submit(page, question):
    """Send a question: with Enter on a desktop, with the button on a phone, where Enter starts a new line."""
    page.locator("#question").fill(question)
    if page.evaluate("matchMedia('(pointer: coarse)').matches"):
        page.locator("#send").click()
    else:
        page.locator("#question").press("Enter")


def ask(page, question):
    """Send a question, and wait until its conversation shows it."""
    submit(page, question)
    page.wait_for_url("**/c/**", wait_until="commit")
    see_question(page, question)


def see_question(page, question, seconds=ANSWER_SECONDS):
    """Wait until the conversation shows a question."""
    wait_within(seconds, expect(page.locator(".question").filter(has_text=question).last).to_be_visible)


def wait_for_state(page, state, seconds=ANSWER_SECONDS):
    """Wait until the last answer is in a state, even if the state lasts only for a moment."""
    wait_until(page, f"{LAST}?.dataset.state === '{state}'", seconds)


def wait_until(page, script, seconds=ANSWER_SECONDS):
    """Wait until a JavaScript expression is true. It is evaluated again in every frame, and on a new page."""
    # A function, because the pages' security policy forbids evaluating a string repeatedly.
    page.wait_for_function(f"() => ({script})", timeout=(seconds + MARGIN_SECONDS) * 1000)


def wait_within(seconds, expectation, *arguments):
    """Call a Playwright expectation; its timeout is the promised seconds and the margin."""
    expectation(*arguments, timeout=(seconds + MARGIN_SECONDS) * 1000)


def open_connected(page, url):
    """Open a conversation, and wait until its socket has subscribed to it."""
    sent = []

    def note(frame):
        sent.append(frame)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    page.goto(url)
    deadline = time.monotonic() + HANG_SECONDS
    while not sent:
        assert time.monotonic() < deadline, "the page has no socket"
        page.wait_for_timeout(20)


def prose(page):
    """The visible text of the last answer."""
    return page.locator(".answer").last.locator(".prose").inner_text()


def ask_and_wait(page, question=QUESTION):
    """Ask in a new conversation, and wait for the whole answer and the questions to ask next.

    Until these are stored, a newly opened page shows the answer as unfinished.
    """
    page.goto("/")
    ask(page, question)
    wait_for_state(page, "complete")
    deadline = time.monotonic() + ANSWER_SECONDS
    while 'aria-busy="true"' in page.request.get(page.url).text():
        assert time.monotonic() < deadline, "the answer does not end"
        page.wait_for_timeout(100)
