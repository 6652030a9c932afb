"""Pages of browser tests: an error on a page fails its test."""

import http.server
import re
import threading

import pytest

from chatsite.tests.chromium import open_page, violations

pytestmark = pytest.mark.browser

PAGES = {
    "/": b"<main><h1>Here</h1></main>",
    "/exception": b"<script src='/throw.js'></script>",
    "/inline": b"<script>inline()</script>",
    "/missing": b"<script src='/missing.js'></script>",
    "/foreign": b"<img alt='' src='http://127.0.0.1:9/pixel.png'>",
    "/unnamed": b"<main><h1>Here</h1><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='></main>",
    "/throw.js": b"throw new Error('thrown here')",
}
HEAD = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>
<link rel="icon" href="data:,">"""


class Handler(http.server.BaseHTTPRequestHandler):
    """The pages above, under a security policy."""

    def do_GET(self):
        body = PAGES.get(self.path)
        script = self.path.endswith(".js")
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Content-Security-Policy", "default-src 'self'; img-src 'self' data: http:")
        self.end_headers()
        self.wfile.write((b"" if script else HEAD) + (body or b""))

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/exception", "thrown here"),
        ("/inline", "Content Security Policy"),
        ("/missing", "404"),
        ("/foreign", "127.0.0.1:9"),
    ],
)
def test_an_error_of_a_page_fails_its_test(chromium, url, path, words):
    with pytest.raises(AssertionError, match=re.escape(words)), open_page(chromium, url) as page:
        page.goto(path, wait_until="networkidle")


def test_a_page_without_an_error_passes(chromium, url):
    with open_page(chromium, url) as page:
        page.goto("/", wait_until="networkidle")
        assert violations(page) == []


def test_broken_rules_of_accessibility_are_found(chromium, url):
    with open_page(chromium, url) as page:
        page.goto("/unnamed")
        assert [line.partition(" ")[0] for line in violations(page)] == ["image-alt"]


def test_pages_share_no_cookies(chromium, url):
    with open_page(chromium, url) as one, open_page(chromium, url) as other:
        one.goto("/")
        one.evaluate("document.cookie = 'a=1'")
        other.goto("/")
        assert other.evaluate("document.cookie") == ""
