"""Two devices with one conversation open, in Chromium: each shows what the other asks within two seconds."""

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import MOVING
from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.portal_pages import (
    LAST_TEXT,
    ask_and_wait,
    open_connected,
    prose,
    see_question,
    signed_in,
    submit,
    wait_for_state,
    wait_until,
)

pytestmark = [pytest.mark.browser, pytest.mark.server]

SECONDS = 2
BEGUN = f"{LAST_TEXT}.length > 60"


def test_an_idle_page_shows_what_is_asked_on_another_device_and_how_it_is_answered(chromium, slow_site):
    with signed_in(chromium, slow_site, **MOVING) as desk, signed_in(chromium, slow_site, **MOVING) as phone:
        ask_and_wait(desk)
        open_connected(phone, desk.url)
        submit(desk, LONG_QUESTION)
        see_question(desk, LONG_QUESTION)
        see_question(phone, LONG_QUESTION, SECONDS)
        wait_until(desk, BEGUN)
        wait_until(phone, BEGUN, SECONDS)
        expect(phone.locator("#stop")).to_be_visible()
        phone.locator("#stop").click()
        for page in (desk, phone):
            wait_for_state(page, "stopped", SECONDS)
        assert desk.locator(".question").all_inner_texts() == phone.locator(".question").all_inner_texts()
        assert prose(desk) == prose(phone)
        # The same in the other direction.
        submit(phone, LONG_QUESTION)
        expect(desk.locator(".question")).to_have_count(3)
        desk.locator("#stop").click()
        wait_for_state(phone, "stopped", SECONDS)
