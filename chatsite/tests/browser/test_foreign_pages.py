"""Pages of other origins in real Chromium: their requests, with the visitor's cookies, change nothing."""

import http.server
import json
import shutil
import threading

import psycopg
import pytest
from playwright.sync_api import sync_playwright

from chatsite.tests.chromium import PROGRAMS
from chatsite.tests.server import Site, prepared, reading_parameters, temporary_folder

pytestmark = [pytest.mark.browser, pytest.mark.server]

SECONDS = 15
TABLES = (
    "history_conversation",
    "history_message",
    "chat_run",
    "accounts_user",
    "accounts_apikey",
    "django_session",
)
# A page that tries every kind of request, with its visitor's cookies if the browser sends them.
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Elsewhere</title>
<form id="plain" method="post" enctype="text/plain" target="sink"><input name='{"messages": [{"role": "user",
"content": "planted"}], "x": "' value='"}'></form>
<form id="fields" method="post" target="sink"><input name="content" value="planted"></form>
<iframe name="sink"></iframe>"""
ATTACKS = """async ([site, paths, socket]) => {
  const body = JSON.stringify({ messages: [{ role: "user", content: "planted" }], title: "planted" });
  const outcomes = [];
  for (const path of paths) {
    for (const mode of ["no-cors", "cors"]) {
      for (const type of ["text/plain", "application/json"]) {
        const headers = { "Content-Type": type };
        await fetch(site + path, { method: "POST", mode, headers, body, credentials: "include" })
          .then((answer) => outcomes.push([path, mode, answer.type, answer.status]), () => {});
      }
    }
    await fetch(site + path, { method: "DELETE", credentials: "include" }).catch(() => {});
    navigator.sendBeacon(site + path, new Blob([body], { type: "text/plain" }));
    const sink = document.querySelector("iframe");
    for (const form of document.forms) {
      const loaded = new Promise((done) => { sink.onload = done; setTimeout(done, 3000); });
      form.action = site + path;
      form.submit();
      await loaded;
    }
  }
  const opened = await new Promise((done) => {
    const channel = new WebSocket(socket);
    channel.onopen = () => done("open");
    channel.onclose = channel.onerror = () => done("refused");
  });
  return { outcomes, opened };
}"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if self.path == "/sandboxed":  # an opaque origin, sent as "null"
            self.send_header("Content-Security-Policy", "sandbox allow-scripts allow-forms")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def elsewhere():
    """The port of a server with foreign pages."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def open_site():
    """A site that serves guests."""
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_LOGIN_REQUIRED="0") as site:
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def chromium():
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("No Chromium is installed.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium):
    """A browser profile of its own."""
    context = chromium.new_context()
    context.set_default_timeout(SECONDS * 1000)
    yield context
    context.close()


def counted(site):
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def cookies(context, site):
    return {each["name"]: each["value"] for each in context.cookies(site.url)}


def sign_in(context, site):
    page = context.new_page()
    page.goto(f"{site.url}/accounts/sign-in/")
    page.fill("[name=username]", "employee")
    page.fill("[name=password]", site.passwords["employee"])
    with page.expect_navigation():
        page.press("[name=password]", "Enter")
    return page


FROM_SITE = """async ([path, body]) => {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return [answer.status, await answer.json()];
}"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "files.localhost"])
@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_foreign_page_changes_nothing_for_a_signed_in_visitor(
    visitor, open_site, elsewhere, host, sandboxed
):
    """Origins: another port of the host, another name of it, a subdomain of this, and an opaque origin."""
    own = sign_in(visitor, open_site)
    body = json.dumps({"mode": "standard", "title": "Mine"})
    status, made = own.evaluate(FROM_SITE, ["/chat-history", body])
    assert status == 201, "the site's own page needs no token"
    before, kept = counted(open_site), cookies(visitor, open_site)
    foreign = visitor.new_page()
    foreign.goto(f"http://{host}:{elsewhere}/{'sandboxed' if sandboxed else ''}")
    paths = [
        "/chat",
        "/api/chat",
        "/chat-history",
        f"/chat-history/{made['id']}",
        "/v1/chat/completions",
        "/",
    ]
    socket = open_site.url.replace("http", "ws") + f"/ws/c/{made['id']}/"
    told = foreign.evaluate(ATTACKS, [open_site.url, paths, socket])
    assert told["opened"] == "refused"
    assert all(kind == "opaque" for _, _, kind, _ in told["outcomes"]), "nothing can be read"
    assert (counted(open_site), cookies(visitor, open_site)) == (before, kept)
    status, _ = own.evaluate(FROM_SITE, ["/chat-history", body])
    assert status == 201, "whoever was signed in still is"


def test_a_form_of_another_site_creates_no_guest_and_no_question(visitor, open_site, elsewhere):
    """A form that replaces the whole page: the browser would store any cookie of the response."""
    own = sign_in(visitor, open_site)
    before, kept = counted(open_site), cookies(visitor, open_site)
    for path in ("/chat", "/api/chat", "/chat-history", "/"):
        foreign = visitor.new_page()
        foreign.goto(f"http://localhost:{elsewhere}/")
        with foreign.expect_navigation():
            foreign.evaluate(
                "address => { const form = document.forms[0];"
                " form.target = ''; form.action = address; form.submit(); }",
                open_site.url + path,
            )
        assert foreign.evaluate("performance.getEntriesByType('navigation')[0].responseStatus") == 403
        foreign.close()
    assert (counted(open_site), cookies(visitor, open_site)) == (before, kept)
    own.goto(f"{open_site.url}/settings/")
    assert own.url == f"{open_site.url}/settings/", "whoever was signed in still is"


def test_a_guest_asks_twice_from_the_sites_own_page_without_a_token(visitor, open_site):
    page = visitor.new_page()
    page.goto(open_site.url)
    first = {"messages": [{"role": "user", "content": "What is this?"}]}
    status, answer = page.evaluate(FROM_SITE, ["/chat", json.dumps(first)])
    assert status == 200
    second = first | {"session_state": answer["session_state"]}
    status, again = page.evaluate(FROM_SITE, ["/chat", json.dumps(second)])
    assert (status, again["session_state"]) == (200, answer["session_state"])
