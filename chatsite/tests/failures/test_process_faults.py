"""Web processes and the worker are asked to end, frozen or killed in the middle of their work.

With CHATSITE_TEST_ROUNDS of 20 or more one is frozen for 40 seconds.
"""

import json
import os
import signal
import time
from contextlib import ExitStack
from functools import partial
from http.client import IncompleteRead

import psutil
import pytest

from chatsite.tests.faults import (
    PASSWORD,
    READY,
    answer_to,
    at_once,
    close_code,
    new_token,
    question_for,
    upload,
)
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.server import alive

pytestmark = pytest.mark.server

GRACE = 4  # of the site under test, in seconds
FROZEN_SECONDS = 40 if int(os.environ.get("CHATSITE_TEST_ROUNDS", "1")) >= 20 else 0
MANY = 12  # streams, so that each process has some
MAX_PAGES = 60  # opened until one is the stopped process's; a person may have more


def streamed(response):
    """Return the text of the received lines, and whether the response was complete."""
    data, whole = b"", False
    try:
        while piece := response.read1(65_536):
            data += piece
        whole = True
    except (IncompleteRead, OSError):
        pass
    lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    return "".join(line.get("delta", {}).get("content") or "" for line in lines), whole


def wait_for_processes(site, number=2, seconds=HANG_SECONDS):
    deadline = time.monotonic() + seconds
    while len(site.web_processes()) < number:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    site.wait_until_ready()


def wait_for_calls(site, tokens, seconds=HANG_SECONDS):
    """Wait until the model was asked each of the questions."""
    deadline = time.monotonic() + seconds
    while not all(map(site.upstream.calls, tokens)) and time.monotonic() < deadline:
        time.sleep(0.02)


def ended_within(process, seconds):
    """How long a process took to end."""
    begun = time.monotonic()
    psutil.wait_procs([process], seconds + MARGIN_SECONDS)
    assert not alive(process), f"it still runs after {seconds} s"
    return time.monotonic() - begun


def wait_until_not_overloaded(site, seconds=HANG_SECONDS):
    """Wait until the web processes, which may just have started, answer eight questions at once."""
    caller, deadline = site.caller(), time.monotonic() + seconds
    while True:
        questions = [question_for(new_token(), 5, 10) for _ in range(8)]
        if all(status == 200 for status, _ in at_once(*[partial(caller.whole, each) for each in questions])):
            return
        assert time.monotonic() < deadline, "The site is overloaded"


def test_a_web_process_that_is_stopped_finishes_its_answers_and_refuses_no_request(fault_site):
    wait_for_processes(fault_site)
    wait_until_not_overloaded(fault_site)
    caller, tokens = fault_site.caller(), [new_token() for _ in range(MANY)]
    streams = [caller.accepted(question_for(token, 40, 20)) for token in tokens]
    process = fault_site.web_processes()[0]
    process.send_signal(signal.SIGTERM)
    later = [new_token() for _ in range(8)]
    answers = at_once(*[partial(caller.whole, question_for(token, 5, 10)) for token in later])
    assert [status for status, _ in answers] == [200] * 8
    for token, (connection, response) in zip(tokens, streams, strict=True):
        assert streamed(response) == (answer_to(question_for(token, 40)), True)
        connection.close()
    for token in [*tokens, *later]:
        assert fault_site.ended(token, 5)[0] == "complete"
        assert fault_site.upstream.calls(token) == 1
    ended_within(process, GRACE + 2)
    wait_for_processes(fault_site)


def test_a_connection_accepted_just_before_the_end_is_answered(fault_site):
    wait_for_processes(fault_site)
    process = fault_site.web_processes()[0]
    callers = [fault_site.session().socket() for _ in range(MANY)]
    while not (let_in := [caller for caller in callers if has(process, caller)]):
        callers.append(fault_site.session().socket())
    process.send_signal(signal.SIGTERM)
    while any(one.status == psutil.CONN_LISTEN for one in process.net_connections("tcp")):
        pass  # until it has closed its listening socket
    for caller in let_in:
        caller.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    for caller in let_in:
        assert caller.recv(65_536).startswith(b"HTTP/1.1 200")
    for caller in callers:
        caller.close()
    ended_within(process, GRACE + 2)
    wait_for_processes(fault_site)


def test_an_answer_longer_than_the_grace_period_keeps_its_text_and_is_followed_elsewhere(fault_site):
    wait_for_processes(fault_site)
    name = new_token("u")
    caller, tokens = fault_site.caller(name), [new_token() for _ in range(MANY)]
    session = fault_site.sign_in(name, PASSWORD)
    streams = [caller.accepted(question_for(token, 200, 50)) for token in tokens]  # 10 s
    runs = [response.headers["Chat-Run"] for _, response in streams]
    # The process that has the first answer, at least.
    process = next(one for one in fault_site.web_processes() if has(one, streams[0][0].sock))
    for connection, _ in streams:
        connection.close()
    [(conversation,)] = fault_site.query("SELECT conversation_id FROM chat_run WHERE id = %s", runs[0])
    with ExitStack() as opened:
        page = f"/ws/c/{conversation}/"
        pages = (opened.enter_context(session.websocket(page)) for _ in range(MAX_PAGES))
        websocket = next(one for one in pages if has(process, one.socket))
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert close_code(websocket, GRACE) == 1012, "the page is told to come back"
        assert time.monotonic() - begun < 2 + MARGIN_SECONDS
    # New readers reach the other process, which has the answers of both.
    ends = at_once(*[partial(caller.end, run) for run in runs])
    states = set()
    for token, (text, end) in zip(tokens, ends, strict=True):
        state, code, stored = fault_site.ended(token, 1)
        assert (end["state"], text) == (state, stored)
        assert (state, code) in {("complete", ""), ("interrupted", "interrupted")}
        if state == "interrupted":
            assert len(stored.split()) > 10, "what came in the grace is kept"
        assert fault_site.upstream.calls(token) == 1
        states.add(state)
    assert "interrupted" in states
    ended_within(process, 1)
    wait_for_processes(fault_site)


def has(process, sock):
    """Whether a process has the other end of a socket."""
    port = sock.getsockname()[1]
    return any(one.raddr and one.raddr.port == port for one in process.net_connections("tcp"))


def test_a_killed_web_process_interrupts_only_its_own_answers(fault_site):
    wait_for_processes(fault_site)
    caller, tokens = fault_site.caller(), [new_token() for _ in range(MANY)]
    streams = [caller.accepted(question_for(token, 100, 20), key=token) for token in tokens]
    wait_for_calls(fault_site, tokens)
    time.sleep(0.2)  # until some text has arrived
    fault_site.web_processes()[0].kill()
    texts = [streamed(response) for _, response in streams]
    for connection, _ in streams:
        connection.close()
    for token, (text, whole) in zip(tokens, texts, strict=True):
        state, code, stored = fault_site.ended(token, 2 + 5 + 3)  # lease, housekeeping, and a margin
        assert (state, code) in {("complete", ""), ("interrupted", "interrupted")}
        assert whole <= (state == "complete")
        assert stored.startswith(text) or text.startswith(stored)
        assert len(text) - len(stored) < len(answer_to(question_for(token, 100))) // 2, (
            "more than a second is lost"
        )
        assert caller.whole(question_for(token, 100, 20), key=token)[0] == (
            200 if state == "complete" else 502
        )
        assert fault_site.upstream.calls(token) == 1, "the same request again asks no model"
    wait_for_processes(fault_site)


def test_a_frozen_web_process_that_resumes_does_not_change_closed_runs(fault_site):
    wait_for_processes(fault_site)
    caller, tokens = fault_site.caller(), [new_token() for _ in range(MANY)]
    streams = [caller.accepted(question_for(token, 250, 20)) for token in tokens]
    wait_for_calls(fault_site, tokens)
    time.sleep(0.2)  # until some text has arrived
    process = next(one for one in fault_site.web_processes() if has(one, streams[0][0].sock))
    theirs = [has(process, connection.sock) for connection, _ in streams]
    process.suspend()
    try:
        frozen = time.monotonic()
        ends = [
            fault_site.ended(token, 2 + 5 + 3 + 1) for token in tokens
        ]  # lease, housekeeping, and a margin
        time.sleep(max(0, frozen + FROZEN_SECONDS - time.monotonic()))
    finally:
        process.resume()
    texts = at_once(*[partial(streamed, response) for _, response in streams])
    for mine, token, end, (text, whole) in zip(theirs, tokens, ends, texts, strict=True):
        assert end[:2] == (("interrupted", "interrupted") if mine else ("complete", ""))
        assert whole, "its readers are told the end"
        assert text.startswith(end[2])
        assert fault_site.ended(token) == end, "a closed answer was written again"
        assert fault_site.upstream.calls(token) == 1
    for connection, _ in streams:
        connection.close()
    later = [new_token() for _ in range(MANY)]
    answers = at_once(*[partial(caller.whole, question_for(token, 5, 10)) for token in later])
    assert [status for status, _ in answers] == [200] * MANY
    assert process in fault_site.web_processes()


def test_a_stopped_worker_leaves_its_documents_to_the_next(fault_site):
    name = new_token("u")
    fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    [(before,)] = fault_site.query(READY)
    for place in range(2):
        text = f"{new_token()} is the number {place}. " * 500
        assert upload(session, f"{new_token()}.txt", text.encode())[0] == 201
    fault_site.wait_for_worker()
    fault_site.children("chatsite.server.worker")[0].send_signal(signal.SIGTERM)
    assert fault_site.caller().whole(question_for(new_token(), 5, 0))[0] == 200
    deadline = time.monotonic() + HANG_SECONDS
    while fault_site.query(READY) != [(before + 2,)]:
        assert time.monotonic() < deadline, "documents were not read"
        time.sleep(0.1)
