"""The page that explains access, in a browser: by keyboard, light and dark."""

import re

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import violations
from chatsite.tests.portal_pages import signed_in

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_access_is_explained_by_keyboard_and_breaks_no_rule_of_accessibility(chromium, site, scheme):
    with signed_in(chromium, site, "admin", with_problems=True, color_scheme=scheme) as page:
        page.goto("/admin/ingestion/document/access/?document=salary-bands-2026.xlsx")
        page.locator("#id_person").press_sequentially("emplo")
        expect(page.locator("#id_person-found [role=option]").first).to_be_visible()
        assert page.problems == []
        assert violations(page) == []
        page.problems.clear()
        page.keyboard.press("Enter")
        expect(page.locator("#id_person")).to_have_value(re.compile(r"\bemployee\b"))
        page.keyboard.press("Tab")
        expect(page.locator("#id_document")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.insert_text("How much is a grade 5?")
        page.keyboard.press("Tab")
        page.keyboard.insert_text("ticket 4711")
        page.keyboard.press("Enter")
        expect(page.locator("#found")).to_contain_text("What employee finds")
        expect(page.locator("#explained-1")).to_contain_text("employee may not read salary-bands-2026.xlsx.")
        expect(page.locator(".access-answer li").first).to_contain_text("Members of HR may read it")
        assert page.problems == []
        # To judge the admin's colours, axe applies inline styles, which the policy refuses.
        assert violations(page) == []
        page.goto("/admin/accounts/auditentry/?q=grade")
        expect(
            page.locator("#result_list td").filter(has_text="How much is a grade 5?").first
        ).to_be_visible()
        page.goto("/admin/")
        page.locator("#access-link a").click()
        expect(page.locator("#id_person")).to_be_visible()
