"""No page of the portal violates a rule of axe: on a wide light screen and on a narrow dark one."""

import pytest
from playwright.sync_api import expect

from chatsite.tests.chromium import PHONE, open_page, violations
from chatsite.tests.portal_pages import QUESTION, WIDE, ask, signed_in, wait_for_state, wait_until

VIEWS = [(WIDE, "light"), (PHONE, "dark")]
SETTINGS = ("/settings/", "/settings/sessions/", "/settings/data/")
pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.mark.parametrize(("screen", "scheme"), VIEWS, ids=["desk", "phone"])
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
        for path in (
            "/documents/",
            "/documents/add/",
            *SETTINGS,
            "/help/",
            "/search-in",
            "/projects/",
            "/projects/new",
        ):
            page.goto(path)
            assert violations(page) == [], path


@pytest.mark.parametrize(("screen", "scheme"), VIEWS, ids=["desk", "phone"])
def test_pages_of_changes_and_members_break_no_rule(chromium, slow_site, screen, scheme, tmp_path):
    file = tmp_path / f"canteen-{scheme}-{screen['viewport']['width']}.md"
    with signed_in(chromium, slow_site, color_scheme=scheme, **screen) as page:
        for hour in ("noon", "one"):
            file.write_text(f"# Canteen\n\nLunch is at {hour}.\n\nTea is free.\n", encoding="utf-8")
            page.goto("/documents/add/")
            page.locator("#files").set_input_files(file)
            page.locator("form[data-upload] .primary").click()
            added = page.locator("[data-progress] .file a").filter(has_text=file.name)
            expect(added).to_have_count(1)
            expect(
                page.locator("[data-progress] [data-document], [data-progress] .icon-button")
            ).to_have_count(0)
        address = added.get_attribute("href")
        page.goto(address)
        assert violations(page) == []
        page.goto(f"{address}changes/")
        expect(page.locator(".change ins")).to_contain_text("one")
        assert violations(page) == []
        page.goto("/projects/new")
        page.get_by_label("Name", exact=True).fill(file.stem)
        page.get_by_role("button", name="Create project").click()
        page.wait_for_url("**/projects/*-*/")
        page.goto(f"{page.url}members")
        page.locator("#id_people").press_sequentially("hr")
        expect(page.get_by_role("option")).to_have_text(["hr"])
        assert violations(page) == []


@pytest.mark.parametrize(("screen", "scheme"), VIEWS, ids=["desk", "phone"])
def test_compared_versions_and_error_pages_break_no_rule_of_accessibility(chromium, site, screen, scheme):
    with signed_in(chromium, site, color_scheme=scheme, with_problems=True, **screen) as page:
        page.locator("#scope").select_option("own")
        ask(page, "Which quark is the heaviest of all?")
        wait_for_state(page, "complete")
        expect(page.get_by_text("Searched only in what you added.")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("button", name="Search everything").click()
        expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
        wait_for_state(page, "complete")
        page.get_by_role("link", name="Compare versions").click()
        expect(page.locator(".compared section")).to_have_count(2)
        assert violations(page) == []
        page.goto("/search-in")
        page.get_by_role("button", name="Search in the ticked documents").click()
        expect(page.get_by_role("alert")).to_contain_text("Tick at least one document")
        assert violations(page) == []
        page.goto("/s/guessed/")
        expect(page.get_by_role("heading", level=1)).to_have_text("This link does not work")
        assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_of_the_admin_breaks_no_rule_of_accessibility(chromium, slow_site, scheme):
    with signed_in(chromium, slow_site, "admin", color_scheme=scheme, **WIDE) as page:
        page.goto("/admin/?days=90")
        page.locator(".overview summary").first.click()
        assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_the_admin_break_no_rule_of_accessibility(chromium, slow_site, scheme):
    # axe itself sets inline styles on forms, which the policy of the page refuses.
    options = {"color_scheme": scheme, "with_problems": True, **WIDE}
    with open_page(chromium, slow_site.url, **options) as page:
        page.goto("/admin/login/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        assert violations(page) == []
    with signed_in(chromium, slow_site, "admin", **options) as page:
        for path in ("/admin/", "/admin/ingestion/document/", "/admin/auth/group/"):
            page.goto(path)
            assert violations(page) == [], path
        page.locator("#result_list tbody th a").first.click()
        assert violations(page) == []
        page.goto("/admin/?days=90")
        box = page.get_by_role("link", name="Save the days as CSV").bounding_box()
        assert box["height"] >= 24


def test_the_current_tab_is_marked_in_forced_colours(chromium, slow_site):
    with signed_in(chromium, slow_site, forced_colors="active", **WIDE) as page:
        page.goto("/documents/")
        styles = "each => each.map(a => getComputedStyle(a).outlineStyle)"
        assert page.locator(".pills a").evaluate_all(styles).count("solid") == 1
        page.goto("/")
        ask(page, QUESTION)
        wait_for_state(page, "complete")
        page.locator(".answer .cite").first.click()
        expect(page.locator("#source mark").first).to_be_visible()
        colours = "each => each.map(a => getComputedStyle(a).borderBlockEndColor)"
        tabs = page.locator(".tabs a")
        tabs_with_line = [
            colour
            for colour in tabs.evaluate_all(colours)
            if colour != page.evaluate("getComputedStyle(document.querySelector('.source')).backgroundColor")
        ]
        assert tabs.count() > 1
        assert len(tabs_with_line) == 1


def write_banner(page, text):
    """Set the site's banner in the admin."""
    page.goto("/admin/chat/sitetexts/add/")
    page.get_by_label("Banner:", exact=True).fill(text)
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/admin/chat/sitetexts/")


def test_a_banner_appears_on_an_open_page(chromium, slow_site):
    words = "The canteen is closed on Friday, and the archive moves to the second floor on Monday."
    with (
        # axe itself sets inline styles on this form, which the page's policy refuses.
        signed_in(chromium, slow_site, "admin", with_problems=True, **WIDE) as manager,
        signed_in(chromium, slow_site, color_scheme="dark", **PHONE) as page,
    ):
        page.goto("/help/")
        banner = page.locator("#site-banner")
        expect(banner).to_be_hidden()
        write_banner(manager, words)
        try:
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            expect(banner).to_have_text(words)
            assert violations(page) == []
            page.mouse.wheel(0, 600)
            wait_until(page, "scrollY > 100")
            wait_until(
                page,
                "document.querySelector('.bar').getBoundingClientRect().top >= "
                "document.querySelector('#site-banner').getBoundingClientRect().bottom - 1",
            )
            manager.goto("/admin/chat/sitetexts/add/")
            assert violations(manager) == []
        finally:
            write_banner(manager, "")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(banner).to_be_hidden()
