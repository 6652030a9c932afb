"""Two devices with one conversation open, in Chromium: each shows what the other asks within two seconds."""

import pytest

from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.test_walkthrough import QUESTION, ask, signed_in, wait_for_state

pytestmark = [pytest.mark.browser, pytest.mark.server]

SECONDS = 2
LAST = "[...document.querySelectorAll('.answer .prose')].at(-1).innerText"


def test_an_idle_page_shows_what_is_asked_on_another_device_and_how_it_is_answered(browser, slow_site):
    with (
        signed_in(browser, slow_site, "employee") as desk,
        signed_in(browser, slow_site, "employee") as phone,
    ):
        desk.go("/")
        ask(desk, QUESTION)
        wait_for_state(desk, "complete")
        phone.go(desk.path)
        phone.settle(0.5)
        desk.type("#question", LONG_QUESTION)
        desk.press("Enter")
        desk.wait_for(".question", LONG_QUESTION)
        phone.wait_for(".question", LONG_QUESTION, SECONDS)
        desk.wait_until(f"{LAST}.length > 60")
        phone.wait_until(f"{LAST}.length > 60", SECONDS)
        assert phone.run("document.querySelector('#stop').hidden") is False
        phone.click("#stop")
        for page in (desk, phone):
            wait_for_state(page, "stopped", SECONDS)
        assert desk.texts(".question") == phone.texts(".question")
        assert desk.run(LAST) == phone.run(LAST)
        # And the other way round.
        phone.type("#question", LONG_QUESTION)
        phone.press("Enter")
        desk.wait_until("document.querySelectorAll('.question').length === 3")
        desk.click("#stop")
        wait_for_state(phone, "stopped", SECONDS)
        assert desk.problems == phone.problems == []
