"""The box for the question, in Chromium: where the focus goes, what a question that came second is told."""

import pytest

from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.test_reconnecting import BOX
from chatsite.tests.test_walkthrough import QUESTION, ask, signed_in, wait_for_state

pytestmark = [pytest.mark.browser, pytest.mark.server]

ANSWERED = "This conversation is being answered. Wait for the answer, or stop it."
KEPT = "Your question is kept here."
FOCUSED = "document.activeElement.id"
# A page that has not heard yet what is asked elsewhere.
NOT_TOLD = """(send => {
    WebSocket.prototype.send = function (text) { if (!text.includes('"wait"')) send.call(this, text); };
})(WebSocket.prototype.send)"""
HEARD = "[...document.querySelectorAll('#announcer p')].map(line => line.textContent).join(' ')"


def answered(page):
    page.go("/")
    ask(page, QUESTION)
    wait_for_state(page, "complete")


def test_the_focus_of_a_button_that_goes_is_not_lost(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as page:
        answered(page)
        page.type("#question", LONG_QUESTION)
        page.click("#send")
        wait_for_state(page, "streaming")
        assert page.run(FOCUSED) == "question"
        page.run("document.querySelector('#stop').focus()")
        page.press("Enter")
        wait_for_state(page, "stopped")
        assert page.run(FOCUSED) == "question"
        page.settle(2)
        assert "You stopped this answer." in page.run(HEARD)


def test_on_a_phone_the_button_that_comes_takes_the_focus(browser, slow_site):
    with signed_in(browser, slow_site, "employee", width=390, mobile=True) as page:
        page.go("/")
        ask(page, LONG_QUESTION)
        wait_for_state(page, "streaming")
        page.click("#stop")
        wait_for_state(page, "stopped")
        assert page.run(FOCUSED) == "send"


def test_on_a_phone_the_rest_of_the_allowance_is_shown_too(browser, slow_site):
    with signed_in(browser, slow_site, "employee", width=390, mobile=True) as page:
        page.go("/")
        assert not page.run("document.querySelector('.under').checkVisibility()")
        page.run("document.querySelector('#left').textContent = '2 messages left today.'")
        page.wait_for("#left")
        assert page.text(".under").strip() == "2 messages left today."


def test_of_two_questions_at_once_the_second_is_kept_and_told_why(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as one, signed_in(browser, slow_site, "employee") as two:
        answered(one)
        two.call("Page.addScriptToEvaluateOnNewDocument", source=NOT_TOLD)
        two.go(one.path)
        one.type("#question", LONG_QUESTION)
        one.press("Enter")
        wait_for_state(one, "streaming")
        two.type("#question", "And sick leave?")
        two.press("Enter")
        two.wait_for("#problem", f"{ANSWERED} {KEPT}")
        two.wait_for(".question", LONG_QUESTION)
        assert two.run(BOX) == "And sick leave?"
        assert two.run(FOCUSED) == "question"
        two.click("#stop")
        wait_for_state(two, "stopped")
        assert two.text("#problem") == ""
        two.press("Enter")
        two.wait_for(".question", "And sick leave?")


def test_without_scripts_a_question_that_came_second_stays_on_its_page(browser, slow_site):
    with signed_in(browser, slow_site, "employee") as one, signed_in(browser, slow_site, "employee") as two:
        answered(one)
        two.scripts(False)
        two.go(one.path)
        one.type("#question", LONG_QUESTION)
        one.press("Enter")
        wait_for_state(one, "streaming")
        two.type("#question", "And sick leave?")
        two.click("#send")
        two.wait_for("#problem", ANSWERED)
        two.settle(3)  # longer than the page of an answer that is written waits before it loads anew
        assert two.run(BOX) == "And sick leave?"
        one.click("#stop")
        wait_for_state(one, "stopped")
        two.click("#send")
        two.wait_for(".question", "And sick leave?")
