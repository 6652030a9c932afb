"""Pages that send nonsense over their socket, or are of another origin; two web processes, real sockets."""

import json

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from chatsite.tests.faults import PASSWORD, at_once, close_code, fresh, order

pytestmark = pytest.mark.server


def raw_frames(*frames):
    def send(websocket):
        for frame in frames:
            websocket.socket.sendall(frame.serialize(mask=True))

    return send


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
    "a flood": (lambda websocket: [websocket.send(FOLLOW) for _ in range(100)], 4429),
}


def test_nonsense_closes_the_socket_with_its_code_and_the_answer_goes_on(faulty):
    caller, token = faulty.caller("talker"), fresh()
    session = faulty.sign_in("talker", PASSWORD)
    run = caller.begin(order(token, 150, 20))
    [(conversation,)] = faulty.query("SELECT conversation_id FROM chat_run WHERE id = %s", run)

    def code_of(send):
        with session.websocket(f"/ws/c/{conversation}/") as websocket:
            try:
                send(websocket)
            except ConnectionClosed:
                pass
            return close_code(websocket)

    codes = at_once(*[lambda send=send: code_of(send) for send, _ in NONSENSE.values()])
    assert dict(zip(NONSENSE, codes, strict=True)) == {name: code for name, (_, code) in NONSENSE.items()}
    assert faulty.ended(token, 10)[0] == "complete"
    assert faulty.upstream.calls(token) == 1


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "http://127.0.0.1:1", "null", None])
def test_pages_of_other_origins_get_no_socket_and_ask_nothing(faulty, origin):
    name, token = fresh("u"), fresh()
    caller = faulty.caller(name)
    session = faulty.sign_in(name, PASSWORD)
    _, first = caller.whole(order(fresh(), 1, 0))
    address = f"ws://{session.host}:{session.port}/ws/c/{first['session_state']}/"
    headers = {"Cookie": session.headers()["Cookie"]}
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address, additional_headers=headers, origin=origin, proxy=None),
    ):
        pass
    assert refused.value.response.status_code == 403
    if origin:
        # A page elsewhere can send the cookies along, and a form; it can read no token of ours.
        body = json.dumps({"messages": [{"role": "user", "content": order(token)}]}).encode()
        del session.cookies["csrftoken"]
        headers = {"Content-Type": "text/plain", "Origin": origin}
        for kind in ("text/plain", "application/json"):
            answer = session.request("POST", "/chat", body, headers | {"Content-Type": kind})
            assert answer.status == 403
    assert faulty.stored(token) == []
