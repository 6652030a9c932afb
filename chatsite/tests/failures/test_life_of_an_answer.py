"""Answers on the production server, over sockets: leaving, returning, stopping, killing."""

import json
import re
import shutil
import signal
import socket
import time

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed

from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from chatsite.tests.long_answer import LONG_QUESTION, add_long_answer
from chatsite.tests.server import Site, prepared, reading_parameters, temporary_folder, wait_for_documents

pytestmark = pytest.mark.server

QUESTION = "When must carried days of leave be used?"


def ask(session, text, conversation=None, **headers):
    body = {"messages": [{"role": "user", "content": text}], "session_state": conversation}
    answer = session.request(
        "POST", "/chat", json.dumps(body).encode(), {"Content-Type": "application/json"} | headers, timeout=30
    )
    return answer.json()


def begin_stream(session, text=QUESTION, conversation=None):
    """An open stream of which the first chunk was read: connection, response, conversation."""
    body = {"messages": [{"role": "user", "content": text}], "session_state": conversation}
    connection, response = session.stream(
        "POST", "/chat/stream", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    first = json.loads(response.readline())
    return connection, response, first["session_state"]


def read_deltas(response, count):
    return "".join(json.loads(response.readline())["delta"]["content"] or "" for _ in range(count))


def page_when(session, conversation, state, seconds=HANG_SECONDS):
    """Wait until the page's last answer is in this state, and return the page."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        page = session.get(f"/c/{conversation}/").text
        if f'data-state="{state}"' in page:
            return page
        time.sleep(0.1)
    raise AssertionError(f"No answer became {state}.")


def test_a_stream_arrives_in_pieces(slow_site):
    session = slow_site.sign_in("employee")
    connection, response, _ = begin_stream(session)
    arrivals = []
    while line := response.readline():
        assert line.endswith(b"\n")
        json.loads(line)
        arrivals.append(time.monotonic())
    connection.close()
    assert response.headers["Content-Type"] == "application/json-lines"
    assert response.headers["Transfer-Encoding"] == "chunked"
    assert arrivals[-1] - arrivals[0] > 1, "the pieces came all at once"


def test_a_closed_connection_loses_neither_the_question_nor_the_answer(slow_site):
    session = slow_site.sign_in("employee")
    connection, response, conversation = begin_stream(session)
    read_deltas(response, 3)
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    page = page_when(session, conversation, "complete")
    assert QUESTION in page
    assert "31 March" in page


def test_a_connection_reset_before_the_first_byte_loses_nothing(slow_site):
    session = slow_site.sign_in("employee")
    key = f"reset-{time.time()}"
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION}], "session_state": None}).encode()
    raw = session.socket()
    headers = session.headers(
        {"Content-Type": "application/json", "Content-Length": str(len(body)), "Idempotency-Key": key}
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    raw.sendall(f"POST /chat/stream HTTP/1.1\r\n{head}\r\n".encode() + body)
    time.sleep(0.3)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    raw.close()
    answer = ask(session, QUESTION, **{"Idempotency-Key": key})
    assert "31 March" in answer["message"]["content"]
    page = page_when(session, answer["session_state"], "complete")
    assert page.count('class="turn"') == 1


def test_two_readers_see_the_same_text(slow_site):
    session = slow_site.sign_in("employee")
    connection, response, conversation = begin_stream(session, LONG_QUESTION)
    run = run_of(session, conversation)
    streamed = read_deltas(response, 6)
    with (
        session.websocket(f"/ws/c/{conversation}/") as one,
        session.websocket(f"/ws/c/{conversation}/") as two,
    ):
        for reader in (one, two):
            reader.send(json.dumps({"type": "follow", "run": run, "after": 0}))
        one.send(json.dumps({"type": "stop", "run": run}))
        ends = [read_to_the_end(one), read_to_the_end(two)]
    streamed += "".join(json.loads(line).get("delta", {}).get("content") or "" for line in response)
    connection.close()
    assert ends[0] == ends[1]
    assert streamed.startswith("> ")


def run_of(session, conversation):
    page = session.get(f"/c/{conversation}/").text
    return page.split('data-run="')[1].split('"')[0]


def read_to_the_end(websocket):
    """The types of the messages, and the last message."""
    while True:
        message = json.loads(websocket.recv(timeout=HANG_SECONDS))
        for part in message.get("messages", [message]):
            if part.get("type") == "done":
                return part


def test_a_stop_over_the_socket_ends_the_answer_at_once(slow_site):
    session = slow_site.sign_in("employee")
    connection, response, conversation = begin_stream(session, LONG_QUESTION)
    read_deltas(response, 4)
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        asked = time.monotonic()
        websocket.send(json.dumps({"type": "stop", "run": run_of(session, conversation)}))
        rest = response.read()
        took = time.monotonic() - asked
    connection.close()
    assert took < 1 + MARGIN_SECONDS, f"the stream ended {took:.2f} s after the stop"
    assert b"error" not in rest
    page_when(session, conversation, "stopped")


def test_signing_out_ends_an_open_stream_within_two_seconds(slow_site):
    session = slow_site.sign_in("employee")
    connection, response, conversation = begin_stream(session, LONG_QUESTION)
    read_deltas(response, 2)
    signed_out = session.post("/accounts/sign-out/", {"csrfmiddlewaretoken": session.cookies["csrftoken"]})
    assert signed_out.status == 302
    began = time.monotonic()
    rest = response.read()
    connection.close()
    assert time.monotonic() - began < 2 + MARGIN_SECONDS
    assert b"error" in rest.splitlines()[-1]
    # The answer continues on the site.
    session = slow_site.sign_in("employee")
    run = run_of(session, conversation)
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        websocket.send(json.dumps({"type": "stop", "run": run}))
        page_when(session, conversation, "stopped")


def test_a_password_changed_by_another_process_ends_streams_and_sockets_within_two_seconds(slow_site):
    session = slow_site.sign_in("hr")
    add_long_answer(slow_site, session)
    connection, response, conversation = begin_stream(session, LONG_QUESTION)
    read_deltas(response, 2)
    change = "UPDATE accounts_user SET password = %s WHERE username = 'hr'"
    with (
        psycopg.connect(**reading_parameters(slow_site.folder), autocommit=True) as database,
        session.websocket(f"/ws/c/{conversation}/") as websocket,
    ):
        found = database.execute("SELECT password FROM accounts_user WHERE username = 'hr'").fetchone()
        database.execute(change, ["another hash"])
        began = time.monotonic()
        try:
            rest = response.read()
            assert time.monotonic() - began < 2 + MARGIN_SECONDS
            assert b"error" in rest.splitlines()[-1]
            with pytest.raises(ConnectionClosed):
                list(websocket)
            assert time.monotonic() - began < 2 + MARGIN_SECONDS
            assert websocket.close_code == 4404
        finally:
            connection.close()
            database.execute(change, found)


def test_a_reader_that_never_reads_does_not_affect_the_answer(slow_site):
    session = slow_site.sign_in("employee")
    connection, _, conversation = begin_stream(session)
    page_when(session, conversation, "complete")
    connection.close()


def test_killing_the_web_process_keeps_question_and_text_and_marks_the_answer(slow_site):
    session = slow_site.sign_in("employee")
    connection, response, conversation = begin_stream(session)
    seen = read_deltas(response, 12)
    time.sleep(0.6)  # long enough for a flush
    slow_site.kill_web()
    connection.close()
    slow_site.wait_until_ready()
    page = page_when(session, conversation, "interrupted")
    assert QUESTION in page
    assert "The answer was interrupted. The partial answer is kept." in page
    assert seen.removeprefix("> ").split()[0] in page
    assert "again" in page
    # The link to retry works.
    path = re.search(r'action="(/c/[^"]+/again)"', page).group(1)
    again = session.post(path, {"csrfmiddlewaretoken": session.cookies["csrftoken"]})
    assert again.status == 303
    assert "31 March" in page_when(session, conversation, "complete")
    page = session.get(f"/c/{conversation}/").text
    assert "Version 2 of 2" in page  # the other answer was interrupted


def test_an_orderly_stop_marks_a_running_answer_and_keeps_it():
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_QUOTING_WORDS_PER_SECOND="5") as site:
            wait_for_documents(site)
            session = site.sign_in("employee")
            connection, response, conversation = begin_stream(session)
            read_deltas(response, 4)
            began = time.monotonic()
            assert site.stop(signal.SIGTERM) == 0
            assert time.monotonic() - began < 15 + MARGIN_SECONDS
            connection.close()
            assert site.postgres() is None
            site.start()
            page = site.sign_in("employee").get(f"/c/{conversation}/").text
            assert 'data-state="interrupted"' in page
            assert QUESTION in page
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_one_question_gives_each_person_the_documents_that_they_may_read(slow_site):
    question = "What is Project Halyard?"
    refused = ask(slow_site.sign_in("employee"), question)
    assert "Halyard" not in json.dumps(refused).replace(question, "")
    assert "reorganisation" not in json.dumps(refused).lower()
    assert "steering" not in json.dumps(refused)
    assert "steering group" in ask(slow_site.sign_in("hr"), question)["message"]["content"]
