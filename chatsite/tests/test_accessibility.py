"""No page of the portal breaks a rule of accessibility: as axe sees it, wide and narrow, light and dark."""

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, violations
from chatsite.tests.portal_pages import QUESTION, WIDE, ask, signed_in, wait_for_state

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_breaks_a_rule_of_accessibility(chromium, slow_site, screen, scheme):
    with signed_in(chromium, slow_site, color_scheme=scheme, **screen) as page:
        page.goto("/")
        assert violations(page) == []
        ask(page, QUESTION)
        wait_for_state(page, "streaming")
        assert violations(page) == []
        wait_for_state(page, "complete")
        assert violations(page) == []
        page.locator(".answer .cite").first.click()
        expect(page.locator("#source mark").first).to_be_visible()
        assert violations(page) == []
        for path in ("/documents/", "/documents/add/", "/settings/", "/help/"):
            page.goto(path)
            assert violations(page) == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_of_the_admin_breaks_none_either(chromium, slow_site, scheme):
    with signed_in(chromium, slow_site, "admin", color_scheme=scheme, **WIDE) as page:
        page.goto("/admin/?days=90")
        page.locator(".overview summary").first.click()
        assert violations(page) == []
