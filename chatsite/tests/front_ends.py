"""Published front ends, each on one origin with a site, as an operator deploys them, in headless Chromium.

The built front ends are not part of the repository. Tests expect them in `shared/clients` beside it, and are
skipped if they are missing.
"""

import contextlib
import http.client
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from chatsite.tests.chromium import PROGRAMS
from chatsite.tests.server import BASE

CLIENTS = Path(os.environ.get("CHATSITE_TEST_CLIENTS_FOLDER") or BASE.parent / "shared" / "clients")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".ico": "image/x-icon"}
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "content-length"}
SECONDS = 60  # for an answer: the front ends show text slowly, and other tests run at the same time
FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves static files at /, and forwards the listed paths with their `Host`, without buffering."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        origin = self.server.origin
        path = urlsplit(self.path).path
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        if any(path == start or path.startswith(f"{start}/") for start in origin.paths):
            self.pass_on(origin, body)
        else:
            self.file(origin.folder, unquote(path))

    do_GET = do_POST = do_HEAD = do_DELETE = answer

    def pass_on(self, origin, body):
        where = urlsplit(origin.site)
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=SECONDS)
        with contextlib.closing(connection):
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            connection.request(self.command, origin.prefix + self.path, body=body, headers=headers)
            response = connection.getresponse()
            origin.answers.append((self.command, self.path, response.status, body))
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            while piece := response.read1(65536):
                self.wfile.write(piece)

    def file(self, folder, path):
        file = (folder / (path.lstrip("/") or "index.html")).resolve()
        if not file.is_relative_to(folder.resolve()) or not file.is_file():
            self.send_error(404)
            return
        data = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", TYPES.get(file.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


class Origin:
    """One address for a front end and the site behind it; `answers` records the site's responses."""

    def __init__(self, folder, paths, site, prefix=""):
        self.folder, self.paths, self.site, self.prefix = folder, paths, site, prefix
        self.answers = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.origin = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._server.server_close()

    def asked(self, start="/chat"):
        """The status of each question."""
        return [
            status for method, path, status, _ in self.answers if method == "POST" and path.startswith(start)
        ]

    def bodies(self):
        return [body for method, _, _, body in self.answers if method == "POST"]


def front_end(name):
    """The folder of a built front end, or a skip that says what is missing."""
    folder = CLIENTS / name
    if not (folder / "index.html").is_file():
        pytest.skip(f"The published front end is not there, so it is not tried: {folder}")
    return folder


def share_with_guests(site, *names):
    """Add sample documents again, or files by their paths, readable for guests."""
    samples = BASE / "ingestion" / "samples" / "everyone"
    subprocess.run(
        [
            sys.executable,
            "manage.py",
            "ingest",
            "--guests",
            "--owner",
            "admin",
            *[str(samples / name) for name in names],
        ],
        cwd=BASE,
        env=os.environ | {"CHATSITE_DATA_DIR": str(site.folder)},
        check=True,
        capture_output=True,
    )


@contextlib.contextmanager
def driven_chromium():
    """Debian's Chromium, driven by Playwright."""
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("No Chromium is installed.")
    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(chromium, origin, session=None, script=""):
    """Open the front end as a guest, or as the person of `session`."""
    context = chromium.new_context()
    context.set_default_timeout(SECONDS * 1000)
    if script:
        context.add_init_script(script)
    if session:
        cookies = [
            {"name": name, "value": value, "url": origin.url} for name, value in session.cookies.items()
        ]
        context.add_cookies(cookies)
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    try:
        yield page
    finally:
        context.close()
