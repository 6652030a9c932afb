"""Everyday tasks by keyboard: few Tab stops, arrow keys inside groups, and the palette on each page."""

import re

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, violations
from chatsite.tests.portal_pages import QUESTION, WIDE, ask_and_wait, signed_in

# The focused element, whether it or its container has a visible focus ring, and whether another element
# covers its middle. Scrollable regions are larger than their visible part.
FOCUSED = """() => {
  const element = document.activeElement;
  if (element === document.body) return null;
  const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
  const around = [element, element.parentElement, element.parentElement.parentElement];
  const ring = around.some(each => getComputedStyle(each).outlineStyle !== 'none');
  const hit = document.elementFromPoint(left + width / 2, top + height / 2);
  const own = [element, ...(element.labels ?? [])].some(each => each.contains(hit) || hit?.contains(each));
  const name = element.ariaLabel || element.textContent.trim() || element.name || element.tagName;
  return { name: name.slice(0, 60), ring, clear: own || height > innerHeight / 2 };
}"""


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def test_a_source_is_two_key_presses_from_the_question_box(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        page.reload()
        page.locator("#question").focus()
        press(page, "Shift+Tab", "Shift+Tab")
        expect(page.locator(".source-row").first).to_be_focused()
        if page.locator(".source-row").count() > 1:
            press(page, "ArrowDown")
            expect(page.locator(".source-row").nth(1)).to_be_focused()
            press(page, "Home")
        press(page, "Enter")
        expect(page.locator("#source-title")).to_be_focused()
        press(page, "Escape")
        page.wait_for_url(lambda url: "source=" not in url)
        expect(page.locator(".source-row").first).to_be_focused()
        assert "#" not in page.url  # a fragment would move the focus


def test_a_dialog_of_the_menu_returns_the_focus_to_the_menu(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        page.locator("#menu summary").focus()
        press(page, "Enter")
        page.get_by_role("link", name="Rename", exact=True).press("Enter")
        expect(page.locator("#new-title")).to_be_focused()
        press(page, "Escape")
        expect(page.locator("#menu summary")).to_be_focused()


def test_the_list_of_conversations_is_one_tab_stop(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        ask_and_wait(page, "Who may work abroad?")
        stops = page.locator(".history a[tabindex='0']")
        expect(stops).to_have_count(1)
        rows = page.locator(".history .row[data-conversation]")
        rows.first.focus()
        press(page, "ArrowDown")
        expect(rows.nth(1)).to_be_focused()
        expect(stops).to_have_count(1)
        press(page, "ArrowRight")
        expect(page.locator("[data-row-menu]").nth(1)).to_be_focused()
        press(page, "Enter")
        menu = page.locator("#row-menu")
        expect(menu.locator(".row").first).to_be_focused()
        press(page, "Escape")
        # After the browser has closed the menu.
        expect(page.locator("[data-row-menu]").nth(1)).to_be_focused()
        press(page, "ArrowLeft")
        expect(rows.nth(1)).to_be_focused()
        press(page, "Tab")
        expect(page.locator(".side-foot .row").first).to_be_focused()


def test_the_palette_does_what_the_page_offers(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        press(page, "Control+k")
        expect(page.get_by_role("option", name="Source 1: ")).to_be_visible()
        assert violations(page) == []
        page.keyboard.type("1")
        expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Source 1: ")
        press(page, "Enter")
        expect(page.locator("#source-title")).to_be_focused()
        press(page, "Control+k")
        page.keyboard.type("edit")
        expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Edit and ask again")
        press(page, "Enter")
        expect(page.locator("form.edit textarea")).to_be_focused()


def test_the_palette_offers_the_menu_and_one_escape_closes_it(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        for words in ("Move to", "Pin", "Export", "Archive", "Delete", "Share"):
            press(page, "Control+k")
            page.keyboard.type(words.lower())
            expect(page.locator("#palette [aria-selected=true]")).to_contain_text(words)
            press(page, "Escape")
            expect(page.locator("#palette")).to_be_hidden()
        press(page, "Control+k")
        page.keyboard.type("rename")
        expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Rename")
        press(page, "Enter")
        expect(page.locator("#new-title")).to_be_focused()
        page.locator("#new-title").fill("Leave carried over")
        press(page, "Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Leave carried over")
        expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_text_typed_before_the_palette_opens_is_in_it(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        page.goto("/")
        page.route("**/search/palette?*", lambda route: (page.wait_for_timeout(300), route.continue_()))
        press(page, "Control+k")
        page.keyboard.type("setx")
        press(page, "Backspace")
        expect(page.locator("#palette [role=combobox]")).to_have_value("set")
        page.keyboard.type("t")
        expect(page.locator("#palette [aria-selected=true]")).to_have_attribute("href", "/settings/")


def test_arrow_up_in_the_empty_box_edits_the_last_question_unless_shortcuts_are_off(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        expect(page.locator("#hint")).to_contain_text("↑ edits the last question")
        page.locator("#question").press("ArrowUp")
        expect(page.locator("form.edit textarea")).to_be_focused()
        press(page, "Escape")
        expect(page.locator("form.edit")).to_have_count(0)
        page.locator("#question").fill("draft")
        page.locator("#question").press("ArrowUp")
        page.evaluate("document.documentElement.dataset.keys = 'off'")
        page.locator("#question").fill("")
        expect(page.locator("#hint")).not_to_contain_text("↑")
        page.locator("#question").press("ArrowUp")
        expect(page.locator("form.edit")).to_have_count(0)


def test_creating_a_link_copies_it_in_the_same_step(chromium, site):
    with signed_in(chromium, site, with_problems=True, **WIDE) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        ask_and_wait(page)
        page.get_by_role("link", name="Share this answer").click()
        create = page.get_by_role("button", name="Create and copy link")
        sent = []
        page.on("request", lambda request: sent.append(request.method) if request.method == "POST" else None)
        create.click()
        expect(page.get_by_text("Choose a group, or name a person.")).to_be_visible()  # the server's message
        assert sent == ["POST"]
        page.get_by_role("combobox", name="People").fill("hr")
        create.click()
        expect(page.get_by_text("The link is ready and copied.")).to_be_visible()
        expect(page.get_by_text("Choose a group, or name a person.")).to_have_count(0)
        expect(page.get_by_role("button", name="Copy link").first).to_be_focused()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator(".secret").inner_text()
        expect(page.locator("#links")).to_contain_text("With hr")
        assert violations(page) == []


def test_a_failure_to_copy_or_create_a_link_is_reported(chromium, site):
    with signed_in(chromium, site, with_problems=True, **WIDE) as page:
        page.add_init_script(
            "for (const name of ['write', 'writeText']) Clipboard.prototype[name] = () => Promise.reject()"
        )
        ask_and_wait(page)
        page.get_by_role("link", name="Share this answer").click()
        page.get_by_role("combobox", name="People").fill("hr")
        page.route("**/share*", lambda route: route.abort())
        page.get_by_role("button", name="Create and copy link").click()
        expect(page.get_by_role("alert")).to_contain_text("The site could not be reached.")
        page.unroute("**/share*")
        page.get_by_role("button", name="Create and copy link").click()
        expect(page.get_by_text("your browser did not let this page copy it")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        page.get_by_role("button", name="Copy link").first.click()
        expect(page.locator("#toast")).to_contain_text("Nothing was copied.")


def test_versions_are_compared_without_losing_the_focus(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        page.get_by_role("button", name="Answer again").focus()
        press(page, "Enter")
        expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
        expect(page.locator("#question")).to_be_focused()
        press(page, "Shift+Tab")
        expect(page.get_by_role("button", name="Previous version")).to_be_focused()
        press(page, "Enter")
        expect(page.get_by_role("group", name="Version 1 of 2")).to_be_visible()
        # Version 1 has no previous one.
        expect(page.get_by_role("button", name="Next version")).to_be_focused()
        press(page, "Enter")
        expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
        expect(page.get_by_role("button", name="Previous version")).to_be_focused()
        press(page, "ArrowLeft")  # wraps around from the first button of the row to the last
        expect(page.get_by_role("button", name="Answer again")).to_be_focused()


def test_last_weeks_answer_is_found_from_the_box_with_few_key_presses(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        page.goto("/")
        expect(page.locator("#question")).to_be_focused()
        starts = page.locator(".starts button")
        press(page, "Shift+Tab")
        expect(starts.first).to_be_focused()
        press(page, "ArrowDown")  # the group is a single Tab stop
        expect(starts.nth(1)).to_be_focused()
        field = page.get_by_label("Search your conversations")
        for _ in range(8):
            press(page, "Shift+Tab")
            if field.evaluate("element => element === document.activeElement"):
                break
        expect(field).to_be_focused()
        page.keyboard.type("carried")
        expect(page.locator("#palette [role=combobox]")).to_have_value("carried")
        expect(page.locator("#palette [aria-selected=true]")).to_have_attribute("href", re.compile("^/c/"))
        press(page, "Enter")
        expect(page.locator(".question")).to_have_text(QUESTION)


def test_a_person_is_named_and_the_link_created_without_leaving_the_field(chromium, site):
    with signed_in(chromium, site, with_problems=True, **WIDE) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        ask_and_wait(page)
        page.get_by_role("link", name="Share this answer").press("Enter")
        people = page.get_by_role("combobox", name="People")
        expect(people).to_be_focused()
        page.keyboard.type("hr")
        expect(page.get_by_role("option", name="hr")).to_be_visible()
        press(page, "Enter")
        expect(page.get_by_role("option", name="hr")).to_have_count(0)
        press(page, "Enter")
        expect(page.get_by_text("The link is ready and copied.")).to_be_visible()


def test_on_a_phone_past_conversations_are_searched_from_the_bar(chromium, site):
    with signed_in(chromium, site, **PHONE) as page:
        ask_and_wait(page)
        page.get_by_role("link", name="Search conversations").tap()
        expect(page.locator("#palette [role=combobox]")).to_be_focused()
        page.keyboard.type("carried")
        expect(page.locator("#palette [aria-selected=true]")).to_have_attribute("href", re.compile("^/c/"))
        assert violations(page) == []


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["wide", "phone"])
def test_each_tab_stop_is_visible_and_not_covered(chromium, site, screen):
    with signed_in(chromium, site, "hr", **screen) as page:
        ask_and_wait(page)
        conversation = page.url.partition("#")[0]
        pages = (
            conversation,
            f"{conversation}?source=1.1",
            f"{conversation}share",
            "/search/",
            "/documents/",
        )
        for address in (*pages, "/documents/add/", "/settings/"):
            page.goto(address)
            names = []
            for _ in range(45):
                press(page, "Tab")
                found = page.evaluate(FOCUSED)
                if found is None:
                    break
                assert found["ring"], (address, found)
                assert found["clear"], (address, found)
                names.append(found["name"])
            assert len(names) >= 5, (address, names)


def test_at_a_zoom_of_400_percent_the_question_box_covers_no_focused_citation(chromium, site):
    with signed_in(chromium, site, viewport={"width": 320, "height": 256}) as page:
        ask_and_wait(page)
        page.locator("#question").fill("A draft of many lines\n" * 12)
        for link in (page.locator(".prose .cite"), page.locator(".source-row")):
            link.first.focus()
            assert page.evaluate(FOCUSED)["clear"]
