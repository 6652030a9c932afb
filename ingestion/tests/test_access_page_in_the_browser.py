"""The page that explains access, as an administrator uses it: by keyboard, light and dark."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.mark.parametrize("dark", [False, True])
def test_access_is_explained_by_keyboard_and_breaks_no_rule_of_accessibility(browser, site, dark):
    with browser.page(site.url, dark=dark) as page:
        page.sign_in("admin", site.passwords["admin"])
        page.go("/admin/ingestion/document/access/?document=salary-bands-2026.xlsx")
        page.type("#id_person", "employee")
        page.press("Tab")
        assert page.focused().startswith("input#id_document")
        page.press("Tab")
        page.call("Input.insertText", text="How much is a grade 5?")
        page.press("Enter")
        page.wait_for("#found", "What employee finds")
        page.wait_for("#explained-1", "employee may not read salary-bands-2026.xlsx.")
        page.wait_for(".access-answer li", "Members of HR may read it")
        assert page.problems == []
        assert page.accessibility_problems() == []
        page.go("/admin/accounts/auditentry/?q=grade")
        page.wait_for("#result_list td", "How much is a grade 5?")
        page.go("/admin/")
        page.click("#access-link a")
        page.wait_for("#id_person")
