"""Connections that are silent, send slowly, or send without end, at the production server."""

import json
import resource
import shutil
import socket
import struct
import time
from contextlib import ExitStack, suppress

import psutil
import pytest

from chatsite.server.serving import http_protocol as limits
from chatsite.tests.limits import HANG_SECONDS, LONG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import Site, prepared, temporary_folder

pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]

PROMPT_SECONDS = 1.0  # for a request while all of these are open
SILENT, DRIPPING = 1_000, 300
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def site():
    folder = temporary_folder()
    try:
        with Site(prepared(folder, demo=False), demo=False, workers=0) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def said(sock, seconds=5.0):
    """All that the server sends until it closes."""
    sock.settimeout(seconds)
    data = b""
    try:
        while piece := sock.recv(65_536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def asked(site, data, seconds=5.0):
    """The server's response to these bytes, which it may refuse to read."""
    with site.session().socket() as sock:
        sock.settimeout(seconds)
        try:
            sock.sendall(data)
        except OSError:
            pass
        return said(sock, seconds)


def closed(sock):
    sock.setblocking(False)
    try:
        while sock.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def drip(sock, data):
    try:
        sock.sendall(data)
    except OSError:
        return False
    return True


def prompt(site):
    begun = time.monotonic()
    assert site.session().get("/healthz").status == 200
    return time.monotonic() - begun


class Drips:
    """Connections that start at the same time, and send a little every second."""

    def __init__(self, site, stack, number, first=b"", then=b""):
        self.begun, self.then, self.ended = time.monotonic(), then, []
        self.open = [stack.enter_context(site.session().socket()) for _ in range(number)]
        for sock in self.open:
            drip(sock, first)

    def tick(self):
        for sock in list(self.open):
            if not closed(sock) and (not self.then or drip(sock, self.then)):
                continue
            self.ended.append(time.monotonic() - self.begun)
            self.open.remove(sock)


def test_silent_and_dripping_connections_are_closed_in_time_without_affecting_others(site):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    post = b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        silent = Drips(site, stack, SILENT)
        heads = Drips(site, stack, DRIPPING, GET + b"X: ", b"a")
        lines = Drips(site, stack, 20, b"\r\n", b"\r\n")
        kept = Drips(site, stack, 20, GET + b"\r\n", b"\r\n")
        sockets = Drips(
            site,
            stack,
            20,
            b"GET /ws/ HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
            b"X",
        )
        bodies = Drips(site, stack, 50, post + b"Content-Length: 900000\r\n\r\n", b" ")
        chunks = Drips(site, stack, 50, post + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n")
        trailers = Drips(
            site, stack, 20, post + b"Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\nX: ", b"a"
        )
        limited = [
            (silent, limits.SILENT_SECONDS),
            (heads, limits.HEAD_SECONDS + limits.LINGER_SECONDS),
            (lines, limits.SILENT_SECONDS),
            (kept, 5),
            (sockets, limits.HEAD_SECONDS + limits.LINGER_SECONDS),
            (bodies, limits.BODY_SECONDS + limits.PACE_SECONDS),
            (chunks, limits.BODY_SECONDS + limits.PACE_SECONDS),
            (trailers, limits.BODY_SECONDS + limits.PACE_SECONDS),
        ]
        slowest = 0.0
        deadline = time.monotonic() + limits.BODY_SECONDS + limits.PACE_SECONDS + 10
        while any(drips.open for drips, _ in limited) and time.monotonic() < deadline:
            begun = time.monotonic()
            slowest = max(slowest, prompt(site))
            for drips, _ in limited:
                drips.tick()
            time.sleep(max(0, begun + 1 - time.monotonic()))
        assert [len(drips.open) for drips, _ in limited] == [0] * len(limited)
        for drips, seconds in limited:
            assert max(drips.ended) < seconds + MARGIN_SECONDS
        assert min(silent.ended) > limits.SILENT_SECONDS - MARGIN_SECONDS
        assert min(heads.ended) > limits.HEAD_SECONDS - MARGIN_SECONDS
        assert slowest < PROMPT_SECONDS + MARGIN_SECONDS


@pytest.mark.parametrize(
    "head",
    [
        GET + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
        GET + b"X: " + b"a" * 10_000_000,
        GET + b"X: a\r\n" * 12_000 + b"\r\n",
        GET + b"X: a\r\n" * 100_000,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
    ids=["long", "endless", "many", "endlessly many", "url", "websocket"],
)
def test_a_head_of_more_than_64_kb_is_refused(site, head):
    assert asked(site, head).startswith(b"HTTP/1.1 431 ")
    assert prompt(site) < PROMPT_SECONDS + MARGIN_SECONDS


def test_a_head_that_is_completed_after_its_refusal_is_not_a_request(site):
    """The connection stays open for a moment after a refusal, so that the client can read it."""
    with site.session().socket() as sock:
        sock.sendall(GET + b"X: " + b"a" * (limits.MAX_HEAD_BYTES + 5_000))
        answer = sock.recv(65_536)
        with suppress(OSError):
            sock.sendall(b"\r\n\r\n")
        answer += said(sock)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1") == 1, answer


def test_smaller_heads_and_pipelined_requests_are_answered(site):
    close = b"Connection: close\r\n\r\n"
    assert asked(site, GET + b"X: " + b"a" * 60_000 + b"\r\n" + close).startswith(b"HTTP/1.1 200 ")
    many = (GET + b"X: " + b"a" * 900 + b"\r\n\r\n") * 120 + GET + close
    assert asked(site, many, 20).count(b"HTTP/1.1 200 ") == 121


def test_callers_that_leave_with_pipelined_requests_cause_no_error(site):
    before, reset = site.lines("Exception in ASGI application"), struct.pack("ii", 1, 0)
    for _ in range(20):
        with site.session().socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            sock.sendall(3 * b"GET /accounts/sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            time.sleep(0.005)  # while they are being answered
    for _ in range(5):
        prompt(site)
    assert site.lines("Exception in ASGI application") == before


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"Transfer-Encoding: gzip, chunked", b"3\r\nabc\r\n0\r\n\r\n", 501),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n", 501),
        (b"Transfer-Encoding: gzip", b"abc", 501),
        (b"Transfer-Encoding: chunked, gzip", b"abc", 400),
        (b"Transfer-Encoding: chunked", b"xyz\r\nabc\r\n0\r\n\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", b"abc", 400),
        (b"Content-Length: 3\r\nContent-Length: 4", b"abc", 400),
        (b"Bare: carriage\rreturn", b"", 400),
    ],
)
def test_malformed_framing_is_refused_once_and_in_json(site, head, body, status):
    start = b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    answer = asked(site, start + head + b"\r\n\r\n" + body + GET + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert answer.count(b"HTTP/1.1") == 1, answer
    head, _, said_of_it = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert list(json.loads(said_of_it)) == ["error"]


def test_a_chunked_body_is_read_whatever_the_case_of_its_encoding(site):
    answer = asked(site, GET + b"Connection: close\r\nTransfer-Encoding: Chunked \r\n\r\n1\r\n \r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 "), answer


def test_a_large_body_that_arrives_with_its_head_is_not_a_large_head(site):
    body = b'{"messages": "' + b"a" * 500_000 + b'"}'
    head = (
        b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    answer = asked(site, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert answer.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 400 ", b"HTTP/1.1 422 "))


@pytest.mark.parametrize("tail", [b"1;" + b"a" * 5_000_000, b"1\r\n \r\n0\r\nX: " + b"a" * 5_000_000])
def test_a_chunked_body_is_not_mostly_extensions_or_trailers(site, tail):
    head = b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    begun = time.monotonic()
    asked(site, head + tail)
    assert time.monotonic() - begun < 3 + MARGIN_SECONDS


def test_bodies_in_one_byte_chunks_delay_nobody_and_are_dropped_with_their_callers(site):
    [web] = site.children("chatsite.server.serving.web_process")
    before = web.num_fds()
    head = b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    waited = []
    with ExitStack() as stack:
        open_ones = [stack.enter_context(site.session().socket()) for _ in range(60)]
        for sock in open_ones:
            sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            sock.setblocking(False)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            for sock in open_ones:
                with suppress(OSError):  # the buffer is full, or the connection is closed
                    sock.send(b"1\r\n \r\n" * 20_000)
            waited.append(prompt(site))
    assert max(waited) < PROMPT_SECONDS + MARGIN_SECONDS
    deadline = time.monotonic() + limits.TURN_SECONDS + HANG_SECONDS
    while web.num_fds() > before + 5:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_body_in_one_byte_chunks_is_read(site):
    head = b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    chunks = b"1\r\n \r\n" * 5_000 + b"0\r\n\r\n"
    last = GET + b"Connection: close\r\n\r\n"
    answers = asked(site, (head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks) * 2 + last, 20)
    assert answers.count(b"HTTP/1.1 401 ") == 2
    assert answers.count(b"HTTP/1.1 200 ") == 1


def test_web_processes_may_open_as_many_files_as_the_system_allows(site):
    [web] = site.children("chatsite.server.serving.web_process")
    soft, hard = web.rlimit(psutil.RLIMIT_NOFILE)
    assert soft == hard


def test_with_few_file_descriptors_silent_connections_are_closed_first():
    folder, before = temporary_folder(), resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with Site(prepared(folder, demo=False), demo=False, workers=0) as site, ExitStack() as stack:
            [web] = site.children("chatsite.server.serving.web_process")
            web.rlimit(psutil.RLIMIT_NOFILE, (300, 300))
            silent = [stack.enter_context(site.session().socket()) for _ in range(400)]
            assert prompt(site) < PROMPT_SECONDS + MARGIN_SECONDS
            time.sleep(0.2)
            assert [closed(silent[place]) for place in (0, -1)] == [True, False]
            assert "Traceback" not in site.output
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        shutil.rmtree(folder, ignore_errors=True)
