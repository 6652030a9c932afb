"""Callers that send a request, close their sending side, and then read, as `nc -N` does."""

import json
import socket
import time

import pytest

from chatsite.tests.limits import MARGIN_SECONDS

pytestmark = pytest.mark.server

QUESTION = "When must carried days of leave be used?"
ANSWER_SECONDS = 30


def answer_to_half_closed(session, *requests):
    """Everything the server sends after the caller closed its sending side, until the server closes."""
    with session.socket() as sock:
        sock.settimeout(ANSWER_SECONDS)
        sock.sendall(b"".join(requests))
        sock.shutdown(socket.SHUT_WR)
        data = b""
        while piece := sock.recv(65_536):
            data += piece
        return data


def request(session, method, path, body=b"", **headers):
    headers = session.headers(headers) | ({"Content-Length": str(len(body))} if body else {})
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def question(session, path, **members):
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION}], **members}).encode()
    return request(session, "POST", path, body, **{"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def session(slow_site):
    return slow_site.sign_in("employee")


def test_a_page_is_answered_and_the_connection_closed(session):
    seconds = []
    for _ in range(3):
        begun = time.monotonic()
        answer = answer_to_half_closed(session, request(session, "GET", "/"))
        seconds.append(time.monotonic() - begun)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.rstrip().endswith((b"</html>", b"0"))
    assert min(seconds) < 4  # sooner than an idle connection is closed


def test_pipelined_requests_are_all_answered(session):
    answer = answer_to_half_closed(session, *[request(session, "GET", "/healthz")] * 5)
    assert answer.count(b"HTTP/1.1 200 ") == 5
    assert answer.count(b'{"status": "ok"}') == 5


def test_a_complete_answer_arrives(session):
    answer = answer_to_half_closed(session, question(session, "/chat"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["message"]["content"]


def test_a_streamed_answer_arrives_to_its_end(session):
    answer = answer_to_half_closed(session, question(session, "/chat/stream"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"0\r\n\r\n")
    assert answer.count(b'"delta"') > 5


def test_incomplete_and_empty_requests_are_closed_at_once(session):
    begun = time.monotonic()
    assert answer_to_half_closed(session) == b""
    assert answer_to_half_closed(session, request(session, "GET", "/healthz")[:-2]) == b""
    assert answer_to_half_closed(session, question(session, "/chat")[:-2]) == b""
    assert time.monotonic() - begun < 1 + MARGIN_SECONDS


def test_a_stream_of_which_both_directions_are_closed_ends(session, slow_site):
    [web] = slow_site.children("chatsite.server.serving.web_process")
    with session.socket() as sock:
        sock.sendall(question(session, "/chat/stream"))
        assert sock.recv(65_536)
        place = sock.getsockname()[1]
    deadline = time.monotonic() + 5 + MARGIN_SECONDS
    while any(each.raddr and each.raddr.port == place for each in web.net_connections()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
