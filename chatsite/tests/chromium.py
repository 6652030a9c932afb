"""Headless Chromium for tests, through Playwright.

    def test_…(chromium, site):
        with open_page(chromium, site.url) as page:
            sign_in(page, "employee", site.passwords["employee"])
            page.get_by_label("Your question").fill("…")
            assert violations(page) == []

A page fails its test on a console error, an exception, a violation of the security policy, and a request to
another origin.
"""

import contextlib
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
SECONDS = 60  # for each action and expectation; only a fault reaches it


@contextlib.contextmanager
def driven_chromium(flags=FLAGS):
    """Start the system's Chromium; skip the test where there is none.

    While Playwright runs, the thread has a running event loop: `asyncio.run` and Django's ORM refuse to work.
    """
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium():
    """One Chromium for a module, so that the modules after it may run event loops of their own."""
    with driven_chromium() as browser:
        yield browser


@contextlib.contextmanager
def open_page(chromium, url, **options):
    """Open a page with cookies and storage of its own; `options` are those of Playwright's `new_context`."""
    with contextlib.closing(chromium.new_context(base_url=url, **options)) as context:
        context.set_default_timeout(SECONDS * 1000)
        page = context.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url) if is_foreign(request, url) else None)
        yield page
        assert problems == []


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


def violations(page):
    """The accessibility rules that axe finds broken, each with the elements that break it."""
    return [
        f"{rule['id']} ({rule['impact']}): " + ", ".join(str(node["target"][0]) for node in rule["nodes"][:5])
        for rule in Axe().run(page).response["violations"]
    ]
