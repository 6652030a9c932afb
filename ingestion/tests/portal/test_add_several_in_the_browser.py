"""Adding several files at once in the admin, in Chromium."""

import zipfile

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, violations
from chatsite.tests.portal_pages import signed_in

pytestmark = [pytest.mark.browser, pytest.mark.server]

LISTED = "/admin/ingestion/document/?q=several"
DESK = {"viewport": {"width": 1280, "height": 800}}


@pytest.fixture
def files(tmp_path):
    """Three text files, and an archive of two."""
    paths = [tmp_path / f"several-{number}.md" for number in range(3)]
    for path in paths:
        path.write_text(f"# {path.stem}\n\nMooring lines are doubled in a gale.\n")
    archive = tmp_path / "several.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("one.md", "First.")
        written.writestr("two.md", "Second.")
    return [*paths, archive]


def delete_all(page):
    """Restore the site."""
    # Not the files in the archive, which are deleted with it.
    found = page.locator("#result_list tbody th a", has_text="several")
    page.goto(LISTED)
    while found.count():
        found.first.click()
        page.locator("a.deletelink").click()
        page.locator("#content input[type=submit]").click()
        expect(page.locator(".messagelist .success")).to_be_visible()
        page.goto(LISTED)


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
def test_three_files_and_an_archive_get_the_selected_readers(chromium, site, files, screen):
    # axe itself sets inline styles, which the page's policy refuses.
    with signed_in(chromium, site, "admin", with_problems=True, **screen) as page:
        page.goto("/admin/ingestion/document/")
        page.get_by_role("link", name="Add several files", exact=True).click()
        expect(page.get_by_label("Only me", exact=True)).to_be_checked()
        page.get_by_label("Files", exact=True).set_input_files(files)
        page.get_by_label("Some groups or people").check()
        page.locator(".field-groups .select2-search__field").click()
        page.keyboard.type("HR")
        page.locator(".select2-results__option", has_text="HR").first.click()
        page.get_by_label("Folder", exact=True).fill("several")
        assert page.problems == []
        assert violations(page) == []
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("#content-main tbody tr")).to_have_count(4)
        assert page.locator("#content-main tbody td").all_inner_texts() == ["Added"] * 4
        assert violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        page.get_by_role("link", name="several.zip", exact=True).click()
        expect(page.locator("#id_groups option")).to_have_text(["HR"])
        page.goto("/admin/accounts/auditentry/?q=several.zip")
        expect(page.locator("#result_list td").filter(has_text="Added several.zip").first).to_be_visible()
        delete_all(page)
