"""Attaching files to a question by choosing, pasting and dropping them, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, open_page, sign_in, violations

pytestmark = [pytest.mark.browser, pytest.mark.server]

CRANE = {
    "name": "crane.md",
    "mimeType": "text/markdown",
    "buffer": b"# Crane\n\nThe crane on pier nine lifts at most 4.5 tonnes in winter.",
}
TRANSFER = """([name, text, type]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name, { type }));
  return files;
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_a_chosen_file_is_read_and_the_answer_cites_it(chromium, slow_site, width):
    size = {"width": width, "height": 844}
    with open_page(chromium, slow_site.url, viewport=size) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Attach files").click()
        chooser.value.set_files(CRANE)
        expect(page.locator("#attached li")).to_contain_text("crane.md")
        expect(page.get_by_label("Your question")).to_be_focused()
        page.get_by_label("Your question").fill("How much does the crane on pier nine lift in winter?")
        page.get_by_role("button", name="Send").click()  # waits until the file is uploaded and read
        answer = page.locator(".answer[data-state=complete]")
        expect(answer).to_contain_text("4.5 tonnes", timeout=60_000)
        expect(answer.locator(".prose")).to_have_attribute("lang", "en")
        expect(answer.locator(".source-row")).to_contain_text("Crane")
        expect(page.locator(".turn .chips")).to_contain_text("Crane")  # its title, not its name
        page.reload()
        expect(page.locator(".turn .chips")).to_contain_text("Crane")
        expect(page.locator("#attached li")).to_have_count(1)
        assert page.get_by_label("Search in", exact=True).input_value().startswith("document:")
        assert violations(page) == []
        target = page.locator("#attached button").bounding_box()
        assert min(target["width"], target["height"]) >= 24


def test_many_files_take_one_line_on_a_phone_and_the_newest_is_visible(chromium, slow_site):
    with open_page(chromium, slow_site.url, viewport={"width": 390, "height": 844}) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        page.set_input_files(".attach input", [CRANE | {"name": f"crane-{'on-the-pier-' * 9}.md"}])
        only, strip = (
            page.locator("#attached li").bounding_box(),
            page.locator("#attached ul").first.bounding_box(),
        )
        assert 0.9 * strip["width"] < only["width"] <= strip["width"]
        page.locator("#attached button").click()
        names = [f"crane-{number}.md" for number in range(1, 6)]
        page.set_input_files(".attach input", [CRANE | {"name": name} for name in names])
        chips = page.locator("#attached li")
        expect(chips).to_have_count(len(names))
        last, strip = chips.last.bounding_box(), page.locator("#attached ul").first.bounding_box()
        expect(page.locator("#attached-count")).to_have_text("Documents: 5")
        assert strip["height"] < 2 * last["height"]
        assert last["x"] < strip["x"] + strip["width"]
        page.set_input_files(".attach input", CRANE | {"name": "broken.pdf", "buffer": b"no PDF"})
        expect(page.locator("#attached .danger")).to_contain_text("PDF", timeout=60_000)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_on_a_phone_unreadable_files_are_visible_before_and_after_the_question(chromium, slow_site):
    files = [CRANE | {"name": f"winch-{number}.md"} for number in range(1, 4)]
    for number in range(1, 3):
        files.insert(number, CRANE | {"name": f"broken-{number}.pdf", "buffer": b"no PDF"})
    with open_page(chromium, slow_site.url, **PHONE) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        page.set_input_files(".attach input", files)
        expect(page.locator("#attached-count")).to_have_text(
            "Documents: 5 · Could not be read: 2", timeout=60_000
        )
        expect(page.locator("#attached [data-unfinished]")).to_have_count(0)
        for name in ("broken-1.pdf", "broken-2.pdf"):
            expect(page.locator("#attached .danger").filter(has_text=name)).to_be_in_viewport(ratio=1)
        assert violations(page) == []
        page.get_by_label("Your question").fill("How much does the crane on pier nine lift in winter?")
        page.get_by_role("button", name="Send").click()
        told = page.locator(".turn p.unread")
        expect(told).to_have_text(
            re.compile(
                r"^Asked without the files that could not be read: broken-[12]\.pdf, broken-[12]\.pdf$"
            )
        )
        expect(page.locator(".answer[data-state=complete]")).to_have_count(1)
        expect(page.locator(".turn .chips li")).to_have_count(3)
        page.get_by_label("Your question").fill("And what lifts at most 4.5 tonnes?")
        page.get_by_role("button", name="Send").click()
        second = page.locator(".turn").nth(1)
        expect(second.locator(".answer[data-state=complete]")).to_have_count(1)
        for _ in range(2):  # as rendered by the script, and after a reload
            expect(second.locator(".as-before")).to_have_text("About the same 3 documents")
            expect(second.locator(".chips")).to_have_count(0)
            page.reload()
        expect(told).to_be_visible()


def test_an_attached_file_changes_the_page_at_once(chromium, slow_site):
    with open_page(chromium, slow_site.url, viewport={"width": 1280, "height": 844}) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        page.get_by_label("Your question").fill("How long is parental leave?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".answer[data-state=complete]")).to_have_count(1)
        before = int(page.locator("[data-searchable]").inner_text())
        page.set_input_files(".attach input", {**CRANE, "name": "tugs.md", "buffer": b"Tugs start at dawn."})
        expect(page.locator("#attached li")).to_contain_text("Only you")
        expect(page.locator("#attached [data-unfinished]")).to_have_count(0)
        page.get_by_label("Your question").fill("When do tugs start?")
        page.get_by_role("button", name="Send").click()
        second = page.locator(".turn").nth(1)
        expect(second.locator(".chips")).to_contain_text("tugs")
        expect(second.locator(".answer[data-state=complete]")).to_contain_text("dawn")
        page.goto("/documents/add/")
        moor = {**CRANE, "name": "moor.md", "buffer": b"Moor at the buoy."}
        page.set_input_files("#files", [moor, {**CRANE, "name": "quay.md"}])
        expect(page.get_by_role("list", name="Chosen files").get_by_role("listitem")).to_have_text(
            ["moor.md", "quay.md"]
        )
        page.set_input_files("#files", moor)
        expect(page.locator("[data-chosen]")).to_be_hidden()  # the input shows this name
        page.get_by_role("button", name="Upload", exact=True).click()
        expect(page.locator(".file").filter(has_text="moor.md")).to_contain_text("Only you")
        # The attached file is searched only in its conversation, and not counted.
        expect(page.locator("[data-searchable]")).to_have_text(str(before + 1))


def test_files_are_pasted_and_dropped_anywhere_and_removed_again(chromium, slow_site):
    with open_page(chromium, slow_site.url) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        dropped = page.evaluate_handle(TRANSFER, ["notes.md", "Dropped words.", "text/markdown"])
        page.dispatch_event("h1", "drop", {"dataTransfer": dropped})
        expect(page.locator("#attached li")).to_have_count(1)
        page.evaluate(
            """([name, text, type]) => {
              const clipboardData = new DataTransfer();
              clipboardData.items.add(new File([text], name, { type }));
              document.querySelector('#question').dispatchEvent(
                new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
            }""",
            ["image.png", "no picture", "image/png"],
        )
        pasted = page.locator("#attached li").nth(1)
        expect(pasted).to_contain_text(re.compile(r"Pasted \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.png"))
        expect(pasted).to_contain_text("Failed")  # not an image
        scope = page.get_by_label("Search in", exact=True)
        # The scope has one document, because the other cannot be searched.
        expect(scope).to_have_value(re.compile(r"^document:[0-9a-f-]{36}$"))
        page.get_by_role("button", name=re.compile("^Remove Pasted")).click()
        expect(page.locator("#attached li")).to_have_count(1)
        assert re.fullmatch(r"document:[0-9a-f-]{36}", scope.input_value())
        page.get_by_role("button", name="Remove notes.md").click()
        expect(page.get_by_text("“notes.md” stays under Documents.")).to_be_visible()
        expect(page.locator("#scope option[data-attached]")).to_have_count(0)
        assert scope.input_value() == "all"
        expect(page.locator("#attached")).to_be_hidden()


def test_a_file_removed_during_an_upload_stays_removed(chromium, slow_site):
    with open_page(chromium, slow_site.url) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        held = []
        page.set_input_files(".attach input", {**CRANE, "name": "one.md", "buffer": b"One."})
        expect(page.locator("#attached [data-document]")).to_have_count(1)
        page.route("**/attach", lambda route: held.append(route) or None)
        page.set_input_files(".attach input", {**CRANE, "name": "two.md", "buffer": b"Two."})
        expect(page.locator("#attached li")).to_have_count(2)
        page.get_by_role("button", name="Remove one.md").click()
        held[0].continue_()
        expect(page.locator("#attached [data-document]")).to_have_count(1)
        scope = page.get_by_label("Search in", exact=True)
        assert re.fullmatch(r"document:[0-9a-f-]{36}", scope.input_value())


def test_a_refused_file_is_reported_and_the_question_stays(chromium, slow_site):
    with open_page(chromium, slow_site.url, with_problems=True) as page:
        sign_in(page, "employee", slow_site.passwords["employee"])
        page.goto("/")
        held = []
        page.route("**/attach*.js", lambda route: held.append(route) or None)
        page.get_by_label("Your question").fill("What is this?")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Attach files").click()
        chooser.value.set_files({"name": "...", "mimeType": "text/plain", "buffer": b"No name."})
        page.get_by_role("button", name="Send").click()  # before the script for files is loaded
        held[0].continue_()
        expect(page.get_by_role("alert")).to_contain_text("...: The file has no name.")
        expect(page.get_by_label("Your question")).to_have_value("What is this?")
        expect(page.locator("h2.question")).to_have_count(0)
