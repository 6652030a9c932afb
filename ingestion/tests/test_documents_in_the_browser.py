"""Documents in a real browser, on the server that `make run` uses: added, followed, shared, deleted."""

import re

import pytest

pytestmark = [pytest.mark.server, pytest.mark.browser]

FOLLOWED = "!document.querySelector('[data-progress] [data-document], [data-progress] .icon-button')"

OVERHEAR = """
    window.told = '';
    new MutationObserver(() => { told += document.querySelector('[data-announce]').textContent; })
        .observe(document.querySelector('[data-announce]'), { childList: true });
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "mooring <b>rules.md").write_text("# Mooring\n\nTwo lines at each end, doubled in a gale.\n")
    (tmp_path / "empty.pdf").write_bytes(b"")
    return [tmp_path / "mooring <b>rules.md", tmp_path / "empty.pdf"]


def test_files_are_uploaded_and_followed_until_they_are_read(browser, site, files):
    with browser.page(site.url) as page:
        page.sign_in("employee", site.passwords["employee"])
        page.go("/documents/add/")
        page.choose_files("#files", *files)
        page.click("form[data-upload] .primary")
        page.wait_for("[data-progress] .file a", seconds=10)
        page.wait_until(FOLLOWED, seconds=30)
        lines = page.texts("[data-progress] .file")
        assert "mooring <b>rules.md\nReady" in lines[:2]
        assert "empty.pdf\nThe file is empty.\nFailed" in lines[:2]
        page.choose_files("#files", files[0])
        page.click("form[data-upload] .primary")
        page.wait_for("[data-progress] .file", "This file is already here", seconds=10)
        again = page.texts("[data-progress] .file")
        assert (len(again), again[0].count("Ready")) == (len(lines), 1)
        assert page.problems == []


def test_a_refused_name_is_said_above_the_form_and_the_files_stay_chosen(browser, site, files):
    with browser.page(site.url) as page:
        page.sign_in("employee", site.passwords["employee"])
        page.go("/documents/add/")
        page.choose_files("#files", files[0])
        page.click("[name=who][value=some]")
        page.type("#id_people", "nobody-here")
        page.click("form[data-upload] .primary")
        page.wait_for("[data-problems]", "There is no account named nobody-here.")
        assert page.run("document.querySelector('#files').files.length") == 1


def test_widening_asks_and_deleting_asks_in_a_dialog(browser, site, files):
    with browser.page(site.url) as page:
        page.sign_in("employee", site.passwords["employee"])
        page.go("/documents/add/")
        page.choose_files("#files", files[0])
        page.click("form[data-upload] .primary")
        page.wait_until(f"document.querySelector('[data-progress] .file a') && {FOLLOWED}", seconds=30)
        page.click("[data-progress] .file a")
        page.wait_for("#rights summary")
        page.click("#rights summary")
        page.click("#rights [value=everyone]")
        page.click("#rights .primary")
        page.wait_for("main", "3 people")
        page.click(".page-body .primary")
        page.wait_for(".facts", "Everyone who signs in may read it.")
        page.click("a[data-dialog=delete]")
        page.wait_until("document.querySelector('#delete').open")
        assert page.run("document.activeElement.textContent") == "Cancel"
        page.press("Escape")
        assert page.run("document.querySelector('#delete').open") is False
        page.click("a[data-dialog=delete]")
        page.click("#delete .destructive")
        page.wait_for("#toast", "Document deleted.")
        assert page.problems == []


def test_without_scripts_the_form_uploads_and_the_page_refreshes_itself(browser, site, files):
    with browser.page(site.url) as page:
        page.sign_in("hr", site.passwords["hr"])
        page.scripts(on=False)
        page.go("/documents/add/")
        page.choose_files("#files", *files)
        page.click("form[data-upload] .primary")
        page.settle(1.5)
        page.scripts(on=True)
        page.go("/documents/?show=mine")
        names = " ".join(page.texts(".docs td:first-child"))
        assert re.search(r"mooring <b>rules\.md", names)
        assert "empty.pdf" in names


@pytest.mark.parametrize("width", [1440, 390])
def test_pages_are_accessible_and_fit(browser, site, width):
    with browser.page(site.url, width=width, height=844, mobile=width < 600) as page:
        page.go("/accounts/sign-in/")
        found = {"sign-in": page.accessibility_problems()}
        page.sign_in("hr", site.passwords["hr"])
        for path in ("/documents/", "/documents/add/", "/settings/", "/settings/keys/", "/help/"):
            page.go(path)
            for scheme in ("light", "dark"):
                page.scheme(scheme)
                page.settle()
                found[f"{path} {scheme}"] = page.accessibility_problems()
            assert page.run("document.documentElement.scrollWidth") <= width, path
        assert {place: problems for place, problems in found.items() if problems} == {}
        assert page.problems == []


def test_the_lists_of_the_portal_and_the_admin_follow_what_is_read_by_themselves(browser, site, tmp_path):
    file = tmp_path / "tide tables.md"
    file.write_text("# Tides\n\nHigh water comes twice a day.\n")
    site.wait_for_worker()
    workers = site.children("chatsite.server.worker")
    with browser.page(site.url) as portal, browser.page(site.url) as admin:
        portal.sign_in("employee", site.passwords["employee"])
        admin.sign_in("admin", site.passwords["admin"])
        for worker in workers:
            worker.suspend()
        try:
            portal.go("/documents/add/")
            portal.choose_files("#files", file)
            portal.click("form[data-upload] .primary")
            portal.wait_for("[data-progress] .file a", "tide tables.md", seconds=10)
            portal.go("/documents/?show=running")
            portal.run(OVERHEAR)
            assert "Waiting" in portal.text("[data-document] [data-badge]")
            admin.go("/admin/ingestion/document/")
            assert "… Waiting" in admin.texts("td.field-state")
        finally:
            for worker in workers:
                worker.resume()
        portal.wait_until("told.includes('tide tables.md: Ready.')", seconds=30)
        assert "Ready" in portal.text("tbody tr")
        admin.wait_until(
            "![...document.querySelectorAll('td.field-state')].some(cell => cell.textContent.includes('…'))",
            seconds=30,
        )
        assert portal.problems == admin.problems == []
