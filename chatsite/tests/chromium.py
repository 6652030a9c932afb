"""Headless Chromium for tests, through Playwright.

    def test_…(chromium, site):
        with open_page(chromium, site.url) as page:
            sign_in(page, "employee", site.passwords["employee"])
            page.get_by_label("Your question").fill("…")
            assert violations(page) == []

A page fails its test on a console error, an exception, a violation of the security policy, and a request to
another origin. Only a test that cuts the network, or is refused something, opens one with `with_problems`;
it may look at `page.problems`.
"""

import asyncio
import contextlib
import shutil

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect, sync_playwright

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}
# For pages whose text and transitions move, as they do for most people.
MOVING = {"reduced_motion": "no-preference"}
# The first is Chromium without windows: the same engine, at a third of the CPU for each page.
PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
# Frames are drawn in a thread of the browser; a separate process would take a seventh more CPU.
FLAGS += ["--in-process-gpu"]
SECONDS = 60  # for each action and expectation; reached only on a fault


@contextlib.contextmanager
def driven_chromium(flags=FLAGS):
    """Start the system's Chromium; skip the test where there is none.

    While Playwright's loop counts as running, `asyncio.run` and Django's ORM refuse to work in this thread.
    """
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def session_chromium():
    """The Chromium of this process, and the event loop of Playwright.

    The loop counts as running only in tests that use it, so that others may run loops of their own.
    """
    with driven_chromium() as browser:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)


def pytest_itemcollected(item):
    """Mark tests that use the browser, also in modules that lack the mark."""
    if "chromium" in getattr(item, "fixturenames", ()):
        item.add_marker("browser")


@pytest.fixture
def chromium(session_chromium):
    """Chromium, for pages of `open_page`."""
    browser, loop = session_chromium
    asyncio._set_running_loop(loop)
    try:
        yield browser
    finally:
        asyncio._set_running_loop(None)


@contextlib.contextmanager
def open_page(chromium, url, with_problems=False, **options):
    """Open a page with cookies and storage of its own; `options` are those of Playwright's `new_context`.

    Nothing moves on it unless the options contain MOVING: drawing an answer in animation frames takes a third
    of the CPU of a test that asks.
    """
    options = {"reduced_motion": "reduce"} | options
    with contextlib.closing(chromium.new_context(base_url=url, **options)) as context:
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        problems = page.problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(described(line)) if line.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url) if is_foreign(request, url) else None)
        yield page
        assert with_problems or problems == []


def described(line):
    """An error of the console with its address, which “404 (Not Found)” does not contain."""
    return f"{line.text} ({line.location['url']})"


def is_foreign(request, url):
    """Whether a request leaves the site at `url`."""
    return not request.url.startswith((f"{url}/", "data:", "blob:"))


def sign_in(page, username, password):
    """Sign in through the form."""
    page.goto("/accounts/sign-in/")
    page.get_by_label("Name", exact=True).fill(username)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda address: "/accounts/sign-in/" not in address)


# Transitions of folded elements stay in the list after their end.
STILL = """() => !document.getAnimations().some(
  each => each instanceof CSSTransition && each.playState === 'running'
)"""


# Sending the elements that pass, which are nearly all, would take as long as checking them.
BROKEN = """async leaveOut => {
  const {violations} = await axe.run({exclude: leaveOut}, {resultTypes: ['violations']});
  return violations.map(rule => {
    const elements = rule.nodes.slice(0, 5).map(node => String(node.target[0]));
    return `${rule.id} (${rule.impact}): ${elements.join(', ')}`;
  });
}"""


def violations(page, leave_out=()):
    """The accessibility rules that axe finds broken, each with the elements that break it.

    Waits until colours no longer change, as they do for a moment between light and dark. `leave_out` has
    selectors of elements that were checked on another page, because axe takes milliseconds for each element.
    """
    page.wait_for_function(STILL)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(BROKEN, list(leave_out))
