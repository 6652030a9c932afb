"""Forms of the admin list errors at the top, with links to the fields, and ask before they delete."""

import re

import pytest
from django.contrib import admin

from chatsite.tests.chromium import violations
from chatsite.tests.limits import LONG_SECONDS
from chatsite.tests.portal_pages import signed_in

pytestmark = [pytest.mark.browser, pytest.mark.server]

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
OTHER_FORMS = (
    "/admin/ingestion/document/add-several/",
    "/admin/ingestion/document/access/",
    "/admin/ingestion/houseword/file/",
    "/admin/chat/proofquestion/file/",
)
ENOUGH = 10  # least number of forms
# Whether the focus is on the field that a link leads to, or on the picker that replaces this field.
REACHED = """id => {
    const target = document.getElementById(id), row = target.closest('.form-row, td, .flex-container');
    return target === document.activeElement || row.contains(document.activeElement);
}"""


def send_empty(page, path):
    """Send the page's form empty; return whether it has one."""
    button = page.locator("#content form[method=post] .submit-row [type=submit]").first
    if page.goto(path).status != 200 or not button.count():
        return False
    button.click()
    page.wait_for_load_state("load")
    return True


def check_summary(page, path, size, scheme):
    summary = page.locator(".error-summary")
    assert summary.count() == 1, path
    page.wait_for_function("() => document.activeElement?.matches('.error-summary')")
    assert not page.locator("p.errornote").locator("visible=true").count(), path
    links = summary.get_by_role("link")
    for number in range(links.count()):
        link = links.nth(number)
        target = link.get_attribute("href")[1:]
        assert page.locator(f"[id='{target}']").count() == 1, (path, target)
        link.click()
        assert page.evaluate(REACHED, target), (path, target)
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)
    assert violations(page) == [], (path, scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.set_viewport_size(DESK)
    return links.count()


@pytest.mark.timeout(LONG_SECONDS)
def test_every_form_lists_its_errors_with_links_to_the_fields(chromium, slow_site):
    with signed_in(chromium, slow_site, "admin", with_problems=True, viewport=DESK) as page:
        forms = linked = 0
        models = (model._meta for model in admin.site._registry)
        adding = [f"/admin/{meta.app_label}/{meta.model_name}/add/" for meta in models]
        for path in (*adding, *OTHER_FORMS):
            if send_empty(page, path) and page.locator("#content .errorlist").count():
                linked += check_summary(page, path, *((DESK, "light") if forms % 2 else (PHONE, "dark")))
                forms += 1
        assert forms >= ENOUGH
        assert linked > ENOUGH


def test_a_form_without_errors_has_no_summary(chromium, slow_site):
    with signed_in(chromium, slow_site, "admin", viewport=DESK) as page:
        page.goto("/admin/auth/group/add/")
        assert page.locator(".error-summary").count() == 0
        page.goto("/admin/chat/verifiedanswer/add/")
        page.locator("input[name=_save]").click()
        summary = page.locator(".error-summary")
        summary.get_by_role("link", name="Answer", exact=True).wait_for()
        assert "Please correct" in summary.get_by_role("heading").inner_text()


def test_a_bulk_change_previews_rights_and_asks_before_it_deletes(chromium, slow_site):
    with signed_in(chromium, slow_site, "admin", with_problems=True, viewport=DESK) as page:
        page.goto("/admin/ingestion/document/")
        page.locator("#action-toggle").check()
        page.locator("select[name=action]").select_option("change_many")
        page.locator("button[name=index]").click()
        page.wait_for_url("**/bulkchange/**")
        choice = page.url
        page.locator("input[name=readers-how][value=set]").check()
        page.get_by_role("button", name="Change readers").click()
        page.get_by_role("heading", name="Lose access").wait_for()
        assert "Everyone who signs in" in page.locator("section.losing").inner_text()
        assert violations(page) == []
        page.goto(choice)
        page.get_by_role("button", name="Delete…").click()
        page.get_by_role("button", name=re.compile("Delete: ")).click()
        assert page.url == choice  # refused, because the box is not ticked
        assert page.locator("input[name=confirmed]:invalid").count() == 1
        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
