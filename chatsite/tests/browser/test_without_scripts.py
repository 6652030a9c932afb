"""Everyday tasks in Chromium without JavaScript, by links, forms and pages alone."""

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE
from chatsite.tests.portal_pages import QUESTION, prose, see_question, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.server]

OTHER_QUESTION = "Who approves exceptions?"
FILE = {"name": "gangway.md", "mimeType": "text/markdown", "buffer": b"# Gangway\n\nIt opens at six."}


def press(page, role, words, exact=True):
    page.get_by_role(role, name=words, exact=exact).last.click()


def ask_without_scripts(page, question):
    """Ask in the box, and wait until the page, which refreshes itself, has the whole answer."""
    page.locator("#question").fill(question)
    press(page, "button", "Send")
    see_question(page, question)
    expect(page.locator(".answer").last).to_have_attribute("data-state", "complete")


def said(page, words):
    expect(page.locator("#toast")).to_contain_text(words)


def test_an_answer_is_checked_rated_and_corrected(chromium, site):
    with signed_in(chromium, site, java_script_enabled=False) as page:
        ask_without_scripts(page, QUESTION)
        assert "31 March" in prose(page)
        page.locator(".answer .cite").first.click()
        expect(page.locator("#source mark").first).to_contain_text("31 March")
        assert page.evaluate("document.querySelector('#source mark').matches(':target')")
        expect(page.locator("#source mark").first).to_be_in_viewport()
        for view in ("Page", "How it was found", "All passages"):
            press(page, "link", view)
            expect(page.get_by_role("link", name=view, exact=True)).to_have_attribute("aria-current", "true")
        press(page, "link", "Close source")
        press(page, "button", "Bad answer")
        page.get_by_label("It is out of date").check()
        page.get_by_label("What would the right answer be?").fill("The end of April.")
        press(page, "button", "Save feedback")
        said(page, "Feedback saved.")
        press(page, "button", "Bad answer")
        said(page, "Feedback removed.")
        press(page, "link", "Edit and ask again")
        page.get_by_label("Your question").fill(OTHER_QUESTION)
        press(page, "button", "Ask")
        see_question(page, OTHER_QUESTION)
        expect(page.locator(".answer").last).to_have_attribute("data-state", "complete")
        press(page, "button", "Previous question")
        see_question(page, QUESTION)


def test_a_file_that_is_only_chosen_is_sent_with_the_question(chromium, site):
    with signed_in(chromium, site, java_script_enabled=False) as page:
        # Texts in a noscript element are not found by Playwright's `get_by_text`.
        expect(page.locator("label[for=attach-files]")).to_be_visible()
        page.get_by_label("Files that only you").set_input_files(FILE)
        ask_without_scripts(page, "When does the gangway open?")
        assert "six" in prose(page)
        expect(page.get_by_role("list", name="Asked about").first).to_contain_text("Gangway")


def test_an_answer_is_shared_and_the_link_revoked(chromium, site):
    with signed_in(chromium, site, java_script_enabled=False) as page:
        ask_without_scripts(page, QUESTION)
        press(page, "link", "Share this answer")
        page.get_by_role("textbox", name="People").fill("hr")
        press(page, "button", "Create link")
        link = page.locator(".secret").get_attribute("href")
        with signed_in(chromium, site, "hr", with_problems=True, java_script_enabled=False) as reader:
            reader.goto(link)
            see_question(reader, QUESTION)
            press(page, "link", "Revoke", exact=False)
            press(page, "button", "Revoke")
            assert reader.goto(link).status == 404


def test_a_conversation_is_found_renamed_pinned_deleted_and_restored_on_a_phone(chromium, site):
    with signed_in(chromium, site, java_script_enabled=False, **PHONE) as page:
        ask_without_scripts(page, QUESTION)
        press(page, "link", "Search conversations")
        page.locator("#q").fill("carried")
        page.locator("#q").press("Enter")
        page.locator(".result").first.click()
        page.locator("#menu summary").click()
        press(page, "link", "Rename")
        page.get_by_label("Title").fill("Carried days")
        press(page, "button", "Rename")
        expect(page.get_by_role("heading", level=1)).to_have_text("Carried days")
        page.locator("#menu summary").click()
        press(page, "button", "Pin")
        page.locator("#menu summary").click()
        press(page, "button", "Unpin")
        page.locator("#menu summary").click()
        press(page, "link", "Delete")
        press(page, "button", "Delete")
        press(page, "button", "Undo")
        see_question(page, QUESTION)


def test_a_file_is_added_opened_to_everyone_asked_about_and_deleted(chromium, site):
    with signed_in(chromium, site, "hr", java_script_enabled=False) as page:
        press(page, "link", "Documents", exact=False)
        press(page, "link", "Add documents")
        page.locator("#files").set_input_files(FILE)
        people = page.get_by_label("People", exact=True)
        expect(page.get_by_role("radio", name="Only me")).to_be_checked()
        expect(people).to_be_hidden()
        page.get_by_role("radio", name="Some groups or people").check()
        expect(people).to_be_visible()
        page.get_by_role("checkbox", name="HR").check()
        press(page, "button", "Upload")
        expect(page.locator(".file").filter(has_text="gangway").first).to_contain_text("Ready")
        page.locator(".file a").filter(has_text="gangway").first.click()
        document = page.url
        page.locator("summary").filter(has_text="Change access").click()
        page.get_by_role("radio", name="Everyone").check()
        press(page, "button", "Save access")
        press(page, "button", "Share")  # 3 people will be able to read it
        said(page, "Access updated.")
        press(page, "link", "Ask about this")
        ask_without_scripts(page, "When does the gangway open?")
        assert "six" in prose(page)
        page.goto(document)
        press(page, "link", "Delete")
        press(page, "button", "Delete")
        expect(page.get_by_role("table")).not_to_contain_text("Gangway")


def test_the_language_a_key_and_the_end_of_the_session(chromium, site):
    with signed_in(chromium, site, java_script_enabled=False) as page:
        page.goto("/settings/")
        page.get_by_label("Language").select_option("de")
        press(page, "button", "Save settings")
        said(page, "Einstellungen gespeichert.")
        page.get_by_label("Sprache").select_option("")
        press(page, "button", "Einstellungen speichern")
        press(page, "link", "API keys", exact=False)
        page.get_by_label("What is the key for?").fill("A program")
        press(page, "button", "Create a key")
        expect(page.locator(".secret")).to_be_visible()
        press(page, "link", "Revoke", exact=False)
        press(page, "button", "Revoke")
        page.goto("/settings/")
        press(page, "button", "Sign out")
        expect(page.get_by_label("Password")).to_be_visible()
