"""No page of the admin breaks a rule of accessibility, as axe sees it: lists, forms, and pages of its own."""

import re
from http import HTTPStatus

import pytest
from django.contrib import admin

from chatsite.tests.chromium import violations
from chatsite.tests.portal_pages import signed_in
from chatsite.tests.routes import admin_addresses

pytestmark = [pytest.mark.browser, pytest.mark.server]

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SHOWN = {HTTPStatus.OK, HTTPStatus.NOT_FOUND}  # of pages about a row that is not there
ENOUGH = 50  # pages
NO_PAGES = r"autocomplete|jsi18n|view_on_site|csv|figures|names|log(in|out)|password_change|nothing-here"
OF_ROWS = r"_(change|delete|history)$|user_password_change$"


def pages():
    """Addresses of pages beside the lists and the rows."""
    for name, path in admin_addresses():
        if not re.search(f"{NO_PAGES}|{OF_ROWS}|_changelist$", name) and "nothing" not in path:
            yield path


def lists():
    for model in admin.site._registry:
        yield f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


def broken(page, path):
    """What is broken on a desk in light colours, and on a phone in dark ones.

    Pages that would add what is only shown are closed.
    """
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light")
    status = page.goto(path).status
    if status == HTTPStatus.FORBIDDEN:
        return {}
    assert status in SHOWN, path
    found = {f"{path}, desk": violations(page)}
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    found[f"{path}, phone"] = violations(page)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found[f"{path}, phone"] = [*found[f"{path}, phone"], "wider than the phone"]
    return {where: rules for where, rules in found.items() if rules}


@pytest.mark.timeout(360)
def test_no_page_of_the_admin_breaks_a_rule(chromium, slow_site):
    # axe itself sets styles, which the policy of the pages refuses.
    with signed_in(chromium, slow_site, "admin", with_problems=True, viewport=DESK) as page:
        found, seen = {}, 0
        for path in [*pages(), *lists()]:
            found |= broken(page, path)
            seen += 1
            row = page.locator("#result_list tbody th a").first
            if path in set(lists()) and row.count():
                found |= broken(page, row.get_attribute("href"))
                seen += 1
        assert found == {}
        assert seen > ENOUGH
