"""No page of the portal breaks a rule of accessibility: as axe sees it, wide and narrow, light and dark."""

import pytest

from chatsite.tests.test_walkthrough import QUESTION, ask, signed_in, wait_for_state

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.mark.parametrize(("width", "mobile"), [(1440, False), (390, True)])
@pytest.mark.parametrize("dark", [False, True])
def test_no_page_breaks_a_rule_of_accessibility(browser, slow_site, width, mobile, dark):
    with signed_in(browser, slow_site, "employee", width=width, mobile=mobile, dark=dark) as page:
        page.go("/")
        assert page.accessibility_problems() == []
        ask(page, QUESTION)
        wait_for_state(page, "streaming")
        assert page.accessibility_problems() == []
        wait_for_state(page, "complete")
        assert page.accessibility_problems() == []
        page.click(".answer .cite")
        page.wait_for("#source mark")
        assert page.accessibility_problems() == []
        for path in ("/documents/", "/documents/add/", "/settings/", "/help/"):
            page.go(path)
            assert page.accessibility_problems() == [], path
        assert page.problems == []
