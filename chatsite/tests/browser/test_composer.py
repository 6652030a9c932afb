"""The question box in Chromium: the focus, and what happens to a question while another is answered."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE
from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.portal_pages import (
    QUESTION,
    ask,
    ask_and_wait,
    open_connected,
    see_question,
    signed_in,
    submit,
    wait_for_state,
)

pytestmark = [pytest.mark.browser, pytest.mark.server]

ANSWERED = "This conversation is being answered. Wait for the answer, or stop it."
KEPT = "Your question is kept here."
# Keeps a page from hearing of questions that were asked elsewhere.
NOT_TOLD = """(send => {
    WebSocket.prototype.send = function (text) { if (!text.includes('"wait"')) send.call(this, text); };
})(WebSocket.prototype.send)"""

NOT_STOPPED = NOT_TOLD.replace('"wait"', '"stop"')  # drops each stop, as if it came too late


def place_of_box(page):
    """The vertical positions of the question box, in pixels: it must not move while an answer is written."""
    box = page.locator("#composer").bounding_box()
    return round(box["y"]), round(box["height"])


def test_a_long_question_is_counted_in_characters_as_by_the_server(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        page.goto("/")
        box, hint = page.locator("#question"), page.locator("#hint")
        box.fill("🙂" * 17_000)  # 34,000 UTF-16 units
        expect(hint).not_to_contain_text("of 32,000")
        box.fill("🙂" * 30_000)
        expect(hint).to_contain_text("30,000 of 32,000 characters")


def test_the_focus_of_a_removed_button_is_not_lost(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page)
        place = place_of_box(page)
        page.locator("#question").fill(LONG_QUESTION)
        page.locator("#send").click()
        wait_for_state(page, "streaming")
        expect(page.locator("#hint")).to_have_text("You can write your next question")
        assert place_of_box(page) == place
        expect(page.locator("#question")).to_be_focused()
        page.locator("#stop").press("Enter")
        wait_for_state(page, "stopped")
        expect(page.locator("#hint")).not_to_have_text("You can write your next question")
        assert place_of_box(page) == place
        expect(page.locator("#question")).to_be_focused()
        said = page.locator("#announcer p").filter(has_text="You stopped this answer.")
        expect(said).not_to_have_count(0)


def test_a_stop_after_the_end_says_that_it_stopped_nothing(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        page.add_init_script(NOT_STOPPED)
        page.goto("/")
        ask(page, QUESTION)
        wait_for_state(page, "streaming")
        page.locator("#stop").click()
        wait_for_state(page, "complete")
        expect(page.locator(".answer .note")).to_contain_text("Nothing was stopped")
        expect(page.locator("#announcer p").filter(has_text="Nothing was stopped")).not_to_have_count(0)


def test_on_a_phone_a_new_button_takes_the_focus(chromium, slow_site):
    with signed_in(chromium, slow_site, **PHONE) as page:
        page.goto("/")
        ask(page, LONG_QUESTION)
        wait_for_state(page, "streaming")
        place = place_of_box(page)
        page.locator("#stop").click()
        wait_for_state(page, "stopped")
        expect(page.locator("#send")).to_be_focused()
        expect(page.locator("#hint")).not_to_have_text("You can write your next question")
        assert place_of_box(page) == place


def test_on_a_phone_the_question_box_explains_its_keys(chromium, slow_site):
    with signed_in(chromium, slow_site, **PHONE) as page:
        box = page.locator("#question")
        expect(box).to_have_accessible_description("Enter makes a new line, the button sends")
        assert box.evaluate("box => box.enterKeyHint") == ""
        box.fill("Two")
        box.press("Enter")
        expect(box).to_have_value("Two\n")
        box.fill("")  # the draft is kept


def test_on_a_phone_the_remaining_allowance_is_shown_too(chromium, slow_site):
    with signed_in(chromium, slow_site, **PHONE) as page:
        page.goto("/")
        expect(page.locator(".under")).to_be_hidden()
        page.evaluate("document.querySelector('#left').textContent = '2 messages left today.'")
        expect(page.locator("#left")).to_be_visible()
        assert page.locator(".under").inner_text().strip() == "2 messages left today."


def test_a_new_question_starts_at_the_top_of_its_page_with_the_focus_in_the_box(chromium, slow_site):
    for viewport in ({"width": 1280, "height": 600}, {"width": 390, "height": 600}):
        with signed_in(chromium, slow_site, viewport=viewport) as page:
            page.goto("/")
            expect(page.locator("#question")).to_be_focused()
            expect(page.locator("h1")).to_be_in_viewport()
    with signed_in(chromium, slow_site, **PHONE) as page:
        page.goto("/")
        expect(page.locator("#question")).to_be_focused()
        expect(page.locator("h1")).to_be_in_viewport()
        ask(page, QUESTION)
        wait_for_state(page, "complete")
        expect(page.locator("#question")).not_to_be_focused()  # the keyboard would cover the answer


def test_on_a_phone_the_state_of_the_connection_is_shown_though_the_keys_are_not(chromium, slow_site):
    with signed_in(chromium, slow_site, **PHONE) as page:
        page.goto("/")
        expect(page.locator("#hint")).to_be_hidden()
        page.context.set_offline(True)
        expect(page.locator("#hint")).to_be_visible()
        expect(page.locator("#hint")).to_have_text("You are offline")
        page.context.set_offline(False)


def test_the_second_of_two_concurrent_questions_is_kept_with_a_reason(chromium, slow_site):
    with signed_in(chromium, slow_site) as one, signed_in(chromium, slow_site, with_problems=True) as two:
        ask_and_wait(one)
        two.add_init_script(NOT_TOLD)
        two.goto(one.url)
        submit(one, LONG_QUESTION)
        wait_for_state(one, "streaming")
        submit(two, "And sick leave?")
        expect(two.locator("#problem")).to_contain_text(f"{ANSWERED} {KEPT}")
        see_question(two, LONG_QUESTION)
        expect(two.locator("#question")).to_have_value("And sick leave?")
        expect(two.locator("#question")).to_be_focused()
        two.locator("#stop").click()
        wait_for_state(two, "stopped")
        expect(two.locator("#problem")).to_have_text("")
        two.locator("#question").press("Enter")
        see_question(two, "And sick leave?")


def test_without_scripts_no_question_is_lost_when_the_page_refreshes(chromium, slow_site):
    with (
        signed_in(chromium, slow_site) as one,
        signed_in(chromium, slow_site, java_script_enabled=False) as two,
    ):
        ask(one, LONG_QUESTION)
        wait_for_state(one, "streaming")
        two.goto(one.url)
        expect(two.locator("meta[http-equiv=refresh]")).to_have_count(1)
        expect(two.locator(".refreshes")).to_be_visible()
        for box in ("#question", "#scope", "#send", "input[type=file]"):
            expect(two.locator(box).first).to_be_hidden()
        two.locator("#stop").click()
        expect(two.locator("#question")).to_be_visible()
        expect(two.locator("meta[http-equiv=refresh]")).to_have_count(0)
        expect(two.locator(".refreshes")).to_have_count(0)


def test_without_scripts_a_second_question_stays_on_its_page(chromium, slow_site):
    with (
        signed_in(chromium, slow_site) as one,
        signed_in(chromium, slow_site, java_script_enabled=False, with_problems=True) as two,
    ):
        ask_and_wait(one)
        two.goto(one.url)
        # The page has this element, for browsers without scripts, until the follow-up questions have come.
        expect(two.locator("meta[http-equiv=refresh]")).to_have_count(0)
        submit(one, LONG_QUESTION)
        wait_for_state(one, "streaming")
        two.locator("#question").fill("And sick leave?")
        two.locator("#send").click()
        expect(two.locator("#problem")).to_contain_text(ANSWERED)
        expect(two.locator("meta[http-equiv=refresh]")).to_have_count(0)  # a refresh would lose the draft
        expect(two.locator("#question")).to_have_value("And sick leave?")
        one.locator("#stop").click()
        wait_for_state(one, "stopped")
        two.locator("#send").click()
        see_question(two, "And sick leave?")


def test_the_next_person_in_the_same_tab_does_not_see_the_draft(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        page.locator("#question").fill("A draft")
        mine = page.context.cookies()
        others = [
            {"name": name, "value": value, "url": slow_site.url}
            for name, value in slow_site.sign_in("hr").cookies.items()
        ]
        for cookies, draft in ((others, ""), (mine, "A draft")):
            page.context.add_cookies(cookies)
            page.goto("/")
            expect(page.locator("#question")).to_be_focused()
            expect(page.locator("#question")).to_have_value(draft)


def edit_last_question(page, text):
    page.locator("#question").press("ArrowUp")
    expect(page.locator("form.edit textarea")).to_be_focused()
    page.locator("form.edit textarea").fill(text)


def test_an_edited_question_outlives_the_session(chromium, slow_site):
    edited = "And which days must be used first?"
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page)
        edit_last_question(page, "Cancelled")
        page.keyboard.press("Escape")
        page.locator("#question").press("ArrowUp")
        expect(page.locator("form.edit textarea")).to_have_value(QUESTION)
        page.locator("form.edit textarea").fill(edited)
        cookies = page.context.cookies()
        page.context.clear_cookies(name="sessionid")
        page.locator("form.edit textarea").press("Enter")
        page.wait_for_url("**/accounts/sign-in/**")
        page.context.add_cookies(cookies)
        page.goto(parse_qs(urlsplit(page.url).query)["next"][0])
        expect(page.locator("form.edit textarea")).to_have_value(edited)
        page.get_by_role("button", name="Ask", exact=True).click()
        see_question(page, edited)
        assert page.evaluate("Object.keys(sessionStorage).filter(key => key.includes('edit'))") == []


def test_an_edited_question_outlives_another_branch_until_it_is_cancelled(chromium, slow_site):
    with signed_in(chromium, slow_site) as one, signed_in(chromium, slow_site) as two:
        ask_and_wait(one)
        open_connected(two, one.url)
        edit_last_question(two, "A long question")
        edit_last_question(one, LONG_QUESTION)
        one.locator("form.edit textarea").press("Enter")
        expect(two.locator("form.edit[data-branched] textarea")).to_have_value("A long question")
        two.keyboard.press("Escape")
        see_question(two, LONG_QUESTION)
        two.locator("#stop").click()
        wait_for_state(one, "stopped")


def test_asking_in_an_archived_conversation_removes_the_note_that_it_is_archived(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page)
        page.locator("#menu summary").click()
        page.locator("#menu").get_by_role("button", name="Archive").click()
        expect(page.get_by_text("This conversation is archived.")).to_be_visible()
        submit(page, LONG_QUESTION)
        see_question(page, LONG_QUESTION)
        expect(page.get_by_text("This conversation is archived.")).to_have_count(0)
        page.locator("#stop").click()
        wait_for_state(page, "stopped")
        page.reload()
        expect(page.get_by_text("This conversation is archived.")).to_have_count(0)


def test_a_page_says_why_its_conversation_accepts_no_more_questions(chromium, slow_site):
    with signed_in(chromium, slow_site, with_problems=True) as page:
        ask_and_wait(page)
        banner = page.locator("#banner")
        other = page.context.new_page()
        other.goto(f"{page.url.partition('#')[0]}delete")
        other.locator("main form").get_by_role("button", name="Delete").click()
        expect(other.locator("#toast")).to_be_visible()
        submit(page, "And sick leave?")
        expect(banner).to_contain_text("This conversation was deleted. Your text is kept.")
        expect(page.locator("#question")).to_have_value("And sick leave?")
        expect(banner.get_by_role("link")).to_have_text(["New conversation"])
        other.get_by_role("button", name="Undo").click()
        expect(other.locator(".question")).to_have_text(QUESTION)
        page.reload()
        other.goto("/settings/")
        other.get_by_role("button", name="Sign out").first.click()
        expect(banner).to_contain_text("You were signed out.")
        expect(banner.get_by_role("link")).to_have_text(["Sign in"])
