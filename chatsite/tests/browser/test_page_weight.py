"""What a conversation's page loads into an empty cache: requests, scripts and styles."""

import pytest

from chatsite.tests.chromium import open_page
from chatsite.tests.portal_pages import WIDE, ask_and_wait, signed_in

pytestmark = [pytest.mark.server, pytest.mark.browser]

MAX_REQUESTS, MAX_SCRIPT_BYTES, MAX_STYLE_BYTES = 8, 30_000, 18_000
LOADED = """() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
    .map(each => [new URL(each.name).pathname, each.encodedBodySize])"""


def test_a_conversation_needs_few_requests_and_little_code(chromium, site):
    with signed_in(chromium, site, **WIDE) as page:
        ask_and_wait(page)
        address, cookies = page.url, page.context.cookies()
    with open_page(chromium, site.url, **WIDE) as page:
        page.context.add_cookies(cookies)
        page.goto(address)
        page.locator(".source-row").first.wait_for()
        page.wait_for_load_state("networkidle")
        loaded = page.evaluate(LOADED)
    sizes = {
        ending: sum(size for path, size in loaded if path.endswith(ending)) for ending in (".js", ".css")
    }
    assert 3 <= len(loaded) <= MAX_REQUESTS, loaded
    assert 1_000 < sizes[".js"] <= MAX_SCRIPT_BYTES, loaded
    assert 1_000 < sizes[".css"] <= MAX_STYLE_BYTES, loaded
