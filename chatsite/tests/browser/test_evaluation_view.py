"""The source of an answer beside it, in headless Chromium."""

import gzip
import re

import pytest
from playwright.sync_api import expect

from chatsite.joined_files import join
from chatsite.tests.chromium import open_page, sign_in, violations
from chatsite.tests.long_answer import LONG_QUESTION
from chatsite.tests.server import BASE

pytestmark = [pytest.mark.browser, pytest.mark.server]

QUESTION = "When must carried days of leave be used?"
COMPLETE = ".answer[data-state=complete] .source-row"


conversations = {}  # {address of a site: path of its conversation}, so that each site is asked once


@pytest.fixture
def answered(chromium, slow_site):
    """(options of a signed-in page, path of a conversation with a complete answer)"""
    if slow_site.url not in conversations:
        with open_page(chromium, slow_site.url) as page:
            sign_in(page, "employee", slow_site.passwords["employee"])
            page.goto("/")
            page.get_by_label("Your question").fill(QUESTION)
            page.get_by_role("button", name="Send").click()
            page.wait_for_selector(COMPLETE)
            options = {"storage_state": page.context.storage_state()}
            conversations[slow_site.url] = options, page.url.removeprefix(slow_site.url)
    return conversations[slow_site.url]


def overlaps(page, first, second):
    """Whether the areas of two elements overlap."""
    one, other = page.locator(first).bounding_box(), page.locator(second).bounding_box()
    across = one["x"] < other["x"] + other["width"] and other["x"] < one["x"] + one["width"]
    down = one["y"] < other["y"] + other["height"] and other["y"] < one["y"] + one["height"]
    return across and down


def test_a_document_found_by_typing_becomes_the_scope_of_the_next_question(chromium, slow_site, answered):
    options, _ = answered
    with open_page(chromium, slow_site.url, **options) as page:
        page.goto("/")
        page.get_by_label("Your question").fill(QUESTION)
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector(COMPLETE)
        path = page.url.partition("#")[0]
        page.get_by_label("Your question").fill("And in which month?")
        page.get_by_role("button", name="Choose folders, categories or documents").click()
        names = page.get_by_role("searchbox", name="Words in the name of a folder")
        names.press_sequentially("xylophone")
        expect(page.get_by_role("status")).to_contain_text(
            "No folder, category or document that you can read"
        )
        names.fill("handbook")
        page.get_by_role("checkbox", name="Marlowe Ferries Employee Handbook").check()
        page.get_by_role("button", name="Search in the ticked documents").click()
        expect(page.get_by_label("Your question")).to_have_value("And in which month?")
        chosen = page.get_by_label("Search in", exact=True).input_value()
        assert chosen.startswith("document:")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("h2.question")).to_have_count(2)
        page.goto(path)
        assert page.get_by_label("Search in", exact=True).input_value() == chosen


def test_text_typed_before_the_script_loads_is_searched_for_too(chromium, slow_site, answered):
    options, _ = answered
    held = []
    with open_page(chromium, slow_site.url, **options) as page:
        page.route("**/search_in*.js", lambda route: held.append(route) or None)
        page.goto("/search-in", wait_until="commit")
        page.get_by_role("searchbox", name="Words in the name of a folder").fill("xylophone")
        while not held:
            page.wait_for_timeout(20)
        held.pop().continue_()
        expect(page.get_by_role("status")).to_contain_text(
            "No folder, category or document that you can read"
        )


def test_a_source_is_shown_beside_the_answer_and_covers_neither_it_nor_send(chromium, slow_site, answered):
    options, path = answered
    with open_page(chromium, slow_site.url, **options) as page:
        for width in (1024, 1280, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto("about:blank")  # `path` may differ from the current URL only in its fragment
            page.goto(path)
            page.locator(".answer .prose .cite").first.click()
            page.wait_for_selector("#source mark")
            for covered in (".thread", ".composer", "#send"):
                assert not overlaps(page, "#source", covered), (width, covered)
            assert page.locator(".prose").bounding_box()["width"] > 400, width
            expect(page.get_by_title("Close source")).to_be_in_viewport(ratio=1)
            page.locator("#send").click(trial=True)
            page.keyboard.press("Control+k")
            page.wait_for_selector("#palette :focus")
            assert violations(page) == [], width


def test_on_a_phone_a_source_is_a_sheet_which_back_closes_without_a_card_and_a_key_shows_one(
    chromium, slow_site, answered
):
    options, path = answered
    phone = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
    with open_page(chromium, slow_site.url, **phone, **options) as page:
        page.goto(path)
        citation = page.locator(".answer .prose .cite").first
        citation.tap()
        page.wait_for_selector("#source mark")
        assert page.locator("#source").bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 800}
        assert page.locator("main").evaluate("main => main.inert")
        expect(page.get_by_title("Close source")).to_be_in_viewport(ratio=1)
        page.go_back()
        page.wait_for_selector("#source", state="hidden")
        assert not page.locator("main").evaluate("main => main.inert")
        expect(citation).to_be_focused()
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        expect(page.locator("#cite-card")).to_have_count(0)
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        expect(citation).to_be_focused()
        expect(page.locator("#cite-card")).to_contain_text("Employee Handbook")


def test_a_source_opens_at_its_mark_regardless_of_earlier_scrolling(chromium, slow_site, answered):
    options, path = answered
    with open_page(chromium, slow_site.url, viewport={"width": 1440, "height": 800}, **options) as page:
        page.goto(path)
        long = "#source .view { min-block-size: 3000px }"
        page.evaluate("rule => { document.styleSheets[0].insertRule(rule) }", long)
        citation = page.locator(".answer .prose .cite").first
        for leave in ("Escape", "tab"):
            citation.click()
            page.wait_for_selector("#source mark")
            page.evaluate("document.querySelector('#source').scrollTop = 1500")
            if leave == "Escape":
                page.keyboard.press("Escape")
                page.wait_for_selector("#source", state="hidden")
                citation.click()
            else:
                page.locator("#source [role=tab][aria-selected=false]").first.click()
            page.wait_for_function("() => document.querySelector('#source').scrollTop === 0")
        page.locator("#source [role=tab]").first.click()
        expect(page.locator("#source mark").first).to_be_in_viewport(ratio=1)
        head, mark = (page.locator(each).first.bounding_box() for each in (".source-head", "#source mark"))
        assert mark["y"] >= head["y"] + head["height"]


def test_the_palette_leads_everywhere_by_keyboard_and_opens_with_the_text_of_the_search(
    chromium, slow_site, answered
):
    options, path = answered
    with open_page(chromium, slow_site.url, viewport={"width": 1280, "height": 800}, **options) as page:
        page.goto(path)
        for words, address in (
            ("carried days", f"{path}#"),
            ("handbook", "/documents/"),
            ("shared li", "/shares/"),
        ):
            page.keyboard.press("Control+k")
            page.wait_for_selector("#palette :focus")
            page.keyboard.type(words)
            chosen = page.locator("#palette [aria-selected=true]")
            for _ in range(20):
                expect(chosen).to_have_count(1)
                if address in chosen.get_attribute("href"):
                    break
                page.keyboard.press("ArrowDown")
            assert violations(page) == []
            page.keyboard.press("Enter")
            page.wait_for_url(re.compile(re.escape(address)))
        page.keyboard.press("Control+k")
        page.wait_for_selector("#palette :focus")
        page.keyboard.press("Escape")
        expect(page.locator("#palette")).to_be_hidden()
        page.goto("/")
        page.get_by_label("Search your conversations").click()
        page.wait_for_selector("#palette :focus")
        page.keyboard.type("carried days")
        # Any conversation: other tests may have asked the same question.
        expect(page.locator("#palette [aria-selected=true]")).to_have_attribute("href", re.compile("^/c/"))
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/c/[^/]+/#"))
        page.goto("/search/?q=carried+days")
        field = page.get_by_label("Search your conversations")
        field.fill("carried")  # opens the palette, as typing does
        page.wait_for_selector("#palette :focus")
        expect(page.locator("#palette [role=combobox]")).to_have_value("carried")
        page.keyboard.press("Escape")
        expect(field).to_be_focused()
        field.press("Enter")  # the same results as without the palette
        page.wait_for_url(re.compile(r"/search/\?q=carried#found$"))
        # The words that led to a place on the same page do not stay in the field.
        page.goto(path)
        field.fill("source 1")
        expect(page.locator("#palette [aria-selected=true]")).to_contain_text("Source 1")
        page.keyboard.press("Enter")
        expect(page.locator("#source-title")).to_be_visible()
        expect(field).to_have_value("")


def test_a_glossary_word_is_explained_by_pointer_keyboard_and_touch(chromium, slow_site, answered):
    meaning = "Paid days away from work."
    with open_page(chromium, slow_site.url) as page:
        sign_in(page, "admin", slow_site.passwords["admin"])
        page.goto("/admin/ingestion/houseword/add/")
        page.get_by_label("Word:", exact=True).fill("leave")
        page.get_by_label("Meaning:").fill(meaning)
        page.locator("[name=_save]").click()
        page.wait_for_selector(".success")
    options, path = answered
    with open_page(chromium, slow_site.url, color_scheme="dark", **options) as page:
        page.goto(path)
        term, bubble = page.locator(".answer .prose .term").first, page.locator(".meaning")
        expect(term).to_have_accessible_description(meaning)
        expect(bubble).to_be_hidden()
        term.hover()
        expect(bubble).to_have_text(meaning)
        bubble.hover()
        expect(bubble).to_be_visible()
        page.keyboard.press("Escape")
        expect(bubble).to_be_hidden()
        term.focus()
        expect(bubble).to_be_in_viewport(ratio=1)
        assert violations(page) == []
        page.keyboard.press("Enter")
        expect(bubble).to_be_hidden()
    with open_page(chromium, slow_site.url, has_touch=True, **options) as page:
        page.goto(path)
        page.locator(".answer .prose .term").first.tap()
        expect(page.locator(".meaning")).to_have_text(meaning)
        page.locator("h1").first.tap()
        expect(page.locator(".meaning")).to_be_hidden()


def test_without_scripts_a_source_is_a_page_of_its_own(chromium, slow_site, answered):
    options, path = answered
    with open_page(chromium, slow_site.url, java_script_enabled=False, **options) as page:
        page.goto(path)
        page.locator(".answer .prose .cite").first.click()
        assert "31 March" in page.locator("#source mark").first.inner_text()
        page.get_by_role("link", name="Close source").click()
        page.wait_for_selector("#source", state="hidden")


def test_citations_are_counted_and_their_words_boxed_on_a_page_which_can_be_enlarged_and_turned(
    chromium, slow_site, answered
):
    options, path = answered
    with open_page(chromium, slow_site.url, viewport={"width": 1280, "height": 800}, **options) as page:
        page.goto(path)
        chips = page.locator(".answer .prose .cite").all_inner_texts()
        assert len(set(chips)) == page.locator(".source-row").count()
        page.locator(".source-row").first.click()
        expect(page.locator("#source")).to_contain_text(f"1 of {len(set(chips))}")
        page.locator(".answer .prose .cite").first.click()
        page.get_by_role("tab", name="Page").click()
        page.wait_for_selector(".boxes rect")
        page.wait_for_function("() => document.querySelector('.stage img').complete")
        box, stage = page.locator(".boxes rect").first, page.locator(".stage")
        narrow = box.bounding_box()["width"]
        assert stage.bounding_box()["y"] < box.bounding_box()["y"]
        page.keyboard.press("+")
        assert box.bounding_box()["width"] > 1.4 * narrow
        view = stage.bounding_box()
        assert view["y"] <= box.bounding_box()["y"] <= view["y"] + view["height"]
        page.keyboard.press("0")
        page.keyboard.press("PageDown")
        page.wait_for_selector(".page-turn :text('Page 5 of')")
        page.wait_for_selector(".boxes", state="detached")
        page.keyboard.press("PageUp")
        page.wait_for_selector(".boxes rect")
        assert violations(page) == []


def test_scripts_and_styles_are_small_and_requests_few(chromium, slow_site, answered):
    def size(*names):
        return sum(len(gzip.compress(join(name, read)[0].encode())) for name in names)

    def read(name):
        return (BASE / "static" / name).read_text(encoding="utf-8")

    assert size("portal.js", "stream.js", "panel.js", "palette.js") <= 30_000
    assert size("portal.css") <= 18_000
    options, path = answered
    with open_page(chromium, slow_site.url, **options) as page:
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert len(requests) <= 8, requests


def test_pointing_at_a_chip_shows_its_source_and_the_supporting_words(chromium, slow_site, answered):
    options, path = answered
    with open_page(chromium, slow_site.url, viewport={"width": 1024, "height": 800}, **options) as page:
        page.goto(path)
        chip, card = page.locator(".answer .prose .cite").first, page.get_by_role("tooltip")
        chip.hover()
        expect(card).to_contain_text("Employee Handbook")
        expect(card.locator("q")).to_contain_text("31 March")
        assert chip.get_attribute("aria-describedby") == card.get_attribute("id")
        box, area = card.bounding_box(), page.locator("main").bounding_box()
        assert area["x"] <= box["x"]
        assert box["x"] + box["width"] <= area["x"] + area["width"]
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(card).to_have_count(0)
        page.mouse.move(0, 0)
        chip.focus()
        expect(card).to_be_visible()


def copied_by(page, button):
    """The text that a button copies. `wait_for_function` cannot wait for it: any promise counts as true."""
    page.evaluate("navigator.clipboard.writeText('')")
    button.click()
    return page.evaluate(
        """async () => {
          let text = '';
          while (!text) {
            await new Promise(requestAnimationFrame);
            text = await navigator.clipboard.readText();
          }
          return text;
        }"""
    )


def test_a_table_is_quoted_with_its_header_and_copied_as_csv(chromium, slow_site, answered):
    options = {**answered[0], "permissions": ["clipboard-read", "clipboard-write"]}
    with open_page(chromium, slow_site.url, **options) as page:
        page.goto("/")
        page.get_by_label("Your question").fill("What does the monthly commuter ticket cost?")
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector(COMPLETE)
        page.get_by_role("button", name="Copy as CSV").first.click()
        page.wait_for_selector("text=Copied.")
        header, *rows = page.evaluate("navigator.clipboard.readText()").splitlines()
        assert "," in header
        assert any("ommuter" in row for row in rows)
        quoted = page.locator(".answer table tbody tr").first.locator("td").last
        number = quoted.locator(".cite").inner_text()
        assert not any(row.endswith(f" {number}") for row in rows)
        cell = page.locator(".answer table tbody tr").first.locator("td").first
        for written, copied in (
            ("=1+1", "'=1+1,"),
            ("@a", "'@a,"),
            ("x; -b", "x; -b,"),
            ("x;-b", "x;'-b,"),
            ("-5,5 %", '"-5,5 %",'),
            ("+44 20", "+44 20,"),
        ):
            cell.evaluate("(cell, text) => { cell.textContent = text; }", written)
            text = copied_by(page, page.get_by_role("button", name="Copy as CSV").first)
            assert text.splitlines()[1].startswith(copied), written
        quoted.locator(".cite").click()
        text = copied_by(page, page.get_by_role("button", name="Copy passage"))
        assert "ommuter" in text
        assert not text.startswith(header)


def test_small_wheel_steps_detach_the_view_from_the_end_of_a_running_answer(chromium, slow_site, answered):
    options, _ = answered
    with open_page(chromium, slow_site.url, viewport={"width": 800, "height": 320}, **options) as page:
        page.goto("/")
        page.get_by_label("Your question").fill(LONG_QUESTION)
        page.get_by_role("button", name="Send").click()
        page.wait_for_function("() => scrollY > 60 && document.querySelector('.answer[aria-busy]')")
        page.mouse.move(400, 60)
        for _ in range(4):
            page.mouse.wheel(0, -12)
            page.wait_for_timeout(16)
        expect(page.locator("#jump")).to_be_visible()
        left, length = page.evaluate("[scrollY, document.querySelector('.prose').innerText.length]")
        page.wait_for_function(f"() => document.querySelector('.prose').innerText.length > {length} + 100")
        assert page.evaluate("scrollY") == left
