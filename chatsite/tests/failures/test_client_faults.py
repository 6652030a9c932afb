"""Callers that leave, stop reading, repeat requests or send garbage; two web processes, real sockets."""

import json
import random
import socket
import struct
import time
from functools import partial
from uuid import uuid4

import pytest

from chatsite.tests.faults import PASSWORD, at_once, body_of, fresh, order, told
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
    raw = Raw(caller, order(token), chunked=part == "chunks")
    data = raw.head if part == "head" else raw.head + raw.body
    start = 0 if part == "head" else len(raw.head)
    raw.send(data[: start + int(share * (len(data) - start))]).reset()


def leave_later(caller, token, until):
    """Send the whole request, and close the connection after `until` returns."""
    raw = Raw(caller, order(token))
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


def test_a_caller_that_leaves_before_the_question_is_complete_has_asked_nothing(faulty):
    caller, calls, tokens = faulty.caller(), [], []
    for part, share in (("head", 0), ("head", 0.5), ("body", 0), ("body", 0.5), ("chunks", 0.5)):
        tokens.append(fresh())
        calls.append(lambda token=tokens[-1], share=share, part=part: leave_early(caller, token, share, part))
    assert at_once(*calls) == [None] * 5
    time.sleep(0.3)
    assert [faulty.stored(token) for token in tokens] == [[]] * 5
    assert [faulty.upstream.calls(token) for token in tokens] == [0] * 5


def test_a_caller_that_leaves_later_is_answered_completely_and_once(faulty):
    caller = faulty.caller()
    points = [stored(caller), read(1), read(200), read(700), read(2500)]
    tokens = [fresh() for _ in points]
    calls = [
        lambda token=token, point=point: leave_later(caller, token, point)
        for token, point in zip(tokens, points, strict=True)
    ]
    assert at_once(*calls) == [None] * 5
    for token in tokens:
        assert faulty.ended(token, 10) == ("complete", "", told(order(token)))
        assert faulty.upstream.calls(token) == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_caller_that_closes_only_its_sending_side_is_answered(faulty, chunked):
    caller, token = faulty.caller(), fresh()
    raw = Raw(caller, order(token), chunked)
    raw.send(raw.head + raw.body)
    stored(caller)(raw, token)
    raw.socket.shutdown(socket.SHUT_WR)
    assert faulty.ended(token, 10) == ("complete", "", told(order(token)))
    assert faulty.upstream.calls(token) == 1
    raw.reset()


def memory(site):
    return sum(process.memory_info().rss for process in site.web_processes())


def connected(site, ports):
    """The number of these client ports that still have a connection to the site."""
    found = [one for process in site.web_processes() for one in process.net_connections("tcp")]
    return sum(bool(one.raddr) and one.raddr.port in ports for one in found)


def test_readers_that_take_no_data_use_little_memory_and_are_dropped(faulty):
    caller, token, readers = faulty.caller("reader"), fresh(), 6
    words = 5000  # 80,000 characters, half a megabyte for each reader
    session = faulty.sign_in("reader", PASSWORD)
    run = caller.begin(order(token, words, 0))
    before, raws = memory(faulty), []
    head = "\r\n".join(f"{name}: {value}" for name, value in session.headers(caller.headers()).items())
    for _ in range(readers):
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.connect((session.host, session.port))
        raw.sendall(f"GET /chat/runs/{run}/events HTTP/1.1\r\n{head}\r\n\r\n".encode())
        raws.append(raw)
    [(conversation,)] = faulty.query("SELECT conversation_id FROM chat_run WHERE id = %s", run)
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        websocket.send(json.dumps({"type": "follow", "run": run, "after": 0}))
        state, _, text = faulty.ended(token, 30)
        assert (state, len(text)) == ("complete", len(told(order(token, words))))
        assert memory(faulty) - before < 60_000_000
        ports = {raw.getsockname()[1] for raw in raws}
        deadline = time.monotonic() + HANG_SECONDS
        while connected(faulty, ports):
            assert time.monotonic() < deadline, "readers that take nothing are still connected"
            time.sleep(0.1)
    for raw in raws:
        raw.close()


def test_a_slow_reader_gets_the_whole_answer_and_delays_nobody(faulty):
    caller, token = faulty.caller(), fresh()
    connection, response = caller.ask(order(token, 100, 0), path="/chat/stream")
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    assert faulty.ended(token, 5)[0] == "complete"
    text = ""
    for line in response:
        time.sleep(0.01)
        text += json.loads(line).get("delta", {}).get("content") or ""
    connection.close()
    assert text == told(order(token, 100))


def test_the_same_request_fifty_times_at_once_is_asked_and_answered_once(faulty):
    caller, token, key = faulty.caller(), fresh(), fresh()
    calls = [lambda: caller.whole(order(token, 20, 20), key=key)] * 50
    answers = at_once(*calls, seconds=40)
    assert {answer[0] for answer in answers} == {200}
    assert len({json.dumps(answer[1], sort_keys=True) for answer in answers}) == 1
    assert answers[0][1]["message"]["content"] == told(order(token, 20))
    assert faulty.ended(token)[0] == "complete"
    assert faulty.upstream.calls(token) == 1
    [(messages,)] = faulty.query(
        "SELECT count(*) FROM history_message WHERE content LIKE %s", f"tell {token} %"
    )
    assert messages == 1
    assert caller.whole(order(fresh()), key=key)[0] == 422


def test_the_second_of_two_concurrent_tabs_is_told_to_wait_and_keeps_its_text(faulty):
    caller = faulty.caller()
    for _ in range(3):
        _, first = caller.whole(order(fresh(), 1, 0))
        conversation = first["session_state"]
        tokens = [fresh(), fresh()]
        answers = at_once(
            *[
                partial(caller.whole, order(token, 15, 20), key=token, conversation=conversation)
                for token in tokens
            ]
        )
        assert sorted(status for status, _ in answers) == [200, 409]
        late = [status for status, _ in answers].index(409)
        assert "This conversation is being answered." in answers[late][1]["error"]
        assert faulty.stored(tokens[late]) == []
        # The same request again, as from a tab that kept its text.
        assert caller.whole(order(tokens[late], 15, 0), key=tokens[late], conversation=conversation)[0] == 200
        assert [faulty.upstream.calls(token) for token in tokens] == [1, 1]


def test_concurrent_stops_count_as_one(faulty):
    caller, token = faulty.caller(), fresh()
    run = caller.begin(order(token, 500, 20))
    time.sleep(0.5)
    stops = at_once(*[lambda: caller.request("POST", f"/chat/runs/{run}/stop").status] * 6)
    assert stops == [204] * 6
    ended = faulty.ended(token, 3)
    assert ended[:2] == ("stopped", "")
    assert caller.request("POST", f"/chat/runs/{run}/stop").status == 204
    assert faulty.ended(token) == ended
    assert faulty.upstream.calls(token) == 1


def test_a_stop_ends_its_own_answer_and_not_the_next_of_the_conversation(faulty):
    caller, token = faulty.caller(), fresh()
    ended = caller.begin(order(fresh(), 1, 0))
    _, end = caller.end(ended)
    [(conversation,)] = faulty.query("SELECT conversation_id::text FROM chat_run WHERE id = %s", ended)
    caller.begin(order(token, 30, 20), conversation=conversation)
    assert caller.request("POST", f"/chat/runs/{ended}/stop").status == 204
    assert faulty.ended(token) == ("complete", "", told(order(token, 30)))
    assert caller.end(ended)[1]["state"] == end["state"] == "complete"


def test_another_persons_answer_looks_like_a_missing_one_during_and_after_it(faulty):
    caller, stranger, token = faulty.caller(), faulty.caller(), fresh()
    run = caller.begin(order(token, 40, 20))

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
    assert faulty.ended(token) == ("complete", "", told(order(token, 40)))
    check()


def test_after_the_end_a_reader_gets_the_complete_message_with_or_without_the_journal(faulty):
    caller, token = faulty.caller(), fresh()
    run = caller.begin(order(token, 10, 0))
    text, end = caller.end(run)
    for after in (0, 3, end["seq"], end["seq"] + 5):
        connection, response = caller.events(run, after)
        assert json.loads(response.read().splitlines()[-1]) == end
        connection.close()
    faulty.query("DELETE FROM chat_journalentry WHERE run_id = %s", run)
    assert caller.end(run) == ("", end)
    assert end["messages"][0]["content"] == text == told(order(token, 10))


def test_a_stop_that_races_the_end_leads_to_one_final_state(faulty):
    caller = faulty.caller()

    def race(token, moment):
        run = caller.begin(order(token, 10, 10))
        time.sleep(moment)
        assert caller.request("POST", f"/chat/runs/{run}/stop").status == 204
        first = faulty.ended(token, 10)
        text, end = caller.end(run)
        assert end["state"] == first[0]
        assert end["messages"][0]["content"] == first[2]
        assert first[2].startswith(text)
        return first

    tokens = [fresh("race") for _ in range(16)]
    calls = [lambda token=token: race(token, random.uniform(0, 0.4)) for token in tokens]
    ends = at_once(*calls)
    assert {end[0] for end in ends} <= {"complete", "stopped"}, ends
    time.sleep(0.5)
    assert [faulty.ended(token) for token in tokens] == ends
