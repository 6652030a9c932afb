"""No page of the admin breaks a rule of accessibility, as axe sees it: lists, forms, and pages of its own."""

import re
from http import HTTPStatus

import pytest
from django.contrib import admin

from chatsite.tests.chromium import violations
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.plugins.seed import sample
from chatsite.tests.portal_pages import signed_in
from chatsite.tests.routes import admin_addresses

pytestmark = [pytest.mark.browser, pytest.mark.server]

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
VIEWS = [(DESK, "light"), (PHONE, "dark")]
SHOWN = {HTTPStatus.OK, HTTPStatus.NOT_FOUND}  # 404: pages about a row that does not exist
ENOUGH = 50  # least number of pages
NO_PAGES = r"autocomplete|jsi18n|view_on_site|csv|figures|names|wording|log(in|out)|password_change|nothing"
# Checked only once: the navigation beside each page, and the rows of a long table, which are all alike.
SIDEBAR, WITH_SIDEBAR = "#nav-sidebar", "/admin/auth/group/"
REPEATED = [f"{SIDEBAR} tr:not(.current-model)", "tbody tr:nth-child(n + 31)"]
OF_ROWS = r"_(change|delete|history)$|user_password_change$"


def pages():
    """Addresses of the pages that are neither lists nor about a row."""
    for name, path in admin_addresses():
        if not re.search(f"{NO_PAGES}|{OF_ROWS}|_changelist$", name) and "nothing" not in path:
            yield path


def lists():
    for model in admin.site._registry:
        yield f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


def broken(page, path, leave_out):
    """The violations on a desktop in light colours or on a phone in dark ones.

    Pages with a form to add read-only objects are skipped.
    """
    page.set_viewport_size(PHONE)
    status = page.goto(path).status
    if status == HTTPStatus.FORBIDDEN:
        return {}
    assert status in SHOWN, path
    too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    found = {f"{path}, phone": ["wider than the phone"] if too_wide else []}
    for size, scheme in sample(VIEWS, one_in=2):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        found[f"{path}, {scheme}"] = violations(page, leave_out)
    return {where: rules for where, rules in found.items() if rules}


@pytest.mark.timeout(LONG_SECONDS)
def test_no_page_of_the_admin_breaks_a_rule(chromium, slow_site):
    # axe itself sets inline styles, which the pages' policy refuses.
    with signed_in(chromium, slow_site, "admin", with_problems=True, viewport=DESK) as page:
        found, seen = broken(page, WITH_SIDEBAR, leave_out=()), 1
        assert page.locator(SIDEBAR).count()
        for path in [*pages(), *lists()]:
            found |= broken(page, path, REPEATED)
            seen += 1
            row = page.locator("#result_list tbody th a").first
            if path in set(lists()) and row.count():
                found |= broken(page, row.get_attribute("href"), REPEATED)
                seen += 1
        assert found == {}
        assert seen > ENOUGH


def test_the_list_of_documents_fits_and_rows_are_chosen_by_their_cells(chromium, slow_site):
    with signed_in(chromium, slow_site, "admin", viewport=DESK) as page:
        page.goto("/admin/ingestion/document/")
        page.locator("#result_list tbody tr").first.wait_for()
        wide = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
        assert page.evaluate(f"{wide}(document.querySelector('#changelist-form .results'))") == 0
        page.set_viewport_size(PHONE)
        cell = page.locator("#result_list tbody td.action-checkbox").first
        box = cell.locator("input")
        for target, least in ((cell, 44), (box, 24)):
            size = target.bounding_box()
            assert min(size["width"], size["height"]) >= least
        place = cell.bounding_box()
        page.mouse.click(place["x"] + 3, place["y"] + place["height"] - 3)
        assert box.is_checked()
        assert "1 of" in page.locator(".action-counter").inner_text()
        box.click()
        assert not box.is_checked()
