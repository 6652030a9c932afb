"""The browser that the other tests look through: it must see faults, or their absence means nothing."""

import http.server
import threading

import pytest

pytestmark = pytest.mark.browser

PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>A page</title><main><h1>Here</h1>
<form action="/sent"><label>Name <input id="name" name="name"></label><button>Send</button></form>
<p id="scheme"></p><script src="/script.js"></script></main></html>"""
SCRIPT = (
    b"document.getElementById('scheme').textContent = matchMedia('(prefers-color-scheme: dark)').matches;"
)
BROKEN = b"""<!doctype html><html><img src='/a.png'><script>inline()</script>
<script src='/wrong.js'></script></html>"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        body = {"/script.js": SCRIPT, "/wrong.js": b"throw new Error('thrown here')", "/broken": BROKEN}.get(
            path, PAGE
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if path.endswith(".js") else "text/html")
        self.send_header("Content-Security-Policy", "default-src 'self'")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_person_types_and_sends_with_the_keyboard_and_with_the_mouse(browser, url):
    with browser.page(url) as page:
        page.go("/")
        page.type("#name", "Zoë")
        page.press("Enter")
        page.wait_until("location.pathname === '/sent'")
        assert page.path == "/sent?name=Zo%C3%AB"
        page.click("button")
        page.wait_until("location.search === '?name=' && document.readyState === 'complete'")
        page.press("Tab")
        assert page.focused() == "input#name"
        assert page.problems == []


def test_faults_are_seen(browser, url):
    with browser.page(url) as page:
        page.go("/broken")
        page.settle()
        problems = "\n".join(page.problems)
        assert "thrown here" in problems
        assert "Content Security Policy" in problems
        assert any(line.startswith("image-alt") for line in page.accessibility_problems())


def test_schemes_sizes_and_the_network_can_be_changed(browser, url, tmp_path):
    with browser.page(url, width=390, height=844, mobile=True, dark=True) as page:
        page.go("/")
        assert page.text("#scheme") == "true"
        assert page.run("innerWidth") == 390
        page.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
        page.offline()
        assert page.run("fetch('/').then(() => 'online', () => 'offline')") == "offline"
        page.offline(False)
        assert page.run("fetch('/').then(() => 'online', () => 'offline')") == "online"


def test_pages_share_no_cookies(browser, url):
    with browser.page(url) as one, browser.page(url) as other:
        one.go("/").run("document.cookie = 'a=1'")
        assert other.go("/").run("document.cookie") == ""
