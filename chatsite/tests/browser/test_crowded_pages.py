"""A page of a person who has reached the limit of open pages, in Chromium."""

import shutil

import pytest
from playwright.sync_api import expect

from chatsite.tests.portal_pages import ask_and_wait, see_question, signed_in, submit, wait_for_state
from chatsite.tests.server import Site, prepared, temporary_folder, wait_for_documents

pytestmark = [pytest.mark.browser, pytest.mark.server]

FULL = "Too many tabs of this site are open."
KEPT = "The question could not be sent. It is kept here; try again."
COUNTED = """(() => {
    const Known = window.WebSocket;
    window.tries = 0;
    window.WebSocket = class extends Known { constructor(...rest) { super(...rest); window.tries++; } };
})()"""
LOOKED_AT = "document.dispatchEvent(new Event('visibilitychange'))"
WAIT_SECONDS = 4  # a page without a delay would have tried several times


@pytest.fixture
def small_site():
    """A site that allows each person one connection."""
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_USER_CONNECTIONS="1") as site:
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_page_beyond_the_limit_says_so_and_works_when_another_is_closed(chromium, small_site):
    wait_for_documents(small_site)
    with signed_in(chromium, small_site, with_problems=True) as second:
        with signed_in(chromium, small_site) as first:
            ask_and_wait(first)
            second.goto(first.url)
            expect(second.locator("#banner")).to_contain_text(FULL)
            second.evaluate(COUNTED)
            second.wait_for_timeout(WAIT_SECONDS * 1000)
            assert second.evaluate("window.tries") == 0, "it does not wait"
            submit(second, "And sick leave?")
            expect(second.locator("#problem")).to_contain_text(KEPT)
            expect(second.locator("#question")).to_have_value("And sick leave?")
            assert second.evaluate("window.tries") == 1
        second.evaluate(LOOKED_AT)
        expect(second.locator("#banner")).to_be_hidden()
        second.locator("#question").press("Enter")
        see_question(second, "And sick leave?")
        wait_for_state(second, "complete")
