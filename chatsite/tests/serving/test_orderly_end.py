"""Web processes asked to end while answers need longer than the grace period: every reader gets an error."""

import json
import shutil
import signal
import socket
import time
from contextlib import ExitStack, suppress
from functools import partial

import pytest
from websockets.exceptions import ConnectionClosed

from chatsite.server.serving import uvicorn_server
from chatsite.tests.db.test_frozen_database import frozen
from chatsite.tests.failures.test_process_faults import GRACE, ended_within, has, wait_for_processes
from chatsite.tests.faults import PASSWORD, FaultSite, Upstream, at_once, new_token, question_for
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import Site, prepared, temporary_folder

pytestmark = pytest.mark.server

WORDS, PAUSE = 600, 50  # an answer of half a minute
INTERRUPTED = "The answer was interrupted."
SAID = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]


@pytest.fixture(scope="module")
def alone():
    """A site of one web process."""
    folder = temporary_folder()
    try:
        with Upstream() as upstream, FaultSite(prepared(folder, demo=False), upstream) as site:
            yield site
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def json_lines(data):
    return [json.loads(line) for line in data.splitlines()]


def server_sent(data):
    blocks = [block for block in data.split(b"\n\n")[:-1] if not block.startswith(b":")]
    found = [dict(line.split(b": ", 1) for line in block.splitlines())[b"data"] for block in blocks]
    return [json.loads(data) for data in found if data != b"[DONE]"]


def pieces(chunks):
    """(text, error message) of chunks that each have a piece of the text."""
    told = [chunk["choices"][0] if chunk.get("choices") else chunk for chunk in chunks]
    text = "".join(chunk.get("delta", {}).get("content") or "" for chunk in told)
    error = chunks[-1]["error"]
    return text, error if isinstance(error, str) else error["message"]


def states(chunks):
    """(text, error message) of chunks that each have the whole text so far."""
    return chunks[-1]["content"], chunks[-1]["error"]["message"]


# Path, more members of the body, framing of the chunks, and a function that returns (text, error message).
PROTOCOLS = {
    "rag_chat": ("/chat/stream", {"session_state": None}, json_lines, pieces),
    "ai_chat_protocol": ("/chat/stream", {"sessionState": None}, json_lines, pieces),
    "chat_completions": ("/chat", {"stream": True}, json_lines, pieces),
    "chat_ui": ("/api/chat/stream", {"conversationId": None}, server_sent, states),
    "openai": ("/v1/chat/completions", {"stream": True}, server_sent, pieces),
}


class Reader:
    """A caller that has asked a question and read a part of the answer."""

    def __init__(self, caller, token, path, members):
        self.token = token
        body = {"messages": [*SAID, {"role": "user", "content": question_for(token, WORDS, PAUSE)}]} | members
        head = caller.headers(Accept="*/*")
        session = caller.site.session()
        self.connection, self.response = session.stream("POST", path, json.dumps(body).encode(), head)
        self.data = self.response.read1(65_536)
        self.run = self.response.headers["Chat-Run"]

    def rest(self):
        """The rest of the response; raises IncompleteRead if it was cut off."""
        self.data += self.response.read()
        self.connection.close()
        return self.data


def resumed_as_events(caller, run):
    path = f"/chat/runs/{run}/events?format=sse"
    return caller.site.session().stream("GET", path, None, caller.headers())


def whole(caller, token):
    body = {"messages": [*SAID, {"role": "user", "content": question_for(token, WORDS, PAUSE)}]}
    data = json.dumps(body).encode()
    connection, response = caller.site.session().stream("POST", "/chat", data, caller.headers(), GRACE + 20)
    try:
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Ending:
    """Everything that readers receive when all web processes of a site are asked to end."""

    def __init__(self, site, name):
        self.site, self.caller = site, site.caller(name)
        session = site.sign_in(name, PASSWORD)
        self.readers = {
            protocol: Reader(self.caller, new_token(), path, members)
            for protocol, (path, members, _, _) in PROTOCOLS.items()
        }
        runs = [reader.run for reader in self.readers.values()]
        self.resumed = [(self.caller.events(run)[1], json_lines) for run in runs]
        self.resumed += [(resumed_as_events(self.caller, run)[1], server_sent) for run in runs]
        self.asked = new_token()
        [(conversation,)] = site.query("SELECT conversation_id FROM chat_run WHERE id = %s", runs[0])
        with ExitStack() as stack:
            pages = [stack.enter_context(session.websocket(f"/ws/c/{conversation}/")) for _ in range(5)]
            for page in pages[1:]:
                page.send(json.dumps({"type": "follow", "run": runs[0], "after": 0}))
                page.recv(timeout=HANG_SECONDS)
            writers = [one for one in site.web_processes() if has(one, self.first.connection.sock)]
            self.theirs = [has(writers[0], page.socket) for page in pages]
            self.moment, self.whole, *self.pages = at_once(
                partial(end_all, site),
                partial(whole, self.caller, self.asked),
                *[partial(messages_of, page) for page in pages],
                seconds=GRACE + 20,
            )

    @property
    def first(self):
        return next(iter(self.readers.values()))

    def kept(self, token):
        """The text of an answer that was cut short."""
        state, code, stored = self.site.ended(token, 1)
        assert (state, code) == ("interrupted", "interrupted")
        assert len(stored.split()) > GRACE * 1000 / PAUSE / 2, "what came in the grace is not kept"
        return stored


def end_all(site):
    time.sleep(1)  # until there is some text to keep
    for process in site.web_processes():
        process.send_signal(signal.SIGTERM)
    return time.monotonic()


def messages_of(page):
    """Return the messages of a page until it is closed, the code, and the time."""
    messages = []
    try:
        while True:
            messages += json.loads(page.recv(timeout=HANG_SECONDS)).get("messages", [])
    except ConnectionClosed as closed:
        return messages, closed.rcvd.code, time.monotonic()


@pytest.fixture(scope="module", params=[1, 2])
def ending(request):
    """The end of a site with one web process, and with two."""
    site = request.getfixturevalue("alone" if request.param == 1 else "fault_site")
    wait_for_processes(site, request.param)
    yield Ending(site, new_token("u"))
    wait_for_processes(site, request.param)


def test_readers_of_an_interrupted_answer_get_an_error_in_their_protocol(ending):
    for reader, (_, _, chunks_of, said) in zip(ending.readers.values(), PROTOCOLS.values(), strict=True):
        assert said(chunks_of(reader.rest())) == (ending.kept(reader.token), INTERRUPTED)
    status, body = ending.whole
    assert (status, body["error"]) == (502, INTERRUPTED)
    ending.kept(ending.asked)


def test_resuming_an_interrupted_answer_returns_its_end_or_an_error_to_retry(ending):
    for reader, (response, chunks_of) in zip([*ending.readers.values()] * 2, ending.resumed, strict=True):
        chunks, stored = chunks_of(response.read()), ending.kept(reader.token)
        text, end = "".join(chunk.get("text", "") for chunk in chunks), chunks[-1]
        if end["type"] != "end":
            assert ending.site.web_workers == 2, "nobody else writes it"
            wait_for_processes(ending.site)
            connection, rest = ending.caller.events(reader.run, after=end["seq"])
            *more, end = json_lines(rest.read())
            connection.close()
            text += "".join(chunk.get("text", "") for chunk in more)
        assert text == stored
        assert (end["state"], end["error"]["code"]) == ("interrupted", "interrupted")
        assert end["messages"][0]["content"] == stored


def test_a_page_gets_the_end_before_its_socket_closes_and_an_idle_one_closes_at_once(ending):
    assert {code for _, code, _ in ending.pages} == {1012}
    idle, *following = zip(ending.theirs, ending.pages, strict=True)
    assert idle[1][2] - ending.moment < 1 + MARGIN_SECONDS, "an idle page waits"
    for mine, (messages, _, closed) in following:
        last = messages[-1] if messages else {}
        assert (last.get("type") == "done") == mine
        if mine:
            assert (last["state"], closed - ending.moment > GRACE - 1) == ("interrupted", True)
        else:
            assert closed - ending.moment < 1 + MARGIN_SECONDS, "another process tells the rest"


def test_a_process_ends_in_time_despite_a_frozen_database_and_a_missing_body(alone):
    wait_for_processes(alone, 1)
    caller, tokens = alone.caller(), [new_token() for _ in range(6)]
    for token in tokens:
        caller.begin(question_for(token, WORDS, PAUSE))
    lines = "".join(f"{name}: {value}\r\n" for name, value in caller.headers().items())
    head = f"POST /chat HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: 100\r\n\r\n"
    with socket.create_connection((caller.site.session().host, caller.site.session().port)) as half:
        half.sendall(head.encode() + b"{")
        time.sleep(1)
        (process,) = alone.web_processes()
        with frozen(alone):
            process.send_signal(signal.SIGTERM)
            ended_within(process, GRACE + 5)
    wait_for_processes(alone, 1)
    for token in tokens:
        assert alone.ended(token, 40)[:2] == ("interrupted", "interrupted")
    alone.lines("")
    failures = [line for line in alone.output.splitlines() if "Traceback" in line]
    assert [line for line in failures if "CancelledError" in line or "RequestAborted" in line] == []


def test_dripping_bodies_do_not_use_up_the_grace_period_and_are_asked_to_retry():
    folder = temporary_folder()
    lines = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n"
    head = b"POST /chat HTTP/1.1\r\n" + lines
    grace = uvicorn_server.BODIES_SECONDS + 30
    with Site(prepared(folder, demo=False), demo=False, workers=0, CHATSITE_GRACE_SECONDS=str(grace)) as site:
        with site.session().socket() as slow:
            slow.sendall(head + b"{")
            time.sleep(1)
            begun = time.monotonic()
            site.process.send_signal(signal.SIGTERM)
            reply = b""
            while not reply and time.monotonic() < begun + grace:
                slow.sendall(b" " * 100)
                slow.settimeout(0.2)
                with suppress(TimeoutError):
                    reply = slow.recv(4_096)
            assert reply.startswith(b"HTTP/1.1 503")
            assert b"retry-after: " in reply
        assert site.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begun < uvicorn_server.BODIES_SECONDS + MARGIN_SECONDS + 10
    shutil.rmtree(folder, ignore_errors=True)
