"""Documents in a real browser, on the server that `make run` uses: added, followed, shared, deleted."""

import pytest
from django.templatetags.static import static
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, open_page, sign_in, violations
from chatsite.tests.portal_pages import WIDE, signed_in, wait_until

pytestmark = [pytest.mark.server, pytest.mark.browser]

READ_SECONDS = 30
OVERHEAR = """
    window.told = '';
    new MutationObserver(() => { told += document.querySelector('[data-announce]').textContent; })
        .observe(document.querySelector('[data-announce]'), { childList: true });
"""


@pytest.fixture
def files(tmp_path):
    """A file that is read, and one that is refused."""
    (tmp_path / "mooring <b>rules.md").write_text("# Mooring\n\nTwo lines at each end, doubled in a gale.\n")
    (tmp_path / "empty.pdf").write_bytes(b"")
    return [tmp_path / "mooring <b>rules.md", tmp_path / "empty.pdf"]


def add(page, *files):
    """Choose files on the page of the form, and send them."""
    page.goto("/documents/add/")
    page.locator("#files").set_input_files(files)
    page.locator("form[data-upload] .primary").click()


def wait_until_followed(page):
    """Wait until the list shows each file as read or refused."""
    expect(page.locator("[data-progress] .file a").first).to_be_visible()
    unfinished = page.locator("[data-progress] [data-document], [data-progress] .icon-button")
    expect(unfinished).to_have_count(0)


def test_files_are_uploaded_and_their_progress_is_shown_until_they_are_read(chromium, site, files):
    with signed_in(chromium, site) as page:
        page.goto("/documents/add/")
        before = page.locator("[data-use]").inner_text()
        add(page, *files)
        wait_until_followed(page)
        assert page.locator("[data-use]").inner_text() != before
        lines = page.locator("[data-progress] .file").all_inner_texts()
        assert "mooring <b>rules.md\nOnly you\nReady" in lines[:2]
        assert "empty.pdf\nThe file is empty.\nFailed" in lines[:2]
        page.locator("#files").set_input_files(files[0])
        page.locator("form[data-upload] .primary").click()
        here = page.locator("[data-progress] .file").filter(has_text="This file is already here")
        expect(here.first).to_be_visible()
        again = page.locator("[data-progress] .file").all_inner_texts()
        assert (len(again), again[0].count("Ready")) == (len(lines), 1)


def test_a_refused_name_is_reported_above_the_form_and_the_files_stay_selected(chromium, site, files):
    with signed_in(chromium, site, with_problems=True) as page:
        page.goto("/documents/add/")
        page.locator("#files").set_input_files(files[0])
        page.locator("[name=who][value=some]").click()
        page.locator("#id_people").fill("nobody-here")
        page.locator("form[data-upload] .primary").click()
        expect(page.locator("[data-problems]")).to_contain_text("There is no account named nobody-here.")
        assert page.evaluate("document.querySelector('#files').files.length") == 1


def test_people_are_found_by_typing_and_selected_by_keyboard_or_touch(chromium, site, files):
    with signed_in(chromium, site, **PHONE) as page:
        page.goto("/documents/add/")
        page.locator("#files").set_input_files(files[0])
        field, options = page.get_by_role("combobox", name="People"), page.get_by_role("option")
        page.locator("[name=who][value=some]").check()
        field.press_sequentially("hr")
        expect(options).to_have_text(["hr"])
        assert violations(page) == []
        assert options.first.bounding_box()["height"] >= 44
        field.press("Enter")
        expect(field).to_have_value("hr, ")
        expect(options).to_have_count(0)
        field.press_sequentially("adm")
        expect(options).to_have_text(["admin"])
        field.press("Escape")
        expect(options).to_have_count(0)
        assert field.input_value() == "hr, adm"
        field.press_sequentially("i")
        options.first.tap()
        expect(field).to_have_value("hr, admin, ")
        page.locator("form[data-upload] .primary").click()
        wait_until_followed(page)
        page.locator("[data-progress] .file a").first.click()
        page.locator("#rights summary").click()
        expect(page.locator("#id_people")).to_have_value("admin, hr")
        page.locator("#find-here").fill("lines gale")
        page.keyboard.press("Enter")
        expect(page.locator("#passages mark")).to_have_text(["lines", "gale"])
        current = page.locator("#passages mark[aria-current]")
        expect(current).to_have_text("lines")
        page.locator("[data-hit-step='1']").click()
        expect(current).to_have_text("gale")
        expect(page.locator(".hits [role=status]")).to_have_text("Hit 2 of 2")
        page.locator("#find-here").press("Enter")
        expect(current).to_have_text("lines")
        page.locator("#find-here").press("Shift+Enter")
        expect(current).to_have_text("gale")
        assert violations(page) == []


def test_adding_readers_and_deleting_ask_in_a_dialog(chromium, site, files):
    with signed_in(chromium, site) as page:
        add(page, files[0])
        wait_until_followed(page)
        page.locator("[data-progress] .file a").first.click()
        page.locator("#rights summary").click()
        page.locator("#rights [value=everyone]").click()
        page.locator("#rights .primary").click()
        expect(page.locator("main")).to_contain_text("3 people")
        page.locator(".page-body .primary").click()
        expect(page.locator(".facts")).to_contain_text("Everyone who signs in may read it.")
        page.locator("a[data-dialog=delete]").click()
        expect(page.locator("#delete")).to_have_attribute("open", "")
        assert page.evaluate("document.activeElement.textContent") == "Cancel"
        page.keyboard.press("Escape")
        expect(page.locator("#delete")).not_to_have_attribute("open", "")
        page.locator("a[data-dialog=delete]").click()
        page.locator("#delete .destructive").click()
        expect(page.locator("#toast")).to_contain_text("Document deleted.")


def test_the_form_uploads_without_scripts(chromium, site, files):
    with open_page(chromium, site.url, java_script_enabled=False) as page:
        sign_in(page, "hr", site.passwords["hr"])
        with page.expect_response(lambda response: response.request.method == "POST"):
            add(page, *files)
        page.goto("/documents/?show=mine")
        names = " ".join(page.locator(".docs td:first-child").all_inner_texts())
        assert "mooring <b>rules.md" in names
        assert "empty.pdf" in names


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["desk", "phone"])
def test_pages_are_accessible_and_fit_the_screen(chromium, site, screen):
    with open_page(chromium, site.url, **screen) as page:
        page.goto("/accounts/sign-in/")
        found = {"sign-in": violations(page)}
        sign_in(page, "hr", site.passwords["hr"])
        for path in ("/documents/", "/documents/add/", "/settings/", "/settings/keys/", "/help/"):
            page.goto(path)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found[f"{path} {scheme}"] = violations(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"], path
        assert {place: problems for place, problems in found.items() if problems} == {}


def test_the_lists_of_the_portal_and_the_admin_show_progress_without_a_reload(chromium, site, tmp_path):
    file = tmp_path / "tide tables.md"
    file.write_text("# Tides\n\nHigh water comes twice a day.\n")
    site.wait_for_worker()
    workers = site.children("chatsite.server.worker")
    with signed_in(chromium, site) as portal, signed_in(chromium, site, "admin") as admin:
        for worker in workers:
            worker.suspend()
        try:
            add(portal, file)
            expect(portal.locator("[data-progress] .file a").first).to_contain_text("tide tables.md")
            portal.goto("/documents/?show=running")
            portal.evaluate(OVERHEAR)
            expect(portal.locator("[data-document] [data-badge]").first).to_contain_text("Waiting")
            admin.goto("/admin/ingestion/document/")
            assert "… Waiting" in admin.locator("td.field-state").all_inner_texts()
        finally:
            for worker in workers:
                worker.resume()
        wait_until(portal, "told.includes('tide tables.md: Ready.')", READ_SECONDS)
        expect(portal.locator("tbody tr").first).to_contain_text("Ready")
        expect(admin.locator("td.field-state").filter(has_text="…")).to_have_count(0)


def test_the_start_page_updates_itself_and_keeps_the_typed_question(chromium, site):
    with signed_in(chromium, site) as page:
        page.goto("/")
        welcome = page.locator(".welcome")
        before = welcome.inner_text()
        page.locator("#question").fill("Half a quest")
        page.evaluate(
            "document.querySelector('.welcome').innerHTML = '<p data-running>2 are being read.</p>'"
        )
        page.add_script_tag(url=static("live_page.js"), type="module")
        expect(page.locator("[data-running]")).to_have_count(0, timeout=20_000)
        assert (welcome.inner_text(), page.locator("#question").input_value()) == (before, "Half a quest")
