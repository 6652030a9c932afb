"""Headless Chromium, driven over its own protocol: for tests of what a person sees and does.

    def test_…(browser, site):
        with browser.page(site.url) as page:
            page.go("/")
            page.type("#id_username", "employee"); page.press("Enter")
            page.wait_for("main h1")
            assert page.problems == []          # console errors, exceptions, refused by the security policy

Tests that use the fixture `browser` are skipped where no Chromium is installed.
"""

import contextlib
import json
import shutil
import subprocess
import time

import pytest
from websockets.sync.client import connect

from chatsite.tests.leftovers import temporary_folder
from chatsite.tests.page import BrowserError, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


class Browser:
    """One Chromium process. Its pages share nothing: each has cookies and storage of its own."""

    def __init__(self, program):
        self.profile = temporary_folder()
        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack = contextlib.ExitStack()
        self.connection = self.stack.enter_context(connect(self._address(), max_size=None, proxy=None))
        self.number = 0
        self.pages = {}

    def _address(self):
        port_file = self.profile / "DevToolsActivePort"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if port_file.exists() and len(lines := port_file.read_text().splitlines()) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            time.sleep(0.05)
        raise BrowserError("Chromium did not start.")

    def close(self):
        self.stack.close()
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def page(self, url, width=1280, height=800, mobile=False, dark=False):
        """A page in a fresh profile; `url` is the site without a slash at its end. Use it with `with`."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, url, session, context)
        self.pages[session] = page
        page.prepare(width, height, mobile, dark)
        return page

    def call(self, method, session=None, **parameters):
        """Send a command and return its result; events that arrive meanwhile go to their pages."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.connection.send(json.dumps(message))
        while True:
            answer = json.loads(self.connection.recv(timeout=120))
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self._note(answer)

    def listen(self, seconds):
        """Take in events for a while."""
        try:
            self._note(json.loads(self.connection.recv(timeout=seconds)))
        except TimeoutError:
            pass

    def _note(self, event):
        page = self.pages.get(event.get("sessionId"))
        if page and "method" in event:
            page.note(event["method"], event["params"])


def program():
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of a session."""
    if not (found := program()):
        pytest.skip("Chromium is not installed: apt-get install chromium")
    running = Browser(found)
    yield running
    running.close()
