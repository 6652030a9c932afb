"""A page of somebody who has as many open as the site keeps for one person, in Chromium."""

import shutil

import pytest

from chatsite.tests.server import Site, temporary_folder
from chatsite.tests.test_reconnecting import BANNER, BOX
from chatsite.tests.test_walkthrough import QUESTION, ask, signed_in, wait_for_state

pytestmark = [pytest.mark.browser, pytest.mark.server]

FULL = "Too many tabs of this site are open."
KEPT = "The question could not be sent. It is kept here; try again."
COUNTED = """(() => {
    const Known = window.WebSocket;
    window.tries = 0;
    window.WebSocket = class extends Known { constructor(...rest) { super(...rest); window.tries++; } };
})()"""
LOOKED_AT = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture
def small_site():
    folder = temporary_folder()
    try:
        with Site(folder, CHATSITE_USER_CONNECTIONS="1") as site:
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_page_too_many_says_so_waits_and_works_when_another_is_closed(browser, small_site):
    with signed_in(browser, small_site, "employee") as second:
        with signed_in(browser, small_site, "employee") as first:
            first.go("/")
            ask(first, QUESTION)
            wait_for_state(first, "complete")
            second.go(first.path)
            second.wait_for("#banner", FULL)
            second.run(COUNTED)
            second.settle(4)
            assert second.run("window.tries") == 0, "it does not wait"
            second.type("#question", "And sick leave?")
            second.press("Enter")
            second.wait_for("#problem", KEPT)
            assert second.run(BOX) == "And sick leave?"
            assert second.run("window.tries") == 1
        second.run(LOOKED_AT)
        second.wait_until(BANNER)
        second.press("Enter")
        second.wait_for(".question", "And sick leave?")
        wait_for_state(second, "complete")
