"""The portal on a phone: full names, large targets, all views of a source; and images that load late."""

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, violations
from chatsite.tests.portal_pages import WIDE, ask, signed_in, wait_for_state, wait_until

pytestmark = [pytest.mark.server, pytest.mark.browser]

IMAGE = "**/pages/*.png"
ON_A_PAGE = "How is a person overboard recovered?"  # the safety manual is a PDF
FILES = [
    {"name": "tide table of the outer harbour.md", "mimeType": "text/markdown", "buffer": b"High at noon."},
    {"name": "broken.png", "mimeType": "image/png", "buffer": b"no picture"},
]
TARGETS = """() => [...document.querySelectorAll('input[type=checkbox], input[type=radio]')]
    .filter(each => each.offsetParent)
    .map(each => [each, each.closest('label') ?? each]
        .map(part => part.getBoundingClientRect())
        .map(({ width, height }) => Math.min(width, height)))"""

THREE_COLUMNS = "How early must a car be at check-in?"
FEW_ROWS = "When is the last boat from Sennick back to Carrow Quay in winter?"
OUTSIDE = """table => [...table.querySelectorAll('td, .cite')]
    .filter(each => each.getClientRects().length)
    .map(each => [each.textContent, each.getBoundingClientRect()])
    .filter(([, { left, right }]) => left < 0 || right > innerWidth)
    .map(([text]) => text)"""
MANY_COLUMNS = "Which vessels are there?"
HIDDEN = "each => each.scrollWidth - each.clientWidth"
CUT = "each => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight"


@pytest.mark.parametrize("language", ["en", "de"])
def test_all_views_of_a_source_are_visible(chromium, site, language):
    with signed_in(chromium, site, locale=language, **PHONE) as page:
        ask(page, ON_A_PAGE)
        wait_for_state(page, "complete")
        page.locator(".source-row").first.click()
        expect(page.get_by_role("tab")).to_have_count(4)
        boxes = [tab.bounding_box() for tab in page.get_by_role("tab").all()]
        assert min(box["height"] for box in boxes) >= 44
        assert max(box["x"] + box["width"] for box in boxes) <= PHONE["viewport"]["width"]
        assert violations(page) == []


def test_check_boxes_are_large_enough_for_a_thumb(chromium, site):
    with signed_in(chromium, site, **PHONE) as page:
        ask(page, ON_A_PAGE)
        wait_for_state(page, "complete")
        for path in ("/documents/", "/search/", "/documents/add/", "/settings/"):
            page.goto(path)
            targets = page.evaluate(TARGETS)
            assert targets, path
            for seen, touched in targets:
                assert (min(seen, 20), min(touched, 44)) == (20, 44), (path, targets)
            assert violations(page) == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_titles_of_pages_are_not_cut_off(chromium, site, language):
    with signed_in(chromium, site, locale=language, **PHONE) as page:
        for path in ("/documents/", "/documents/add/", "/projects/", "/search/"):
            page.goto(path)
            cut = page.locator(".bar h1").evaluate(CUT)
            assert not cut, path


@pytest.mark.parametrize("options", [PHONE, {"color_scheme": "dark"}], ids=["phone", "dark"])
def test_a_page_says_if_its_image_is_loading_or_failed(chromium, site, options):
    with signed_in(chromium, site, **options) as page:
        ask(page, ON_A_PAGE)
        wait_for_state(page, "complete")
        held = []
        page.route(IMAGE, lambda route: held.append(route) or None)
        page.locator(".source-row").first.click()
        page.get_by_role("tab", name="Page").click()
        figure, state = page.locator(".page-image"), page.locator(".page-state")
        expect(state).to_have_text("Loading the page…")
        expect(figure).to_have_attribute("aria-busy", "true")
        height = figure.bounding_box()["height"]
        assert violations(page) == []
        held.pop().fulfill(status=503, body="")
        expect(figure.get_by_role("alert")).to_contain_text("The image of the page could not be loaded.")
        expect(state).to_be_empty()
        assert abs(figure.bounding_box()["height"] - height) < 1
        assert violations(page) == []
        page.unroute(IMAGE)
        figure.get_by_role("button", name="Try again").click()
        page.wait_for_function("() => document.querySelector('.page-image img').naturalWidth > 0")
        expect(figure.get_by_role("alert")).to_have_count(0)
        assert abs(figure.bounding_box()["height"] - height) < 1
        page.problems[:] = [each for each in page.problems if "503" not in each]


@pytest.mark.parametrize("options", [PHONE, WIDE], ids=["phone", "wide"])
def test_a_source_that_cannot_be_loaded_can_be_closed(chromium, site, options):
    with signed_in(chromium, site, **options) as page:
        ask(page, ON_A_PAGE)
        wait_for_state(page, "complete")
        answers = [
            (503, "The source could not be loaded.", 1),
            (404, "You can no longer open this source.", 0),
        ]
        for status, words, retries in answers:
            page.route("**/source/**", lambda route, *, status=status: route.fulfill(status=status, body=""))
            page.locator(".source-row").first.click()
            alert = page.locator("#source").get_by_role("alert")
            expect(alert).to_contain_text(words)
            expect(alert.get_by_role("button", name="Try again")).to_have_count(retries)
            expect(page.locator("#source-title")).to_be_focused()
            assert page.locator("main").evaluate("each => each.inert") == ("is_mobile" in options)
            assert violations(page) == []
            page.get_by_role("button", name="Close", exact=True).click()
            expect(page.locator("#source")).to_be_hidden()
            expect(page.locator(".source-row").first).to_be_focused()
            page.unroute("**/source/**")
        page.problems[:] = [each for each in page.problems if "503" not in each and "404" not in each]


def test_a_file_that_could_not_be_attached_stands_out_with_its_reason(chromium, site):
    with signed_in(chromium, site, **PHONE) as page:
        page.set_input_files(".attach input", FILES)
        failed = page.locator("#attached .danger")
        expect(failed).to_contain_text("Failed: The name of the file")
        expect(page.locator("#attached li").first).to_contain_text("Only you")
        name, reason = (failed.locator(part).bounding_box() for part in (".name", "[data-state]"))
        assert reason["y"] >= name["y"] + name["height"]
        assert violations(page) == []
        for row in page.locator("#attached button").all():
            assert min(row.bounding_box()[side] for side in ("width", "height")) >= 44


def test_chosen_files_overlap_neither_their_number_nor_the_edge(chromium, site):
    names = ("Prices of the canteen", "Meeting rooms of all ports", "Opening hours of branches", "Office kit")
    files = [
        {"name": f"{name}.md", "mimeType": "text/markdown", "buffer": f"# {name}\n\nTea is free.".encode()}
        for name in names
    ]
    with signed_in(chromium, site, **PHONE) as page:
        page.set_input_files(".attach input", files)
        expect(page.locator("#attached-count")).to_have_text("Documents: 4")
        gap = """() => {
            const range = document.createRange();
            range.selectNodeContents(document.querySelector('#attached-count'));
            const chips = document.querySelector('#attached ul').getBoundingClientRect();
            return chips.left - range.getBoundingClientRect().right;
        }"""
        assert page.evaluate(gap) >= 8
        expect(page.locator("#attached progress")).to_have_count(0)
        ask(page, "What is free?")
        wait_for_state(page, "complete")
        chips = page.locator(".chips").first
        expect(chips.locator("li")).to_have_count(4)
        assert chips.evaluate("list => list.scrollHeight <= list.clientHeight")


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_table_of_few_rows_is_read_without_scrolling_sideways(chromium, site, language):
    with signed_in(chromium, site, locale=language, color_scheme="dark", **PHONE) as page:
        ask(page, FEW_ROWS)
        wait_for_state(page, "complete")
        answer = page.locator(".answer .table.stacked").first
        expect(answer.get_by_role("columnheader", name="Depart")).to_have_count(1)
        assert answer.get_by_role("cell").count() > 5
        assert answer.evaluate("each => each.scrollWidth <= each.clientWidth")
        assert answer.evaluate(OUTSIDE) == []
        label = "each => getComputedStyle(each, '::before').content"
        assert answer.get_by_role("cell").first.evaluate(label).startswith('"Sailing"')
        chips = answer.locator(".cite")
        assert chips.count() == answer.locator("tbody tr").count()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
        chips.first.click()
        quoted = page.locator(".passage .table.stacked").first
        expect(quoted).to_be_visible()
        assert quoted.evaluate(OUTSIDE) == []
        assert quoted.evaluate("each => each.scrollWidth <= each.clientWidth")
        start = "each => parseFloat(getComputedStyle(each).paddingInlineStart)"
        assert quoted.get_by_role("cell").first.evaluate(start) > 100  # room for the label
        empty = "each => { each.replaceChildren(); return getComputedStyle(each).display; }"
        for table in (answer, quoted):  # the name of a column alone says nothing
            assert table.get_by_role("cell").nth(1).evaluate(empty) == "none"
        assert violations(page) == []


def test_three_columns_of_sentences_are_read_without_scrolling_sideways(chromium, site):
    with signed_in(chromium, site, color_scheme="dark", **PHONE) as page:
        ask(page, THREE_COLUMNS)
        wait_for_state(page, "complete")
        answer = page.locator(".answer .table").first
        assert answer.locator("tbody tr").count() > 3
        assert answer.evaluate(HIDDEN) <= 0
        assert answer.evaluate(OUTSIDE) == []
        assert violations(page) == []


def test_the_cited_row_of_a_long_wide_table_is_read_in_its_source(chromium, site):
    with signed_in(chromium, site, **PHONE) as page:
        ask(page, FEW_ROWS)
        wait_for_state(page, "complete")
        page.locator(".answer .cite").first.click()
        table = page.locator(".passage .table:has(tr.marked)")
        expect(table).to_have_count(1)
        assert table.locator("tbody tr").count() > 3
        assert table.evaluate(HIDDEN) <= 0
        assert table.evaluate(OUTSIDE) == []
        expect(table.locator("tr.marked mark").first).to_be_in_viewport()
        assert violations(page) == []


def test_a_table_of_few_rows_keeps_its_columns_if_they_fit(chromium, site):
    with signed_in(chromium, site, viewport={"width": 1280, "height": 850}) as page:
        ask(page, FEW_ROWS)
        wait_for_state(page, "complete")
        cells = page.locator(".answer .table.stacked tbody tr").first.get_by_role("cell")
        # In one step, because the answer may still move as a whole.
        tops = cells.evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().y)")
        assert len(tops) > 1
        assert len({*tops}) == 1


def test_a_wide_table_uses_the_space_beside_the_text(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask(page, MANY_COLUMNS)
        wait_for_state(page, "complete")
        table = page.locator(".answer .wide .table").first
        expect(page.locator(".answer .wide .block-head").first).to_contain_text("Table with 12 columns")
        assert table.evaluate(HIDDEN) <= 0
        assert table.bounding_box()["width"] > page.locator(".answer .prose").bounding_box()["width"]
        assert violations(page) == []


def test_the_first_column_stays_visible_with_the_number_of_the_source(chromium, site):
    with signed_in(chromium, site, **PHONE) as page:
        ask(page, MANY_COLUMNS)
        wait_for_state(page, "complete")
        table = page.locator(".answer .wide .table").first
        assert table.evaluate(HIDDEN) > 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        table.focus()
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        first = table.locator("tbody tr").first
        wait_until(page, "document.querySelector('.answer .wide .table').scrollLeft > 0")
        left = table.bounding_box()["x"]
        for seen in (first.locator("td").first, first.locator(".cite")):
            box = seen.bounding_box()
            assert left <= box["x"] < left + 150
        first.locator(".cite").click()
        expect(page.locator(".passage .wide tr.marked").first).to_be_visible()
        assert violations(page) == []


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["desk", "phone"])
def test_a_new_key_and_how_to_try_it_stay_within_the_page(chromium, site, screen):
    with signed_in(chromium, site, **screen) as page:
        page.goto("/settings/keys/")
        page.get_by_label("What is the key for?").fill("A script")
        page.get_by_role("button", name="Create a key").click()
        key, example = page.locator(".secret"), page.locator(".note pre")
        right = page.locator(".note.ok").bounding_box()
        for each in (key, example):
            box = each.bounding_box()
            assert box["x"] + box["width"] <= right["x"] + right["width"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
