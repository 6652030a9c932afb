"""Pages that send garbage over their socket, or have another origin; two web processes, real sockets."""

import json
import socket
import struct
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from chatsite.tests.faults import PASSWORD, answer_to, at_once, close_code, new_token, question_for
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS

pytestmark = pytest.mark.server

RESET = struct.pack("ii", 1, 0)


def raw_frames(*frames):
    def send(websocket):
        for frame in frames:
            websocket.socket.sendall(frame.serialize(mask=True))

    return send


def in_one_piece(*frames):
    return lambda websocket: websocket.socket.sendall(b"".join(each.serialize(mask=True) for each in frames))


FOLLOW = json.dumps({"type": "follow", "run": None})
NONSENSE = {
    "a message of a megabyte": (lambda websocket: websocket.send("x" * 1_000_001), 1009),
    "a message longer than any question": (lambda websocket: websocket.send("x" * 250_001), 1009),
    "a message in pieces without end": (
        raw_frames(Frame(Opcode.TEXT, b"x" * 999_990, fin=False), Frame(Opcode.CONT, b"x" * 100, fin=False)),
        1009,
    ),
    "bytes": (lambda websocket: websocket.send(b"\x00\xff"), 1003),
    "broken UTF-8": (raw_frames(Frame(Opcode.TEXT, b"\xff\xfe")), 1007),
    "broken JSON": (lambda websocket: websocket.send("{"), 4400),
    "deep JSON": (lambda websocket: websocket.send("[" * 100_000), 4400),
    "pings without end": (in_one_piece(*[Frame(Opcode.PING, b"")] * 500), 4429),
    "pongs without end": (in_one_piece(*[Frame(Opcode.PONG, b"")] * 500), 4429),
    "a message in empty pieces": (
        in_one_piece(Frame(Opcode.TEXT, b"", fin=False), *[Frame(Opcode.CONT, b"", fin=False)] * 500),
        4429,
    ),
    "a flood": (lambda websocket: [websocket.send(FOLLOW) for _ in range(100)], 4429),
}


def test_an_invalid_message_closes_the_socket_with_its_code_and_the_answer_continues(fault_site):
    caller, token = fault_site.caller("talker"), new_token()
    session = fault_site.sign_in("talker", PASSWORD)
    run = caller.begin(question_for(token, 150, 20))
    [(conversation,)] = fault_site.query("SELECT conversation_id FROM chat_run WHERE id = %s", run)

    def code_of(send):
        with session.websocket(f"/ws/c/{conversation}/") as websocket:
            try:
                send(websocket)
            except ConnectionClosed:
                pass
            return close_code(websocket)

    codes = at_once(*[lambda send=send: code_of(send) for send, _ in NONSENSE.values()])
    assert dict(zip(NONSENSE, codes, strict=True)) == {name: code for name, (_, code) in NONSENSE.items()}
    assert fault_site.ended(token, 10)[0] == "complete"
    assert fault_site.upstream.calls(token) == 1


def test_a_page_that_closes_while_asking_has_asked_once_or_not_at_all(fault_site):
    name = new_token("u")
    caller = fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    _, first = caller.whole(question_for(new_token(), 1, 0))
    for _ in range(6):
        token = new_token()
        asked = json.dumps({"type": "ask", "text": question_for(token, 10, 5), "key": token})
        with session.websocket(f"/ws/c/{first['session_state']}/") as websocket:
            websocket.send(asked)
            websocket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            websocket.socket.close()
        # The page reconnects, and sends its question again, because it does not know whether it was accepted.
        with session.websocket(f"/ws/c/{first['session_state']}/") as websocket:
            websocket.send(asked)
            assert json.loads(websocket.recv(timeout=HANG_SECONDS))["type"] == "accepted"
        assert fault_site.ended(token) == ("complete", "", answer_to(question_for(token, 10)))
        assert fault_site.upstream.calls(token) == 1


def test_withdrawn_rights_reach_every_open_connection_within_two_seconds(fault_site):
    name, token = new_token("u"), new_token()
    caller = fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    asking, asked = caller.ask(question_for(token, 1000, 20))
    run = asked.headers["Chat-Run"]
    reading, events = caller.events(run)
    [(conversation,)] = fault_site.query("SELECT conversation_id FROM chat_run WHERE id = %s", run)
    with session.websocket(f"/ws/c/{conversation}/") as websocket:
        websocket.send(json.dumps({"type": "follow", "run": run, "after": 0}))
        websocket.recv(timeout=HANG_SECONDS)
        fault_site.query(
            "UPDATE accounts_apikey SET revoked_at = now() WHERE prefix = %s", caller.secret[:12]
        )
        revoked = time.monotonic()
        assert [len(end) > 0 for end in at_once(asked.read, events.read)] == [True, True]
        assert time.monotonic() - revoked < 2 + MARGIN_SECONDS
        assert caller.request("GET", f"/chat/runs/{run}/events").status == 401
        assert fault_site.stored(token)[0][1] == "streaming", "the answer is its owner's, not the key's"
        fault_site.query("UPDATE accounts_user SET is_active = false WHERE username = %s", name)
        disabled = time.monotonic()
        assert fault_site.ended(token, 2)[0] == "stopped"
        assert close_code(websocket) == 4404, "though nothing is asked on it"
        assert time.monotonic() - disabled < 2 + MARGIN_SECONDS
    asking.close()
    reading.close()


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "http://127.0.0.1:1", "null", None])
def test_pages_of_other_origins_get_no_socket(fault_site, origin):
    name, token = new_token("u"), new_token()
    caller = fault_site.caller(name)
    session = fault_site.sign_in(name, PASSWORD)
    _, first = caller.whole(question_for(new_token(), 1, 0))
    address = f"ws://{session.host}:{session.port}/ws/c/{first['session_state']}/"
    headers = {"Cookie": session.headers()["Cookie"]}
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address, additional_headers=headers, origin=origin, proxy=None),
    ):
        pass
    assert refused.value.response.status_code == 403
    if origin:
        # A page of another origin can send a form with the cookies, but cannot read a CSRF token.
        body = json.dumps({"messages": [{"role": "user", "content": question_for(token)}]}).encode()
        del session.cookies["csrftoken"]
        headers = {"Content-Type": "text/plain", "Origin": origin}
        for kind in ("text/plain", "application/json"):
            answer = session.request("POST", "/chat", body, headers | {"Content-Type": kind})
            assert answer.status == 403
    assert fault_site.stored(token) == []
