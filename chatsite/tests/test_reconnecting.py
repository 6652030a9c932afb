"""An answer whose reader loses the network, sleeps, or changes devices, or whose server dies, in Chromium."""

import time

import pytest

from chatsite.tests.limits import MARGIN_SECONDS
from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.test_walkthrough import PROSE, QUESTION, ask, signed_in, wait_for_state
from chatsite.tests.wire import Wire

pytestmark = [pytest.mark.browser, pytest.mark.server]

OFFLINE = "You are offline. Your text is kept, and the answer continues on the server."
LOST = "Connection lost."
BOX = "document.querySelector('#question').value"
BANNER = "document.querySelector('#banner').hidden"
BEGUN = f"document.querySelector('{PROSE}')?.innerText.length > 10"
STILL = f"""(now => {{
    if (window.seen?.now !== now) window.seen = {{now, since: performance.now()}};
    return performance.now() - window.seen.since > 400;
}})(document.querySelector('{PROSE}').innerText)"""  # what had arrived before the cut is drawn, too


@pytest.fixture
def wire(slow_site):
    with Wire(slow_site.url) as between:
        between.passwords = slow_site.passwords
        yield between


def begin(page, question=QUESTION):
    """A question whose answer has begun to be shown."""
    page.go("/")
    ask(page, question)
    page.wait_until(BEGUN)


def the_same_after_a_reload(page):
    shown = page.text("#thread")
    page.reload()
    return page.text("#thread") == shown


def test_who_was_offline_sees_the_whole_answer_and_what_was_typed_as_on_another_device(
    browser, wire, slow_site
):
    with signed_in(browser, wire, "employee") as page, signed_in(browser, slow_site, "employee") as phone:
        begin(page)
        wire.cut()
        page.offline()
        phone.go(page.path)
        page.wait_for("#banner", OFFLINE)
        page.wait_until(STILL)
        before = len(page.text(PROSE))
        page.type("#question", "And sick leave?")
        assert page.attribute("#send", "aria-disabled") == "true"
        assert page.text("#hint") == "You are offline"
        wait_for_state(phone, "complete")
        assert len(page.text(PROSE)) == before < len(phone.text(PROSE))
        wire.mend()
        page.offline(False)
        wait_for_state(page, "complete", 2)
        assert page.run(BANNER)
        assert page.text(PROSE) == phone.text(PROSE)
        assert "31 March" in page.text(PROSE)
        assert page.run(BOX) == "And sick leave?"
        assert the_same_after_a_reload(page)
        assert page.run(BOX) == "And sick leave?"


def test_a_lost_connection_is_told_and_taken_up_again(browser, wire):
    with signed_in(browser, wire, "employee") as page:
        begin(page)
        wire.cut()
        page.wait_for("#banner", LOST)
        wire.mend()
        wait_for_state(page, "complete")
        assert page.run(BANNER)
        assert "31 March" in page.text(PROSE)
        assert the_same_after_a_reload(page)


def test_a_page_that_slept_notices_that_its_connection_is_dead(browser, wire):
    with signed_in(browser, wire, "employee") as page:
        begin(page)
        wire.swallow()
        # Nothing comes while it sleeps, and then its clock has jumped.
        page.run("(now => { Date.now = () => now() + 3_600_000; })(Date.now.bind(Date))")
        wait_for_state(page, "complete")
        wire.cut()  # the browser's other connections are dead, too
        wire.mend()
        assert "31 March" in page.text(PROSE)
        assert the_same_after_a_reload(page)


def test_a_killed_server_leaves_what_had_arrived_and_the_page_says_so_by_itself(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        begin(page, LONG_QUESTION)
        page.settle(0.5)  # a flush
        slow_site.kill_web()
        wait_for_state(page, "interrupted")
        assert "The answer was interrupted. The partial answer is kept." in page.text("main")
        assert len(page.text(PROSE)) > 10
        assert page.run(BANNER)
        assert the_same_after_a_reload(page)
        slow_site.wait_until_ready()


def test_a_question_that_cannot_be_sent_stays_and_is_asked_once(browser, wire):
    with signed_in(browser, wire, "employee") as page:
        begin(page)
        wait_for_state(page, "complete")
        wire.cut()
        page.type("#question", LONG_QUESTION)
        page.press("Enter")
        page.wait_for("#problem", "The question could not be sent. It is kept here; try again.")
        assert page.run(BOX) == LONG_QUESTION
        wire.mend()
        page.press("Enter")
        page.wait_until(f"document.querySelectorAll('.question').length === 2 && {BOX} === ''")
        page.click("#stop")
        wait_for_state(page, "stopped")
        assert the_same_after_a_reload(page)
        assert page.count(".question") == 2


def test_a_stop_on_one_device_is_seen_on_the_other(browser, slow_site):
    with (
        signed_in(browser, slow_site, "employee") as page,
        signed_in(browser, slow_site, "employee") as phone,
    ):
        begin(page, LONG_QUESTION)
        phone.go(page.path)
        phone.wait_until(BEGUN)
        phone.click("#stop")
        stopped = time.monotonic()
        wait_for_state(page, "stopped")
        wait_for_state(phone, "stopped")
        assert time.monotonic() - stopped < 2 + MARGIN_SECONDS
        assert page.text(PROSE) == phone.text(PROSE)


def test_a_stop_that_a_dead_connection_swallowed_is_said_again(browser, wire):
    with signed_in(browser, wire, "employee") as page:
        begin(page, LONG_QUESTION)
        wire.swallow()
        page.click("#stop")
        page.run("(now => { Date.now = () => now() + 3_600_000; })(Date.now.bind(Date))")
        wait_for_state(page, "stopped")
        wire.cut()
        wire.mend()
        assert the_same_after_a_reload(page)


def test_a_stop_without_a_connection_stays_on_the_page_and_is_said_by_the_next(browser, wire):
    with signed_in(browser, wire, "employee") as page:
        begin(page, LONG_QUESTION)
        wire.cut()
        page.wait_for("#banner", LOST)
        page.click("#stop")
        page.settle(0.3)
        assert LOST in page.text("#banner")
        wire.mend()
        wait_for_state(page, "stopped")
        assert the_same_after_a_reload(page)
