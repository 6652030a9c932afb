"""Bodies that are too large, without a length, or sent to an unknown address; over a raw socket."""

import asyncio
import json
import time

import pytest
from django.conf import settings

from chatsite.accounts.known_callers import credential, known_caller
from chatsite.http import body_limits
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS

pytestmark = pytest.mark.server

LIMIT = 1_000_000


def converse(site, head, body=b"", session=None):
    """(status, headers, body) of one request whose bytes are given; the connection is closed after it."""
    session = session or site.session()
    cookie = session.headers().get("Cookie")
    lines = [*head, f"Host: {session.host}:{session.port}", "Connection: close"]
    lines += [f"Cookie: {cookie}", f"X-CSRFToken: {session.cookies['csrftoken']}"] if cookie else []
    with session.socket() as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        for part in [body] if isinstance(body, bytes) else body:
            connection.sendall(part)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    top, _, rest = answer.partition(b"\r\n\r\n")
    first, *others = top.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in others)
    return int(first.split()[1]), headers, rest


def chunks(data, size=65_536):
    for start in range(0, len(data), size):
        part = data[start : start + size]
        yield f"{len(part):x}\r\n".encode() + part + b"\r\n"
    yield b"0\r\n\r\n"


def refused(answer):
    status, headers, body = answer
    assert status == 413
    assert json.loads(body) == {"error": "The request’s body is too large."}
    assert len(headers["x-request-id"]) >= 8


def test_a_body_declared_too_large_is_refused_at_once_without_being_sent(site):
    begun = time.monotonic()
    refused(converse(site, ["POST /chat HTTP/1.1", f"Content-Length: {100 * LIMIT}"]))
    assert time.monotonic() - begun < 2 + MARGIN_SECONDS


def test_a_refusal_has_the_headers_of_every_answer(site):
    headers = converse(site, ["POST /chat HTTP/1.1", f"Content-Length: {100 * LIMIT}"])[1]
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"


def test_a_compressed_body_is_refused_with_the_reason():
    """Each case is (the value of Content-Encoding, whether the body is passed on)."""
    passed = []

    async def application(scope, receive, send):
        passed.append(scope)

    async def receive():
        return {"type": "http.request", "body": b"ab", "more_body": False}

    async def send(message):
        sent.append(message)

    for encoding, is_read in ((b"gzip", False), (b"br", False), (b"identity", True)):
        sent = []
        passed.clear()
        headers = [(b"content-length", b"2"), (b"content-encoding", encoding)]
        scope = {"type": "http", "method": "POST", "path": "/chat", "headers": headers}
        asyncio.run(body_limits.BodyLimit(application, known_caller)(scope, receive, send))
        assert bool(passed) is is_read
        assert is_read or sent[0]["status"] == 415
        assert is_read or "without Content-Encoding" in json.loads(sent[1]["body"])["error"]


def test_waiting_for_the_rest_of_a_body_has_a_limit(monkeypatch):
    monkeypatch.setattr(body_limits, "IDLE_SECONDS", 0.05)
    sent = []

    async def application(scope, receive, send):
        while (await receive())["more_body"]:
            pass

    async def receive():
        pieces.append(None)
        if len(pieces) > 1:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": b"ab", "more_body": True}

    async def send(message):
        sent.append(message)

    pieces = []
    scope = {"type": "http", "path": "/chat", "headers": [(b"content-length", b"9")]}
    asyncio.run(body_limits.BodyLimit(application, known_caller)(scope, receive, send))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"]) == {"error": "The request’s body did not arrive in time."}


def test_a_complete_body_has_no_time_limit(monkeypatch):
    monkeypatch.setattr(body_limits, "IDLE_SECONDS", 0.05)
    heard = []

    async def application(scope, receive, send):
        heard.extend([await receive(), await receive()])

    async def receive():
        await asyncio.sleep(0.15 if heard_body else 0)
        heard_body.append(True)
        return {"type": "http.request" if len(heard_body) == 1 else "http.disconnect"}

    heard_body = []
    scope = {"type": "http", "path": "/chat", "headers": [(b"content-length", b"1")]}
    asyncio.run(body_limits.BodyLimit(application, known_caller)(scope, receive, None))
    assert heard[1] == {"type": "http.disconnect"}


def test_a_client_that_sends_a_large_body_anyway_gets_the_response(site):
    head = ["POST /chat HTTP/1.1", f"Content-Length: {30 * LIMIT}"]
    refused(converse(site, head, (bytes(LIMIT) for _ in range(30))))


def test_a_chunked_body_is_counted_as_it_arrives(site):
    head = ["POST /nothing-here HTTP/1.1", "Transfer-Encoding: chunked"]
    refused(converse(site, head, chunks(bytes(3 * LIMIT))))


def test_each_protocol_is_refused_in_its_own_form(site):
    def told(path):
        status, _, body = converse(site, [f"POST {path} HTTP/1.1", f"Content-Length: {5 * LIMIT}"])
        assert status == 413
        return json.loads(body)["error"]

    words = "The request’s body is too large."
    assert told("/api/chat") == {"message": words, "code": "too_large"}
    assert told("/v1/chat/completions") == {
        "message": words, "type": "invalid_request_error", "param": None, "code": None,
    }  # fmt: skip


def test_authenticated_callers_may_send_larger_questions_with_images(site):
    form = ["Content-Type: multipart/form-data; boundary=b"]
    head = ["POST /chat//stream HTTP/1.1", f"Content-Length: {2 * LIMIT}"]
    session = site.sign_in("employee")
    refused(converse(site, [*head, *form, "Authorization: Bearer invented"]))
    refused(converse(site, [*head, "Content-Type: application/json"], session=session))
    status, _, body = converse(site, [*head, *form], bytes(2 * LIMIT), session)
    assert (status, json.loads(body)) == (400, {"error": "The body is not valid multipart/form-data."})
    refused(converse(site, [head[0], "Content-Length: 13000000", *form], session=session))


def test_upload_urls_have_the_usual_limit_for_anonymous_callers(site):
    head = ["POST /documents/add/ HTTP/1.1", f"Content-Length: {5 * LIMIT}"]
    refused(converse(site, head))
    refused(converse(site, [*head, "Cookie: sessionid=invented"]))


def test_upload_urls_have_a_higher_limit_for_authenticated_callers(site):
    session = site.sign_in("employee")
    body = bytes(2 * LIMIT)
    head = ["POST /documents/add/ HTTP/1.1", "Content-Type: text/plain", f"Content-Length: {len(body)}"]
    assert converse(site, head, body, session)[0] != 413


def test_an_upload_has_its_own_limit(site):
    session = site.sign_in("employee")
    head = ["POST /documents/add/ HTTP/1.1", "Content-Length: 500000000"]
    refused(converse(site, head, session=session))


def test_a_chunked_form_reaches_the_view(site):
    """Django treats a body without a length as empty: the names in it would be missing."""
    body = b"username=nobody&password=wrong&csrfmiddlewaretoken="
    session = site.session()
    session.get("/accounts/sign-in/")
    head = ["POST /accounts/sign-in/ HTTP/1.1", "Transfer-Encoding: chunked"]
    head += ["Content-Type: application/x-www-form-urlencoded"]
    status, _, page = converse(site, head, chunks(body, 7), session)
    assert status == 200
    assert b'value="nobody"' in page


def test_a_chunked_json_body_reaches_the_api(site):
    session = site.sign_in("employee")
    head = ["POST /chat HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked"]
    empty = converse(site, head, chunks(b"{}"), session)
    broken = converse(site, head, chunks(b'{"messages": ['), session)
    assert empty[0] == broken[0] == 400
    assert empty[2] != broken[2]


CHAT_URLS = (
    "/chat",
    "/chat/stream",
    "/ask",
    "/api/chat",
    "/api/minimal/chat",
    "/v1/chat/completions",
    "/chat-history",
)
NONSENSE = {
    "broken": b'{"messages": [',
    "deep": b"[" * 200_000,
    "deep inside": b'{"messages": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "no text": b"\xff\xfe\x00",
    "NaN": b'{"messages": NaN, "title": NaN}',
    "a number without end": b'{"messages": ' + b"9" * 5_000 + b', "title": ' + b"9" * 5_000 + b"}",
    "another type": b'{"messages": {"role": 1}, "title": {"a": []}}',
    "NUL": b'{"messages": [{"role": "user", "content": "a\\u0000b"}], "title": "a\\u0000b"}',
    "half a pair": b'{"messages": [{"role": "user", "content": "a\\ud800"}], "title": "a\\ud800"}',
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_invalid_requests_are_refused_in_json_within_a_second_at_every_url(site, body):
    session = site.sign_in("employee")
    for path in CHAT_URLS:
        head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        begun = time.monotonic()
        status, headers, told = converse(site, head, body, session)
        assert time.monotonic() - begun < 1 + MARGIN_SECONDS
        assert status in (400, 413, 415, 422), (path, status, told)
        assert json.loads(told)["error"]
        assert headers["x-request-id"]


@pytest.mark.parametrize("path", ["/nothing-here", "/chat-history/nothing/here"])
def test_a_url_without_a_view_is_404_for_any_body(site, path):
    body = bytes(LIMIT - 1)
    status, headers, _ = converse(site, [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}"], body)
    assert status == 404
    assert headers["x-request-id"]


def test_the_request_id_of_the_caller_is_kept(site):
    head = ["POST /chat HTTP/1.1", "Content-Length: 2000000", "X-Request-ID: given-by-me"]
    assert converse(site, head)[1]["x-request-id"] == "given-by-me"


class Arriving:
    """Sends large bodies as far as allowed, until `finish`; records the statuses of their requests."""

    def __init__(self, limit):
        self.limit, self.finish, self.begun = limit, asyncio.Event(), asyncio.Queue()

    async def send_one(self, caller):
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/documents/add/",
            "headers": [(b"content-length", b"5000000"), (b"x-api-key", caller)],
        }
        statuses = []

        async def receive():
            self.begun.put_nowait(caller)
            await self.finish.wait()
            return {"type": "http.request", "body": b"ab"}

        async def send(message):
            statuses.append(message.get("status"))

        await self.limit(scope, receive, send)
        return statuses[0]


def test_one_caller_sends_only_a_few_large_bodies_at_once(monkeypatch):
    monkeypatch.setattr(body_limits, "WAIT_SECONDS", 0.05)

    async def application(scope, receive, send):
        assert not (await receive()).get("more_body")
        await send({"type": "http.response.start", "status": 200})

    async def together():
        limit = body_limits.BodyLimit(
            application, lambda scope, guests: body_limits.header(scope, b"x-api-key")
        )
        arriving = Arriving(limit)
        some = [asyncio.create_task(arriving.send_one(b"a")) for _ in range(body_limits.LARGE_BODIES)]
        for _ in some:
            await arriving.begun.get()
        refused = await arriving.send_one(b"a")
        other = asyncio.create_task(arriving.send_one(b"b"))
        while await arriving.begun.get() != b"b":
            pass
        arriving.finish.set()
        return refused, await asyncio.gather(*some, other), await arriving.send_one(b"a")

    refused, answers, later = asyncio.run(together())
    assert (refused, set(answers), later) == (429, {200}, 200)


def test_a_change_of_a_document_has_the_usual_body_limit():
    statuses = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        statuses.append(message.get("status"))

    scope = {
        "type": "http",
        "method": "PATCH",
        "path": "/api/documents/a.md",
        "headers": [(b"content-length", b"5000000"), (b"content-type", b"application/json")],
    }
    asyncio.run(body_limits.BodyLimit(None, lambda scope, guests: "a")(scope, receive, send))
    assert statuses[0] == 413


def test_one_caller_has_only_a_few_large_files_stored_at_once(monkeypatch):
    """Files that have arrived completely also count, until their request is answered."""
    monkeypatch.setattr(body_limits, "WAIT_SECONDS", 0.05)
    stored, whole = asyncio.Event(), asyncio.Queue()

    async def application(scope, receive, send):
        whole.put_nowait(await receive())
        await stored.wait()
        await send({"type": "http.response.start", "status": 201})

    async def together():
        limit = body_limits.BodyLimit(application, lambda scope, guests: "a")
        arriving = Arriving(limit)
        arriving.finish.set()
        some = [asyncio.create_task(arriving.send_one(b"a")) for _ in range(body_limits.LARGE_BODIES)]
        for _ in some:
            await whole.get()
        refused = await arriving.send_one(b"a")
        stored.set()
        return refused, await asyncio.gather(*some), await arriving.send_one(b"a")

    refused, answers, later = asyncio.run(asyncio.wait_for(together(), HANG_SECONDS))
    assert (refused, set(answers), later) == (429, {201}, 201)


def test_many_refused_bodies_are_not_read_at_full_speed(monkeypatch):
    monkeypatch.setattr(body_limits, "DRAIN_SECONDS", 0.3)
    pieces = 0

    async def receive():
        nonlocal pieces
        pieces += 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def send(message):
        pass

    async def refuse_all():
        refusal = {"path": "/documents/add/", "headers": []}
        await asyncio.gather(*(body_limits.refuse(refusal, receive, send, 429, "") for _ in range(20)))

    begun = time.monotonic()
    asyncio.run(refuse_all())
    assert pieces <= (time.monotonic() - begun) * body_limits.DRAIN_PIECES_PER_SECOND + 2 * 20


def test_uploads_of_one_session_beyond_the_limit_are_refused_by_their_heads():
    begun, finish = asyncio.Queue(), asyncio.Event()

    async def application(scope, receive, send):
        begun.put_nowait(scope["path"])
        await finish.wait()
        await send({"type": "http.response.start", "status": 201})

    limit = body_limits.UploadLimit(application, credential)

    async def send_one(session, path="/documents/add/", size=b"9", key=""):
        cookie = f"{settings.SESSION_COOKIE_NAME}={session}".encode()
        headers = [(b"content-length", size), (b"cookie", cookie)]
        headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
        answers = []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            answers.append(message)

        await limit({"type": "http", "method": "PUT", "path": path, "headers": headers}, receive, send)
        return answers[0]

    async def together():
        tasks = [asyncio.create_task(send_one("one")) for _ in range(body_limits.UPLOADS)]
        for _ in tasks:
            await begun.get()
        refused = await send_one("one")
        others = [("another",), ("one", "/documents/add/", b"0"), ("one", "/chat")]
        others += [("one", "/api/documents/a.md", b"9", key) for key in ("first", "second")]
        tasks += [asyncio.create_task(send_one(*each)) for each in others]
        for _ in others:
            await begun.get()
        finish.set()
        return refused, await asyncio.gather(*tasks), await send_one("one")

    refused, answers, later = asyncio.run(asyncio.wait_for(together(), HANG_SECONDS))
    assert (refused["status"], dict(refused["headers"])[b"retry-after"]) == (429, b"10")
    assert {answer["status"] for answer in [*answers, later]} == {201}
    assert not limit._sent
