"""An answer whose reader loses the network, sleeps, or changes devices, or whose server dies, in Chromium."""

import time
from urllib.parse import urlsplit

import psycopg
import pytest
from playwright.sync_api import expect

from chatsite.tests.browser.wire import Wire
from chatsite.tests.chromium import MOVING
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.portal_pages import (
    LAST_TEXT,
    QUESTION,
    ask,
    ask_and_wait,
    prose,
    signed_in,
    submit,
    wait_for_state,
    wait_until,
)
from chatsite.tests.server import reading_parameters

pytestmark = [pytest.mark.browser, pytest.mark.server]

OFFLINE = "You are offline. Your text is kept, and the answer continues on the server."
LOST = "Connection lost."
BEGUN = f"{LAST_TEXT}.length > 10"
STILL = f"""(now => {{
    if (window.seen?.now !== now) window.seen = {{now, since: performance.now()}};
    return performance.now() - window.seen.since > 400;
}})({LAST_TEXT})"""  # also waits until text that arrived before the cut is shown
WRITTEN = """
    SELECT coalesce(max(entry.last), 0)
    FROM chat_journalentry AS entry JOIN chat_run AS run ON run.id = entry.run_id
    WHERE run.conversation_id = %s
"""
AN_HOUR_LATER = "(now => { Date.now = () => now() + 3_600_000; })(Date.now.bind(Date))"


@pytest.fixture
def wire(slow_site):
    """The network between a page and the site, which makes its sessions."""
    with Wire(slow_site.url) as between:
        between.sign_in = slow_site.sign_in
        yield between


def begin(page, question=QUESTION):
    """Ask a question, and wait for the beginning of its answer."""
    page.goto("/")
    ask(page, question)
    wait_until(page, BEGUN)


def assert_same_after_a_reload(page):
    shown = page.locator("#thread").inner_text()
    page.reload()
    assert page.locator("#thread").inner_text() == shown


def wait_until_written(site, page, events=20):
    """Wait until so many events of the answer are in the database."""
    conversation = urlsplit(page.url).path.split("/")[2]
    deadline = time.monotonic() + HANG_SECONDS
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while connection.execute(WRITTEN, [conversation]).fetchone()[0] < events:
            assert time.monotonic() < deadline, "the answer is not written"
            page.wait_for_timeout(50)


def test_a_page_that_was_offline_shows_the_complete_answer_and_the_typed_text(chromium, wire, slow_site):
    with (
        signed_in(chromium, wire, with_problems=True, **MOVING) as page,
        signed_in(chromium, slow_site, **MOVING) as phone,
    ):
        begin(page)
        wire.cut()
        page.context.set_offline(True)
        phone.goto(f"{slow_site.url}{urlsplit(page.url).path}")
        expect(page.locator("#banner")).to_contain_text(OFFLINE)
        wait_until(page, STILL)
        before = len(prose(page))
        page.locator("#question").fill("And sick leave?")
        expect(page.locator("#send")).to_have_attribute("aria-disabled", "true")
        expect(page.locator("#hint")).to_have_text("You are offline")
        wait_for_state(phone, "complete")
        assert len(prose(page)) == before < len(prose(phone))
        wire.mend()
        page.context.set_offline(False)
        wait_for_state(page, "complete", 2)
        expect(page.locator("#banner")).to_be_hidden()
        assert prose(page) == prose(phone)
        assert "31 March" in prose(page)
        expect(page.locator("#question")).to_have_value("And sick leave?")
        expect(page.locator(".answer .next")).to_be_visible()  # it comes after the rest
        assert_same_after_a_reload(page)
        expect(page.locator("#question")).to_have_value("And sick leave?")


def test_a_lost_connection_is_reported_and_restored(chromium, wire):
    with signed_in(chromium, wire, with_problems=True, **MOVING) as page:
        begin(page)
        wire.cut()
        expect(page.locator("#banner")).to_contain_text(LOST)
        wire.mend()
        wait_for_state(page, "complete")
        expect(page.locator("#banner")).to_be_hidden()
        assert "31 March" in prose(page)
        expect(page.locator(".answer .next")).to_be_visible()  # it comes after the rest
        assert_same_after_a_reload(page)


def test_a_page_that_slept_notices_that_its_connection_is_dead(chromium, wire):
    with signed_in(chromium, wire, with_problems=True, **MOVING) as page:
        begin(page)
        wire.swallow()
        # Nothing comes while it sleeps, and then its clock has jumped.
        page.evaluate(AN_HOUR_LATER)
        wait_for_state(page, "complete")
        expect(page.locator(".answer .next")).to_be_visible()  # it comes after the rest
        wire.cut()  # the browser's other connections are dead, too
        wire.mend()
        assert "31 March" in prose(page)
        assert_same_after_a_reload(page)


def test_after_a_killed_server_the_page_keeps_the_text_and_says_so(chromium, slow_site):
    with signed_in(chromium, slow_site, with_problems=True, **MOVING) as page:
        begin(page, LONG_QUESTION)
        wait_until_written(slow_site, page)
        slow_site.kill_web()
        wait_for_state(page, "interrupted")
        expect(page.locator("main")).to_contain_text(
            "The answer was interrupted. The partial answer is kept."
        )
        assert len(prose(page)) > 10
        expect(page.locator("#banner")).to_be_hidden()
        assert_same_after_a_reload(page)
        slow_site.wait_until_ready()


def test_a_question_that_cannot_be_sent_stays_and_is_asked_once(chromium, wire):
    with signed_in(chromium, wire, with_problems=True, **MOVING) as page:
        ask_and_wait(page)
        wire.cut()
        submit(page, LONG_QUESTION)
        expect(page.locator("#problem")).to_contain_text(
            "The question could not be sent. It is kept here; try again."
        )
        expect(page.locator("#question")).to_have_value(LONG_QUESTION)
        wire.mend()
        page.locator("#question").press("Enter")
        expect(page.locator(".question")).to_have_count(2)
        expect(page.locator("#question")).to_have_value("")
        page.locator("#stop").click()
        wait_for_state(page, "stopped")
        assert_same_after_a_reload(page)
        expect(page.locator(".question")).to_have_count(2)


def test_a_stop_on_one_device_is_seen_on_the_other(chromium, slow_site):
    with signed_in(chromium, slow_site, **MOVING) as page, signed_in(chromium, slow_site, **MOVING) as phone:
        begin(page, LONG_QUESTION)
        phone.goto(page.url)
        wait_until(phone, BEGUN)
        phone.locator("#stop").click()
        stopped = time.monotonic()
        wait_for_state(page, "stopped")
        wait_for_state(phone, "stopped")
        assert time.monotonic() - stopped < 2 + MARGIN_SECONDS
        assert prose(page) == prose(phone)


def test_a_stop_lost_on_a_dead_connection_is_sent_again(chromium, wire):
    with signed_in(chromium, wire, with_problems=True, **MOVING) as page:
        begin(page, LONG_QUESTION)
        wire.swallow()
        page.locator("#stop").click()
        page.evaluate(AN_HOUR_LATER)
        wait_for_state(page, "stopped")
        wire.cut()
        wire.mend()
        assert_same_after_a_reload(page)


def test_a_stop_without_a_connection_is_sent_by_the_next_one(chromium, wire):
    with signed_in(chromium, wire, with_problems=True, **MOVING) as page:
        begin(page, LONG_QUESTION)
        wire.cut()
        expect(page.locator("#banner")).to_contain_text(LOST)
        page.locator("#stop").click()
        expect(page.locator("#banner")).to_contain_text(LOST)
        wire.mend()
        wait_for_state(page, "stopped")
        assert_same_after_a_reload(page)


def test_without_a_socket_a_further_question_is_asked_once(chromium, slow_site):
    with signed_in(chromium, slow_site, with_problems=True) as page:
        ask_and_wait(page)
        page.route_web_socket("**/ws/**", lambda socket: socket.close())
        page.reload()
        lost = []
        page.route("**/ask", lambda route: (lost.append(route.fetch()), route.abort()))
        submit(page, "And sick leave?")
        expect(page.locator("#problem")).to_contain_text("It is kept here; try again.")
        expect(page.locator("#question")).to_have_value("And sick leave?")
        assert len(lost) == 1  # the site has the question, but its reply did not arrive
        page.unroute("**/ask")
        page.locator("#question").press("Enter")
        expect(page.locator(".question")).to_have_count(2)
        wait_for_state(page, "complete")
        expect(page.locator("#question")).to_have_value("")
        assert_same_after_a_reload(page)
