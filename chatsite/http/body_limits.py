"""Limits on the size and speed of request bodies, applied before Django reads them."""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from http.cookies import CookieError, SimpleCookie
from typing import IO, Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import InterfaceError, OperationalError
from django.http import HttpResponseBase

from chatsite.db.threads import in_database_within_budget
from chatsite.event_loops import PerEventLoop

from . import error_pages
from .asgi_types import Application, Message, Receive, Scope, Send
from .middleware import (
    PORTAL_POLICY,
    identifier_from,
)
from .outgoing.retry_after import SECONDS

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

DRAIN_SECONDS = 1.0
# Limit for all refused bodies together: reading a hundred of them at full speed would delay everybody else.
DRAIN_PIECES_PER_SECOND = 500
MAX_IDLE_THREADS = 16
IDLE_SECONDS = 30.0  # longest pause between two parts of a body
# How many large bodies one account may send to each process at the same time; further ones wait.
LARGE_BODIES = 4
WAIT_SECONDS = 0.8  # longest such wait; short, so that a refusal takes less than a second
# How many uploads one person may send to each process at the same time. More would only wait for each other,
# because storing a file locks the person's quota.
UPLOADS = 6
UPLOAD_PATHS = [re.compile(pattern) for pattern in settings.UPLOAD_PATHS]
UPLOAD_METHODS = frozenset({"POST", "PUT"})  # not PATCH, which only changes metadata
CHARSET = re.compile(rb""";[ \t]*charset=("[^"]*"|[^;]*)""", re.IGNORECASE)
TOO_MANY = (
    "Several of your large requests are still being received. Send this one again when they have arrived."
)
TOO_MANY_UPLOADS = "Many of your files are still being received. Send this one again when they have arrived."
TOO_LARGE = "The request’s body is too large."
TOO_SLOW = "The request’s body did not arrive in time."
ENCODED = "The site does not read compressed bodies. Send it without Content-Encoding."


class BodyTooLarge(Exception):
    """The body is longer than this URL accepts."""


class BodyTooSlow(Exception):
    """The next part of the body did not arrive in time."""


class UploadLimit:
    """Middleware: 429 for an upload if its sender has too many running uploads.

    It reads only the heads of requests, and comes before all middleware that waits or queries the database,
    so that excess uploads are refused at once. `credential(scope)` returns the sender's account, or the
    credential if it has not been verified yet; senders without a session or key are counted by address.
    """

    def __init__(self, application: Application, credential: Callable[[Scope], str]) -> None:
        self.application = application
        self._credential = credential
        self._sent: Counter[str] = Counter()  # running uploads by sender

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = self._caller(scope)
        if not caller:
            await self.application(scope, receive, send)
            return
        if self._sent[caller] >= UPLOADS:
            await refuse(scope, receive, send, 429, TOO_MANY_UPLOADS)
            return
        self._sent[caller] += 1
        try:
            await self.application(scope, receive, send)
        finally:
            self._sent[caller] -= 1
            if not self._sent[caller]:
                del self._sent[caller]

    def _caller(self, scope: Scope) -> str:
        """The sender of an upload; empty for any other request."""
        if not (is_upload(scope) and _has_body(scope)):
            return ""
        client = scope.get("client") or ("",)
        return self._credential(scope) or str(client[0])


class BodyLimit:
    """Middleware: 413 for a body over the limit, 408 if it stalls, and 415 if it is compressed.

    The limit applies to the declared length and to the received bytes. Other responses are 507 if the disk is
    full, 503 if the database cannot identify the caller, on whom the limit depends, and 429 if a caller sends
    too many large bodies at the same time: each one is spooled to a file until it is complete, and copied
    again when it is stored.

    `known_caller(scope, guests)` returns the id of the account that sent the request, or an empty string;
    `guests` says whether guests count.
    """

    def __init__(self, application: Application, known_caller: Callable[[Scope, bool], str]) -> None:
        self.application = application
        self._known_caller = known_caller
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # by caller
        self.large = [
            (re.compile(pattern), kind, limit)
            for patterns, kind, limit in (
                (settings.ATTACHMENT_PATHS, b"multipart/form-data", settings.ATTACHMENT_BODY_LIMIT),
                (settings.IMAGE_PATHS, b"application/json", settings.ATTACHMENT_BODY_LIMIT),
            )
            if settings.CHAT_MODEL_READS_IMAGES or patterns != settings.IMAGE_PATHS
            for pattern in patterns
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self.application(scope, receive, send)
            return
        try:
            limit, caller = await self._limit(scope)
        except (OperationalError, InterfaceError):
            await refuse(scope, receive, send, 503, error_pages.WORDS[503])
            return
        if refusal := _refusal(scope, limit):
            await refuse(scope, receive, send, *refusal)
            return
        slot = self._slots.setdefault(caller, asyncio.Semaphore(LARGE_BODIES)) if caller else None
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                if slot:
                    await slot.acquire()
        except TimeoutError:
            await refuse(scope, receive, send, 429, TOO_MANY)
            return
        counted = _CountedBody(receive, send, limit, slot, until_answered=is_upload(scope))
        try:
            await self.application(scope, counted.receive, counted.send)
        except BodyTooLarge:
            if not counted.answering:
                await refuse(scope, receive, send, 413, TOO_LARGE)
        except BodyTooSlow:
            if not counted.answering:
                await refuse(scope, receive, send, 408, TOO_SLOW)
        except OSError as error:  # a long body is spooled to a file until it is complete
            if counted.answering or error.errno not in error_pages.DISK_FULL:
                raise
            logger.error("There is no space for a request's body in the temporary folder")
            await refuse(scope, receive, send, 507, error_pages.WORDS[507])
        finally:
            counted.release()

    async def _limit(self, scope: Scope) -> tuple[int, str]:
        """The limit in bytes, and the sender of a body that may be large.

        Only known callers may send a large body: others could fill the disk before they are refused.
        """
        small: int = settings.BODY_LIMIT
        kind = (header(scope, b"content-type") or b"").lower()
        fitting = (
            limit
            for path, wanted, limit in self.large
            if path.search(scope["path"]) and kind.startswith(wanted)
        )
        large: int = settings.UPLOAD_BODY_LIMIT if is_upload(scope) else next(fitting, small)
        if large == small or 0 <= _declared_length(scope) <= small:
            return small, ""
        # Bodies up to ATTACHMENT_BODY_LIMIT are questions with images, which guests may send too.
        guests = large <= settings.ATTACHMENT_BODY_LIMIT
        caller: str = await in_database_within_budget(self._known_caller, scope, guests)
        return large if caller else small, caller


def is_upload(scope: Scope) -> bool:
    """Whether a request may upload a document."""
    return any(path.search(scope["path"]) for path in UPLOAD_PATHS) and scope["method"] in UPLOAD_METHODS


class _CountedBody:
    """Wraps `receive` and `send` of one request.

    It counts the body's bytes and notices the start of the response. The caller's slot for a large body is
    released when the body is complete or the response starts; with `until_answered`, only when the response
    starts.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        limit: int,
        slot: asyncio.Semaphore | None = None,
        *,
        until_answered: bool = False,
    ) -> None:
        self._receive, self._send, self._left, self._slot = receive, send, limit, slot
        self._until_answered = until_answered
        self.answering = False
        self._whole = False

    async def receive(self) -> Message:
        message = await self._next()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise BodyTooLarge
        return message

    async def _next(self) -> Message:
        if self._whole:  # after the body, `receive` waits for the disconnect
            return await self._receive()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow from None
        self._whole = not message.get("more_body", False)
        if self._whole and not self._until_answered:
            self.release()
        return message

    def release(self) -> None:
        """Release the caller's slot for another large body."""
        slot, self._slot = self._slot, None
        if slot:
            slot.release()

    async def send(self, message: Message) -> None:
        self.answering = True
        self.release()
        await self._send(message)


class RequestThread(ThreadPoolExecutor):
    """The thread that runs a request's synchronous code.

    The thread also closes the response that was sent. If none of the request's code ran in the thread,
    nothing was opened there; `submit` then closes the response on the event loop, which takes less time than
    waking a thread.
    """

    def __init__(self) -> None:
        super().__init__(1, thread_name_prefix="request")
        self.is_used = self.is_sent = False

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        if self.is_used or not self.is_sent:
            self.is_used = True
            return super().submit(function, *args, **kwargs)
        closed: Future[T] = Future()
        try:
            closed.set_result(function(*args, **kwargs))
        except Exception as error:
            closed.set_exception(error)
        return closed


_thread: ContextVar[RequestThread] = ContextVar("thread")


class LengthHandler(ASGIHandler):
    """Django's handler, extended: it sets the length of a chunked body, and reuses threads.

    Without Content-Length, Django's form parser and Django REST framework would treat a body as empty.

    The thread that runs a request's synchronous code is reused. Otherwise, Django would start one thread for
    each request, and a second one to wait for the end of the first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._idle: list[RequestThread] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        thread = self._idle.pop() if self._idle else RequestThread()
        thread.is_used = thread.is_sent = ended = False
        _thread.set(thread)
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)
            ended = True
        finally:
            if ended and len(self._idle) < MAX_IDLE_THREADS:
                self._idle.append(thread)
            else:  # enough threads are idle, or this one may still run code of a cancelled request
                thread.shutdown(wait=False)

    async def send_response(self, response: HttpResponseBase, send: Any) -> None:
        await super().send_response(response, send)
        _thread.get().is_sent = True

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        if _has_body(scope) and _declared_length(scope) < 0:
            length = body_file.seek(0, 2)
            body_file.seek(0)
            headers = [(name, value) for name, value in scope["headers"] if name != b"transfer-encoding"]
            scope = {**scope, "headers": [*headers, (b"content-length", str(length).encode())]}
        kind = header(scope, b"content-type") or b""
        if kind.lower().startswith(b"multipart/") and (charset := CHARSET.search(kind)):
            # Remove the charset of a form: its parts are UTF-8. Django would look up the charset among all
            # codecs, and some of these, such as zlib, raise unexpected errors.
            plain = kind[: charset.start()] + kind[charset.end() :]
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-type"]
            scope = {**scope, "headers": [*headers, (b"content-type", plain)]}
        return super().create_request(scope, body_file)


def header(scope: Mapping[str, Any], wanted: bytes) -> bytes | None:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return next((value for name, value in headers if name.lower() == wanted), None)


def _has_body(scope: Mapping[str, Any]) -> bool:
    return (
        header(scope, b"content-length") not in {None, b"0"}
        or header(scope, b"transfer-encoding") is not None
    )


def _declared_length(scope: Mapping[str, Any]) -> int:
    """Content-Length, or -1 if it is missing or invalid, or the body is chunked."""
    value = header(scope, b"content-length")
    if value is None or header(scope, b"transfer-encoding") is not None or not value.isdigit():
        return -1
    return int(value)


def _refusal(scope: Scope, limit: int) -> tuple[int, str] | None:
    """The status and words with which a body is refused because of its head; None if it may be read."""
    if (header(scope, b"content-encoding") or b"identity").strip().lower() != b"identity":
        return 415, ENCODED
    return (413, TOO_LARGE) if _declared_length(scope) > limit else None


def session_key(scope: Mapping[str, Any]) -> str:
    """The session key in the session cookie; empty without such a cookie."""
    cookies = SimpleCookie()
    try:
        cookies.load((header(scope, b"cookie") or b"").decode("latin-1"))
    except CookieError:
        return ""
    found = cookies.get(settings.SESSION_COOKIE_NAME)
    return found.value if found else ""


async def refuse(scope: Scope, receive: Receive, send: Send, status: int, words: str) -> None:
    """Send the refusal, then keep reading for a moment.

    Some clients read the response only after they have sent everything.
    """
    identifier = identifier_from((header(scope, b"x-request-id") or b"").decode("latin-1"))
    headers = [
        (b"x-request-id", identifier.encode()),
        (b"content-security-policy", PORTAL_POLICY.encode()),
        (b"connection", b"close"),
    ]
    if status in SECONDS:
        headers.append((b"retry-after", b"%d" % SECONDS[status]))
    start, body = error_pages.messages(scope["path"], status, words, headers)
    await send(start)
    await send({**body, "more_body": True})
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                await _drain_pace().wait()
    except TimeoutError:
        pass
    await send({"type": "http.response.body", "body": b""})


class _Pace:
    """Limits all refused bodies of an event loop together to DRAIN_PIECES_PER_SECOND."""

    def __init__(self) -> None:
        self._next = 0.0

    async def wait(self) -> None:
        now = time.monotonic()
        self._next = max(now, self._next) + 1 / DRAIN_PIECES_PER_SECOND
        await asyncio.sleep(self._next - now)


_drain_pace = PerEventLoop(_Pace)
