"""The development server: pages, a streamed answer and a socket on daphne."""

import json
import re
import shutil
import socket
import sys

import pytest
from websockets.exceptions import InvalidStatus

from chatsite.joined_files import join
from chatsite.tests.chromium import open_page, sign_in
from chatsite.tests.portal_pages import ask_and_wait
from chatsite.tests.server import BASE, Site, prepared, temporary_folder, wait_for_documents

pytestmark = pytest.mark.server

QUESTION = "When must carried days of leave be used?"


class DevelopmentSite(Site):
    """`manage.py runserver` on a free port, without the process that watches for changed files."""

    def command(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        return [sys.executable, "manage.py", "runserver", "--noreload", self.address]

    def wait_for_address(self):
        self.url = f"http://{self.address}"
        self.wait_until_ready(60)
        self.lines("")  # reads the output, with the demo accounts' passwords
        return self

    @property
    def passwords(self):
        return dict(re.findall(r"^  (\w+) +(\w+-\w+-\d+)$", self.output, re.MULTILINE))


@pytest.fixture(scope="module")
def development():
    folder = temporary_folder()
    try:
        with DevelopmentSite(
            prepared(folder), CHATSITE_DEBUG="1", CHATSITE_LOOP_WATCHDOG_SECONDS="0"
        ) as site:
            wait_for_documents(site)
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_streamed_answer_arrives_and_its_conversation_has_a_socket(development):
    session = development.sign_in("employee")
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION}], "session_state": None})
    connection, response = session.stream(
        "POST", "/chat/stream", body.encode(), {"Content-Type": "application/json"}
    )
    try:
        lines = [json.loads(line) for line in response]
    finally:
        connection.close()
    assert response.status == 200
    assert "31 March" in "".join(line.get("delta", {}).get("content") or "" for line in lines)
    with session.websocket(f"/ws/c/{lines[0]['session_state']}/") as websocket:
        assert websocket.ping().wait(10)


def test_the_socket_of_another_persons_conversation_is_refused(development):
    session = development.sign_in("employee")
    with pytest.raises(InvalidStatus, match="403"):
        session.websocket("/ws/c/00000000-0000-4000-8000-000000000000/")


def test_a_missing_page_shows_the_debug_page_and_static_files_are_served(development):
    session = development.session()
    assert "DEBUG = True" in session.get("/nowhere").text
    assert session.get("/static/portal.css").status == 200


@pytest.mark.browser
def test_the_browser_loads_each_style_and_script_from_its_source_file(chromium, development):
    def parts(entry):
        return join(entry, lambda name: (BASE / "static" / name).read_text(encoding="utf-8"))[1]

    with open_page(chromium, development.url) as page:
        served = set()
        page.on(
            "response",
            lambda response: served.add(response.url.partition("/static/")[2]) if response.ok else None,
        )
        sign_in(page, "employee", development.passwords["employee"])
        ask_and_wait(page, QUESTION)
        assert page.locator(".source-row").count()
    for entry in ("portal.css", "portal.js", "stream.js"):
        assert served >= {entry, *parts(entry)}
