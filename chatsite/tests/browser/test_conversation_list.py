"""The list of conversations beside each page, in headless Chromium: dots, menus, and its width."""

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import open_page, sign_in, violations
from chatsite.tests.long_answer import LONG_QUESTION

pytestmark = [pytest.mark.browser, pytest.mark.server]


def ask(page, question):
    page.goto("/")
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/c/**")


def test_another_tab_sees_that_an_answer_is_written_and_then_that_it_is_new(chromium, slow_site):
    with open_page(chromium, slow_site.url) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        ask(page, LONG_QUESTION)  # its page must be closed before the answer ends
        row = page.context.new_page()
        row.goto("/help/")
        dots = row.get_by_role("link", name=LONG_QUESTION.rstrip("?")).first
        expect(dots).to_contain_text(", being answered")
        page.goto("/settings/")  # the answer comes while its page is closed
        row.reload()
        expect(dots).to_contain_text(", new answer", timeout=60_000)
        dots.click()
        expect(row.locator(".answer[data-state=complete]")).to_be_visible()
        row.goto("/help/")
        expect(dots).not_to_contain_text("answer")


def test_a_menu_pins_its_conversation_and_actions_are_enabled_after_one_is_ticked(chromium, slow_site):
    with open_page(chromium, slow_site.url) as page:
        sign_in(page, "hr", slow_site.passwords["hr"])
        ask(page, "What is Project Halyard?")
        page.goto("/documents/")
        opener = page.get_by_role("link", name="More about “What is Project Halyard”").first
        opener.focus()
        opener.press("Enter")
        menu = page.locator("#row-menu")
        expect(menu.get_by_role("link", name="Rename")).to_be_focused()
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(menu).to_have_count(0)
        expect(opener).to_be_focused()
        opener.press("Enter")
        menu.get_by_role("button", name="Pin").click()
        page.wait_for_url("**/documents/")
        expect(page.locator(".history section").first).to_have_attribute("aria-label", "Pinned")
        page.goto("/search/")
        buttons = [
            page.locator("form[data-ticks]").get_by_role("button", name=name)
            for name in ("Archive", "Move to project", "Delete")
        ]
        tick = page.locator("form[data-ticks]").get_by_role("checkbox").first
        for button in buttons:
            expect(button).to_be_disabled()
        assert violations(page) == []
        tick.check()
        for button in buttons:
            expect(button).to_be_enabled()
        tick.uncheck()
        expect(buttons[0]).to_be_disabled()


def test_a_new_conversation_is_visible_in_a_list_that_was_scrolled_down(chromium, slow_site):
    with open_page(chromium, slow_site.url, viewport={"width": 1280, "height": 520}) as page:
        sign_in(page, "hr", slow_site.passwords["hr"])
        session = slow_site.sign_in("hr")
        for _ in range(14):
            assert (
                session.post_json("/chat", {"messages": [{"role": "user", "content": "hello"}]}).status == 200
            )
        page.goto("/")
        page.locator(".history").evaluate("list => { list.scrollTop = list.scrollHeight }")
        expect(page.locator(".history .row[data-conversation]").first).not_to_be_in_viewport()
        ask(page, "How many days a year may I work from abroad?")
        expect(page.locator(".history .row[aria-current]")).to_be_in_viewport(ratio=0.9)


def test_the_list_is_hidden_on_all_pages_until_it_is_wanted_again(chromium, slow_site):
    with open_page(chromium, slow_site.url, viewport={"width": 1280, "height": 800}) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        page.get_by_role("button", name="Hide this list").click()
        expect(page.locator("#side")).to_be_hidden()
        expect(page.locator(".menu-button")).to_be_focused()
        page.goto("/documents/")
        expect(page.locator("#side")).to_be_hidden()
        page.locator(".menu-button").click()  # now a drawer
        page.get_by_role("button", name="Hide this list", pressed=True).click()
        expect(page.locator("#side")).to_be_visible()
        page.reload()
        expect(page.locator("#side")).to_be_visible()
