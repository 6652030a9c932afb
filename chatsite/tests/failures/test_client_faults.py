"""Callers that leave, stop reading, repeat requests or send garbage; two web processes, real sockets."""

import json
import random
import socket
import struct
import time
from functools import partial
from uuid import uuid4

import pytest

from chatsite.tests.faults import PASSWORD, answer_to, at_once, body_of, new_token, question_for
from chatsite.tests.limits import HANG_SECONDS

pytestmark = pytest.mark.server

RESET = struct.pack("ii", 1, 0)


class Raw:
    """A request whose bytes are sent piece by piece."""

    def __init__(self, caller, question, chunked=False, path="/chat/stream"):
        self.body = body_of(question)
        length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(self.body))}
        if chunked:
            self.body = f"{len(self.body):x}\r\n".encode() + self.body + b"\r\n0\r\n\r\n"
        session = caller.site.session()
        lines = [f"{name}: {value}" for name, value in session.headers(caller.headers(**length)).items()]
        self.head = "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode()
        self.socket = session.socket()

    def send(self, data):
        self.socket.sendall(data)
        time.sleep(0.05)
        return self

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.socket.close()


def leave_early(caller, token, share, part):
    """Close the connection after a part of the head or of the body."""
    raw = Raw(caller, question_for(token), chunked=part == "chunks")
    data = raw.head if part == "head" else raw.head + raw.body
    start = 0 if part == "head" else len(raw.head)
    raw.send(data[: start + int(share * (len(data) - start))]).reset()


def leave_later(caller, token, until):
    """Send the whole request, and close the connection after `until` returns."""
    raw = Raw(caller, question_for(token))
    raw.send(raw.head + raw.body)
    until(raw, token)
    raw.reset()


def stored(caller):
    def wait(raw, token):
        deadline = time.monotonic() + HANG_SECONDS
        while not caller.site.stored(token):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    return wait


def read(count):
    """A function that waits until so many bytes of the answer have come."""

    def wait(raw, token):
        left = count
        while left > 0:
            left -= len(raw.socket.recv(left))

    return wait


def test_a_caller_that_leaves_before_the_question_is_complete_has_asked_nothing(fault_site):
    caller, calls, tokens = fault_site.caller(), [], []
    for part, share in (("head", 0), ("head", 0.5), ("body", 0), ("body", 0.5), ("chunks", 0.5)):
        tokens.append(new_token())
        calls.append(lambda token=tokens[-1], share=share, part=part: leave_early(caller, token, share, part))
    assert at_once(*calls) == [None] * 5
    time.sleep(0.3)
    assert [fault_site.stored(token) for token in tokens] == [[]] * 5
    assert [fault_site.upstream.calls(token) for token in tokens] == [0] * 5


def test_a_caller_that_leaves_later_is_answered_completely_and_once(fault_site):
    caller = fault_site.caller()
    points = [stored(caller), read(1), read(200), read(700), read(2500)]
    tokens = [new_token() for _ in points]
    calls = [
        lambda token=token, point=point: leave_later(caller, token, point)
        for token, point in zip(tokens, points, strict=True)
    ]
    assert at_once(*calls) == [None] * 5
    for token in tokens:
        assert fault_site.ended(token, 10) == ("complete", "", answer_to(question_for(token)))
        assert fault_site.upstream.calls(token) == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_caller_that_closes_only_its_sending_side_is_answered(fault_site, chunked):
    caller, token = fault_site.caller(), new_token()
    raw = Raw(caller, question_for(token), chunked)
    raw.send(raw.head + raw.body)
    stored(caller)(raw, token)
    raw.socket.shutdown(socket.SHUT_WR)
    assert fault_site.ended(token, 10) == ("complete", "", answer_to(question_for(token)))
    assert fault_site.upstream.calls(token) == 1
    raw.reset()


def memory(site):
    return sum(process.memory_info().rss for process in site.web_processes())


def connected(site, ports):
    """The number of these client ports that still have a connection to the site."""
    found = [one for process in site.web_processes() for one in process.net_connections("tcp")]
    return sum(bool(one.raddr) and one.raddr.port in ports for one in found)


def test_readers_that_take_no_data_use_little_memory_and_are_dropped(fault_site):
    caller, token, readers = fault_site.caller("reader"), new_token(), 6
    words = 5000  # 80,000 characters, half a megabyte for each reader
    session = fault_site.sign_in("reader", PASSWORD)
    run = caller.begin(question_for(token, words, 0))
    before, raws = memory(fault_site), []
    head = "\r\n".join(f"{name}: {value}" for name, value in session.headers(caller.headers()).items())
    for _ in range(readers):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.connect((session.host, session.port))
        raw.sendall(f"GET /chat/runs/{run}/events HTTP/1.1\r\n{head}\r\n\r\n".encode())
        raws.append(raw)
    [(conversation,)] = fault_site.query("SELECT conversation_id FROM chat_run WHERE id = %s", run)
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        websocket.send(json.dumps({"type": "follow", "run": run, "after": 0}))
        state, _, text = fault_site.ended(token, 30)
        assert (state, len(text)) == ("complete", len(answer_to(question_for(token, words))))
        assert memory(fault_site) - before < 60_000_000
        ports = {raw.getsockname()[1] for raw in raws}
        deadline = time.monotonic() + HANG_SECONDS
        while connected(fault_site, ports):
            assert time.monotonic() < deadline, "readers that take nothing are still connected"
            time.sleep(0.1)
    for raw in raws:
        raw.close()


def test_a_slow_reader_gets_the_whole_answer_and_delays_nobody(fault_site):
    caller, token = fault_site.caller(), new_token()
    connection, response = caller.ask(question_for(token, 100, 0), path="/chat/stream")
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    assert fault_site.ended(token, 5)[0] == "complete"
    text = ""
    for line in response:
        time.sleep(0.01)
        text += json.loads(line).get("delta", {}).get("content") or ""
    connection.close()
    assert text == answer_to(question_for(token, 100))


def test_the_same_request_fifty_times_at_once_is_asked_and_answered_once(fault_site):
    caller, token, key = fault_site.caller(), new_token(), new_token()
    calls = [lambda: caller.whole(question_for(token, 20, 20), key=key)] * 50
    answers = at_once(*calls, seconds=40)
    assert {answer[0] for answer in answers} == {200}
    assert len({json.dumps(answer[1], sort_keys=True) for answer in answers}) == 1
    assert answers[0][1]["message"]["content"] == answer_to(question_for(token, 20))
    assert fault_site.ended(token)[0] == "complete"
    assert fault_site.upstream.calls(token) == 1
    [(messages,)] = fault_site.query(
        "SELECT count(*) FROM history_message WHERE content LIKE %s", f"tell {token} %"
    )
    assert messages == 1
    assert caller.whole(question_for(new_token()), key=key)[0] == 422


def test_the_second_of_two_concurrent_tabs_is_told_to_wait_and_keeps_its_text(fault_site):
    caller = fault_site.caller()
    for _ in range(3):
        _, first = caller.whole(question_for(new_token(), 1, 0))
        conversation = first["session_state"]
        tokens = [new_token(), new_token()]
        answers = at_once(
            *[
                partial(caller.whole, question_for(token, 15, 20), key=token, conversation=conversation)
                for token in tokens
            ]
        )
        assert sorted(status for status, _ in answers) == [200, 409]
        late = [status for status, _ in answers].index(409)
        assert "This conversation is being answered." in answers[late][1]["error"]
        assert fault_site.stored(tokens[late]) == []
        # The same request again, as from a tab that kept its text.
        assert (
            caller.whole(question_for(tokens[late], 15, 0), key=tokens[late], conversation=conversation)[0]
            == 200
        )
        assert [fault_site.upstream.calls(token) for token in tokens] == [1, 1]


def test_concurrent_stops_count_as_one(fault_site):
    caller, token = fault_site.caller(), new_token()
    run = caller.begin(question_for(token, 500, 20))
    time.sleep(0.5)
    stops = at_once(*[lambda: caller.request("POST", f"/chat/runs/{run}/stop").status] * 6)
    assert stops == [204] * 6
    ended = fault_site.ended(token, 3)
    assert ended[:2] == ("stopped", "")
    assert caller.request("POST", f"/chat/runs/{run}/stop").status == 204
    assert fault_site.ended(token) == ended
    assert fault_site.upstream.calls(token) == 1


def test_a_stop_ends_its_own_answer_and_not_the_next_of_the_conversation(fault_site):
    caller, token = fault_site.caller(), new_token()
    ended = caller.begin(question_for(new_token(), 1, 0))
    _, end = caller.end(ended)
    [(conversation,)] = fault_site.query("SELECT conversation_id::text FROM chat_run WHERE id = %s", ended)
    caller.begin(question_for(token, 30, 20), conversation=conversation)
    assert caller.request("POST", f"/chat/runs/{ended}/stop").status == 204
    assert fault_site.ended(token) == ("complete", "", answer_to(question_for(token, 30)))
    assert caller.end(ended)[1]["state"] == end["state"] == "complete"


def test_another_persons_answer_looks_like_a_missing_one_during_and_after_it(fault_site):
    caller, stranger, token = fault_site.caller(), fault_site.caller(), new_token()
    run = caller.begin(question_for(token, 40, 20))

    def refusals():
        for one in (run, str(uuid4())):
            for method, path in (("GET", f"/chat/runs/{one}/events"), ("POST", f"/chat/runs/{one}/stop")):
                answer = stranger.request(method, path)
                yield answer.status, answer.body

    def check():
        theirs, nobodys = (found := list(refusals()))[:2], found[2:]
        assert theirs == nobodys
        assert {status for status, _ in theirs} == {404}
        assert token.encode() not in b"".join(body for _, body in theirs)

    check()
    assert fault_site.ended(token) == ("complete", "", answer_to(question_for(token, 40)))
    check()


def test_after_the_end_a_reader_gets_the_complete_message_with_or_without_the_journal(fault_site):
    caller, token = fault_site.caller(), new_token()
    run = caller.begin(question_for(token, 10, 0))
    text, end = caller.end(run)
    for after in (0, 3, end["seq"], end["seq"] + 5):
        connection, response = caller.events(run, after)
        assert json.loads(response.read().splitlines()[-1]) == end
        connection.close()
    fault_site.query("DELETE FROM chat_journalentry WHERE run_id = %s", run)
    assert caller.end(run) == ("", end)
    assert end["messages"][0]["content"] == text == answer_to(question_for(token, 10))


def test_a_stop_that_races_the_end_leads_to_one_final_state(fault_site):
    caller = fault_site.caller()

    def race(token, moment):
        run = caller.begin(question_for(token, 10, 10))
        time.sleep(moment)
        assert caller.request("POST", f"/chat/runs/{run}/stop").status == 204
        first = fault_site.ended(token, 10)
        text, end = caller.end(run)
        assert end["state"] == first[0]
        assert end["messages"][0]["content"] == first[2]
        assert first[2].startswith(text)
        return first

    tokens = [new_token("race") for _ in range(16)]
    calls = [lambda token=token: race(token, random.uniform(0, 0.4)) for token in tokens]
    ends = at_once(*calls)
    assert {end[0] for end in ends} <= {"complete", "stopped"}, ends
    time.sleep(0.5)
    assert [fault_site.ended(token) for token in tokens] == ends
