"""The portal as a person meets it, in headless Chromium, on the server that `make run` uses."""

import re

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import MOVING, PHONE, violations
from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.portal_pages import (
    LAST_TEXT,
    QUESTION,
    WIDE,
    ask,
    ask_and_wait,
    prose,
    see_question,
    signed_in,
    submit,
    wait_for_state,
    wait_until,
)

pytestmark = [pytest.mark.browser, pytest.mark.server]

HR_QUESTION = "What is Project Halyard?"
NOTHING = "Nothing was found in the documents you may read."
# A fake speech device, because this Chromium has no voices. It records texts, and ends them when told to.
VOICES = """
  const voice = (lang, localService) => ({ lang, localService });
  const device = {
    said: [], left: [],
    voices: [voice('en-US', false), voice('de-DE', true), voice('en_GB', true)],
    getVoices() { return this.voices; },
    addEventListener() {},
    cancel() { this.left = []; },
    speak(part) { this.said.push([part.text, part.lang]); this.left.push(part); },
  };
  Object.defineProperty(window, 'speechSynthesis', { value: device });
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
"""
# Whether nothing, such as the question box, covers the focused field.
FOCUS_IS_SEEN = """(() => {
  const box = document.activeElement.getBoundingClientRect();
  const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return there === document.activeElement;
})()"""


def test_a_question_is_answered_with_a_citation_that_opens_its_page(chromium, slow_site):
    with signed_in(chromium, slow_site, **WIDE, **MOVING) as page:
        page.goto("/")
        ask(page, QUESTION)
        wait_until(page, f"{LAST_TEXT}.length > 10")
        begun = len(prose(page))
        wait_until(page, f"{LAST_TEXT}.length > {begun}")  # the text grows while it streams
        wait_for_state(page, "complete")
        assert "31 March" in prose(page)
        page.locator(".answer .cite").first.click()
        source = page.locator("#source")
        expect(source.locator("mark").first).to_contain_text("31 March")
        expect(source).to_contain_text("Employee Handbook")
        assert "page 4" in source.inner_text().lower()
        source.locator(".tabs a:nth-of-type(2)").click()
        image = "document.querySelector('#source img')"
        wait_until(page, f"{image}?.complete && {image}.naturalWidth > 400")


def test_a_reload_in_mid_answer_loses_nothing(chromium, slow_site):
    with signed_in(chromium, slow_site, **MOVING) as page:
        page.goto("/")
        ask(page, QUESTION)
        wait_until(page, f"{LAST_TEXT}.length > 10")
        page.reload()
        see_question(page, QUESTION)
        wait_for_state(page, "complete")
        streamed = prose(page)
        page.reload()
        assert prose(page) == streamed
        assert "31 March" in streamed
        expect(page.locator(".question")).to_have_count(1)
        page.goto("/")
        expect(page.locator("nav .row .text").filter(has_text="leave").first).to_be_attached()


def test_a_question_about_a_closed_document_is_answered_only_for_its_readers(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page, HR_QUESTION)
        assert NOTHING in prose(page)
        assert "reorganisation" not in page.locator("body").inner_text().lower()
        expect(page.locator(".answer .cite")).to_have_count(0)
        page.goto("/documents/")
        assert "reorganisation" not in page.locator("body").inner_text().lower()
    with signed_in(chromium, slow_site, "hr") as page:
        ask_and_wait(page, HR_QUESTION)
        expect(page.locator(".answer")).to_contain_text("Halyard")


@pytest.mark.parametrize(
    "screen", [{"viewport": {"width": 1280, "height": 720}}, PHONE], ids=["desk", "phone"]
)
def test_an_answer_is_rated_and_a_source_reported_in_place(chromium, slow_site, screen):
    with signed_in(chromium, slow_site, **screen) as page:
        ask_and_wait(page, QUESTION)
        bad = page.get_by_role("button", name="Bad answer")
        bad.click()
        expect(bad).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".feedback [name=reason]").first).to_be_focused()
        wait_until(page, FOCUS_IS_SEEN)
        page.get_by_label("It is out of date").check()
        page.get_by_label("What would the right answer be?").fill("The end of April.")
        page.locator(".feedback").scroll_into_view_if_needed()
        assert violations(page) == []
        page.get_by_role("button", name="Save feedback").click()
        expect(page.locator("#toast")).to_contain_text("Feedback saved.")
        expect(page.locator(".feedback summary")).to_be_focused()
        page.locator(".answer .cite").first.click()
        page.get_by_role("button", name="Report this source").click()
        expect(page.get_by_role("checkbox", name="Employee Handbook")).to_be_checked()
        expect(page.get_by_label("It is out of date")).to_be_checked()
        bad.click()
        expect(bad).to_have_attribute("aria-pressed", "false")
        expect(page.locator(".feedback")).to_have_count(0)


def test_an_answer_is_read_aloud_by_a_voice_of_the_device_in_its_language(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page, QUESTION)
        aloud = page.locator("[data-aloud]")
        expect(aloud).to_be_hidden()  # without a voice
        page.add_init_script(VOICES)
        page.reload()
        expect(aloud).to_have_attribute("data-aloud", "en")
        aloud.click()
        expect(aloud).to_have_attribute("aria-pressed", "true")
        said = page.evaluate("speechSynthesis.said")
        words = " ".join(text for text, _ in said)
        assert "31 March" in words
        assert not re.search(r"[\[\]*#|>]|[.,]\s*\d+$", words), words  # no markup and no numbers of sources
        assert {lang for _, lang in said} == {"en_GB"}
        page.evaluate("speechSynthesis.left.at(-1).onend()")
        expect(aloud).to_have_attribute("aria-pressed", "false")
        aloud.click()
        aloud.click()
        expect(aloud).to_have_attribute("aria-pressed", "false")
        assert page.evaluate("speechSynthesis.left.length") == 0


def test_a_question_is_edited_and_an_answer_given_again_in_place_and_without_scripts(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page, QUESTION)
        page.get_by_role("link", name="Edit and ask again").click()
        box = page.locator(".ask").get_by_label("Your question")
        expect(box).to_be_focused()
        assert violations(page) == []
        box.press("Escape")
        expect(box).to_have_count(0)
        page.get_by_role("link", name="Edit and ask again").press("Enter")
        box.fill(HR_QUESTION)
        box.press("Enter")
        see_question(page, HR_QUESTION)
        wait_for_state(page, "complete")
        expect(page.get_by_role("group", name="Question 2 of 2")).to_be_visible()
        expect(page.locator(".question")).to_have_count(1)
        page.get_by_role("button", name="Answer again").click()
        expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
        wait_for_state(page, "complete")
        assert violations(page) == []
        address = page.url.partition("#")[0]
        page.get_by_role("link", name="Compare the questions").click()
        expect(page.locator(".compared .question")).to_have_text([QUESTION, HR_QUESTION])
        assert violations(page) == []
    with signed_in(chromium, slow_site, java_script_enabled=False) as page:
        page.goto(address)
        page.get_by_role("button", name="Previous version").click()
        expect(page.get_by_role("group", name="Version 1 of 2")).to_be_visible()
        page.get_by_role("button", name="Previous question").click()
        see_question(page, QUESTION)
        page.get_by_role("link", name="Edit and ask again").click()
        page.get_by_label("Your question").fill("Who approves exceptions?")
        page.get_by_role("button", name="Ask", exact=True).click()
        see_question(page, "Who approves exceptions?")
        expect(page.get_by_role("group", name="Question 3 of 3")).to_be_visible()


def test_a_button_stays_under_the_pointer_while_names_are_suggested(chromium, slow_site):
    with signed_in(chromium, slow_site, "hr") as page:
        ask_and_wait(page, QUESTION)
        page.get_by_role("link", name="Share", exact=True).click()
        page.get_by_role("combobox", name="People").press_sequentially("employee")
        expect(page.locator(".suggestions [role=option]")).to_have_text(["employee"])
        page.get_by_role("button", name="Create and copy link").click(delay=200)
        expect(page.locator(".secret")).to_be_visible()


def test_a_conversation_is_shared_read_with_fewer_rights_and_revoked(chromium, slow_site):
    with signed_in(chromium, slow_site, "hr") as page:
        ask_and_wait(page, HR_QUESTION)
        submit(page, QUESTION)
        see_question(page, QUESTION)
        wait_for_state(page, "complete")
        page.get_by_role("link", name="Share", exact=True).click()
        expect(page.get_by_role("combobox", name="People")).to_be_focused()
        page.keyboard.type("empl")
        expect(page.locator(".suggestions [role=option]")).to_have_text(["employee"])
        page.keyboard.press("Enter")
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.get_by_role("button", name="Create and copy link")).to_be_in_viewport()
        page.set_viewport_size({"width": 1280, "height": 800})
        page.get_by_role("button", name="Create and copy link").click()
        address = page.locator(".secret").inner_text()
        assert violations(page) == []
        with signed_in(chromium, slow_site, **PHONE, color_scheme="dark") as reader:
            reader.goto("/shared/")
            received = reader.locator("main a.result")  # the newest first
            expect(received.first).to_contain_text("New")
            number = received.count()
            assert violations(reader) == []
            received.first.click()
            expect(reader.get_by_text("This answer is left out")).to_be_visible()
            reader.goto(address)
            assert "Halyard" not in reader.locator("main").inner_html()
            assert violations(reader) == []
            reader.locator(".prose .cite").first.click()
            expect(reader.locator("#source mark").first).to_be_visible()
            expect(reader.locator("#source .passage")).to_contain_text("31 March")
            assert violations(reader) == []
            reader.get_by_label("Close source").click()
            reader.get_by_role("button", name="Continue from here").click()
            expect(reader.locator("#question")).to_be_visible()
            expect(reader.locator(".prose")).to_contain_text("31 March")
            assert "Halyard" not in reader.locator("main").inner_html()
            page.goto("/shares/")
            page.get_by_role(
                "link", name="Revoke the link to “What is Project Halyard” shared with employee"
            ).click()
            page.get_by_role("button", name="Revoke").click()
            expect(page.get_by_text("The link is revoked.")).to_be_visible()
            assert reader.request.get(address).status == 404
            reader.goto("/shared/")
            expect(received).to_have_count(number - 1)


def test_a_stop_keeps_the_received_text(chromium, slow_site):
    with signed_in(chromium, slow_site, **MOVING) as page:
        page.goto("/")
        ask(page, LONG_QUESTION)
        wait_until(page, f"{LAST_TEXT}.length > 10")
        page.locator("#stop").click()
        wait_for_state(page, "stopped")
        expect(page.locator("main")).to_contain_text("You stopped this answer.")
        assert len(prose(page)) > 10


def test_two_tabs_see_the_same_answer(chromium, slow_site):
    with signed_in(chromium, slow_site, **MOVING) as one, signed_in(chromium, slow_site, **MOVING) as two:
        one.goto("/")
        ask(one, QUESTION)
        two.goto(one.url)
        wait_for_state(one, "complete")
        wait_for_state(two, "complete", 5)
        assert prose(one) == prose(two)


def test_a_question_of_another_tab_is_shown_and_typed_text_is_kept(chromium, slow_site):
    with signed_in(chromium, slow_site) as one, signed_in(chromium, slow_site) as two:
        ask_and_wait(one)
        two.goto(one.url)
        submit(one, LONG_QUESTION)
        wait_for_state(one, "streaming")
        submit(two, "And sick leave?")
        see_question(two, LONG_QUESTION)
        expect(two.locator("#question")).to_have_value("And sick leave?")


def test_after_a_sign_out_elsewhere_the_way_back_and_the_typed_text_remain(chromium, slow_site):
    with signed_in(chromium, slow_site, with_problems=True) as page:
        ask_and_wait(page)
        conversation = page.url
        page.evaluate(
            """fetch('/accounts/sign-out/', {method: 'POST', redirect: 'manual', body: new URLSearchParams(
                {csrfmiddlewaretoken: document.querySelector('[name=csrfmiddlewaretoken]').value})})
                .then(() => true)"""
        )
        submit(page, "And sick leave?")
        page.locator("#banner #sign-in").click()
        page.locator("input[name=username]").fill("employee")
        page.locator("input[name=password]").fill(slow_site.passwords["employee"])
        page.locator("input[name=password]").press("Enter")
        page.wait_for_url(conversation)
        expect(page.locator("#question")).to_have_value("And sick leave?")


def test_the_focus_stays_in_the_question_box_after_a_first_question(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        page.goto("/")
        ask(page, QUESTION)
        expect(page.locator("#question")).to_be_focused()
        wait_for_state(page, "complete")
        expect(page.locator("#question")).to_be_focused()


def test_a_link_to_a_source_shows_the_answer_that_cites_it(chromium, slow_site):
    with signed_in(chromium, slow_site, viewport={"width": 1440, "height": 500}) as page:
        ask_and_wait(page)
        page.locator(".next button").first.click()
        expect(page.locator(".question")).to_have_count(2)
        wait_for_state(page, "complete")
        page.locator(".answer").last.locator(".cite").first.click()
        expect(page.locator("#source mark").first).to_be_visible()
        link = page.url
        page.goto("/")
        page.goto(link)
        expect(page.locator(".cite[aria-current]")).to_be_in_viewport(ratio=1)


def test_without_scripts_the_same_page_works(chromium, slow_site):
    with signed_in(chromium, slow_site, java_script_enabled=False) as page:
        page.goto("/")
        page.locator("#question").fill(QUESTION)
        page.locator("#send").click()
        see_question(page, QUESTION)
        # The page refreshes itself until the answer is complete.
        expect(page.locator(".answer").last).to_have_attribute("data-state", "complete")
        assert "31 March" in prose(page)
        page.locator(".answer .cite").first.click()
        expect(page.locator("#source mark").first).to_contain_text("31 March")


def test_a_project_is_created_used_and_deleted_on_a_phone_without_scripts(chromium, slow_site):
    with signed_in(chromium, slow_site, java_script_enabled=False, **PHONE) as page:
        page.goto("/projects/new")
        page.get_by_label("Name").fill("Leave 2027")
        page.get_by_label("Instructions").fill("As a list.")
        page.get_by_role("button", name="Create project").click()
        project = page.url
        expect(page.locator("dl")).to_contain_text("As a list.")
        page.goto(f"{project}scope")
        page.get_by_label("Employee Handbook").check()
        page.get_by_role("button", name="Search in the ticked documents").click()
        expect(page.locator("dl")).to_contain_text("Only “Marlowe Ferries Employee Handbook”")
        page.locator("#question").fill(QUESTION)
        page.locator("#send").click()
        see_question(page, QUESTION)
        conversation = page.url.partition("#")[0]
        assert page.locator("#scope").input_value().startswith("document:")
        page.get_by_role("main").get_by_role("link", name="Leave 2027").click()
        assert page.url == project
        page.locator("#menu summary").click()
        page.get_by_role("link", name="Delete").click()
        expect(page.get_by_role("main")).to_contain_text("Its 1 conversation stays")
        page.get_by_role("button", name="Delete").click()
        page.goto(conversation)
        see_question(page, QUESTION)


def test_a_conversation_is_moved_by_keyboard_and_continued_in_its_project(chromium, slow_site):
    with signed_in(chromium, slow_site, **WIDE) as page:
        ask_and_wait(page)
        page.locator("#menu summary").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Move to project").focus()
        page.keyboard.press("Enter")
        page.get_by_label("New project").fill("Leave of the crew")
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text("Moved to “Leave of the crew”.")
        assert violations(page) == []
        page.locator("#side").get_by_role("link", name="Leave of the crew").click()
        expect(page.locator(".results")).to_contain_text(QUESTION[:20])
        assert violations(page) == []
        ask(page, HR_QUESTION)  # sending from here leads straight to the conversation
        wait_for_state(page, "complete")
        expect(page.get_by_role("main").get_by_role("link", name="Leave of the crew")).to_be_visible()


def test_the_question_box_is_one_tab_away_and_a_source_two(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        ask_and_wait(page)
        page.reload()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#question")).to_be_focused()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        assert page.evaluate("document.activeElement.matches('.source-row, .cite, .next button')")


def test_without_a_model_no_team_is_offered(chromium, slow_site):
    with signed_in(chromium, slow_site) as page:
        page.goto("/")
        expect(page.locator("#question")).to_be_visible()
        expect(page.locator("#mode")).to_have_count(0)
