"""The portal's WebSocket: one conversation of the signed-in person.

Messages from the page are `ask` (text, key), `follow` (run, after), `stop` (run), and `wait` (first), which
waits for a question from another page, at position `first` of the conversation or later. `ask` may have the
position of the last answer that the page shows (`seen`), and a scope for the search (`scope`).

Messages to the page are `accepted`, `refused`, `asked` (a question was asked elsewhere; if its answer is not
finished, its frames follow), `branched` (another branch was chosen elsewhere), and the frames of
chat.portal.frames, the last of which has `done`. While a followed run has no news, an empty frame every few
seconds shows the page that the socket is alive. Closing the socket does not stop the answer; the next socket
continues after the last event that the page has received.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Coroutine
from contextlib import ExitStack, aclosing, suppress
from typing import Any
from uuid import UUID, uuid4

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext

from chat import runs
from chat.engine import AcceptedRun
from chat.errors import (
    Refused,
    database_away,
    storage_full,
)
from chat.limits import connection_limiter, message_pace, message_turns
from chat.requests import Options, RunRequest, is_scope
from chatsite.accounts.api.authentication import note_session
from chatsite.accounts.principal import (
    Principal,
    principal_of,
    still_valid,
)
from chatsite.accounts.sessions import kept_alive
from chatsite.db.availability import is_disk_full
from chatsite.db.retry import retry_until_available
from chatsite.db.threads import (
    Budget,
    in_database,
    in_database_within_budget,
    reading_as,
    time_budget,
)
from chatsite.http.overload import backlog
from history.models import Conversation

from .frames import (
    SocketFrames,
    new_turn,
    newer_turns,
    place_of_run,
)
from .starters import key_of

logger = logging.getLogger(__name__)

Json = dict[str, Any]

CLOSED_UNKNOWN = 4404  # the same code if not signed in, for a missing conversation, and for another person's
CLOSED_FLOOD = 4429  # too many messages, or too many open pages and streams of one person
CLOSED_INVALID = 4400
CLOSED_BINARY = 1003
CLOSED_TOO_LARGE = 1009
CLOSED_ERROR = 1011
CLOSED_RESTART = 1012  # this process is shutting down, and the page should reconnect
MAX_CHARACTERS = 250_000  # characters of a message: the longest question with each character escaped
MAX_MESSAGES = 30  # messages within PERIOD
PERIOD = 10.0  # seconds
SILENT_LOOKS = 3  # after this many checks without news (one per second), an empty frame is sent


class ConversationConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One open page. Follows at most one run at a time, or waits for the next."""

    principal: Principal
    conversation_id: UUID
    turn: asyncio.Semaphore
    reader: asyncio.Task[None] | None = None
    following: UUID | None = None
    ending: asyncio.Task[None] | None = None
    closed = False

    async def __call__(self, scope: Json, receive: Any, send: Any) -> None:
        """Handle the socket until it is closed, with the rights of the person who opened it."""
        with reading_as(getattr(scope.get("user"), "pk", None)), ExitStack() as self.held:
            await super().__call__(scope, receive, send)

    async def connect(self) -> None:
        self.received: deque[float] = deque(maxlen=MAX_MESSAGES)
        self.conversation_id = self.scope["url_route"]["kwargs"]["conversation_id"]
        user, session = self.scope.get("user"), self.scope.get("session")
        if user is None or not user.is_authenticated or session is None:
            await self.close(CLOSED_UNKNOWN)
            return
        note_session(session.session_key, user.pk)
        self.principal = principal_of(user, session.session_key)
        if not await self._reserve_slot():
            return
        self.turn = message_turns(self.principal.user_id)
        with time_budget(self.scope.get("budget") or Budget()):
            may_open = await in_database_within_budget(_may_open, self.principal, self.conversation_id)
        if not may_open:
            await self.close(CLOSED_UNKNOWN)
            return
        self.held.enter_context(runs.access_revalidator().watch(self.principal, self._signed_out))
        await self.accept()

    async def _reserve_slot(self) -> bool:
        """Reserve a connection for this page; if none is free, close the socket and return False."""
        if connection_limiter.closing:
            await self.close(CLOSED_RESTART)
            return False
        try:
            slot = connection_limiter.reserve(self.principal.user_id, self._ask_to_reconnect)
        except Refused:
            # Accept first, because browsers hide the close code of a socket that was never accepted.
            await self.accept()
            await self.close(CLOSED_FLOOD)
            return False
        self.held.enter_context(slot)
        return True

    def _ask_to_reconnect(self) -> None:
        """Close the socket, so that the page reconnects to another process.

        If this process writes the answer that the page follows, the socket stays open until the answer ends.
        """
        if self.following is None or not runs.is_written_here(self.following):
            self.ending = asyncio.create_task(self.close(CLOSED_RESTART))

    def _signed_out(self, end: Exception) -> None:
        """Close the socket when the session or account is revoked, even while idle.

        A database outage alone does not close it.
        """
        if isinstance(end, Refused):
            self.ending = asyncio.create_task(self.close(CLOSED_UNKNOWN))

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        """Close the socket only once; further messages from the page are ignored."""
        if not self.closed:
            self.closed = True
            await super().close(code, reason)

    async def disconnect(self, code: int) -> None:
        await self._stop_following()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        message = None if self.closed else await self._read(text_data)
        if message is None:
            return
        if connection_limiter.closing and message.get("type") != "stop":
            await self.close(CLOSED_RESTART)
            return
        try:
            async with self.turn:
                await self._act(message)
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database was unavailable for a message of a page", exc_info=True)
            # A refused question remains in the page's box. For any other message, close the socket, so that
            # the page reconnects and repeats the message.
            if message.get("type") != "ask":
                await self.close(CLOSED_ERROR)
                return
            refusal = storage_full() if is_disk_full(error) else database_away()
            words = {"code": refusal.code, "message": gettext(refusal.message)}
            await self._send_message({"type": "refused", "key": message.get("key"), **words})

    async def _act(self, message: Json) -> None:
        budget = Budget()
        with time_budget(budget):
            may_open = await in_database_within_budget(_may_open, self.principal, self.conversation_id)
        if not may_open:
            await self.close(CLOSED_UNKNOWN)
            return
        match message.get("type"):
            case "ask":
                await self._ask(message, budget)
            case "follow":
                await self._follow(_uuid(message.get("run")), _whole(message.get("after")))
            case "wait":
                await self._stop_following()
                self._start_reader(self._wait(_whole(message.get("first"))))
            case "stop":
                await self._stop(_uuid(message.get("run")))
            case str():
                pass  # from a page of another version, during a rolling upgrade
            case _:
                await self.close(CLOSED_INVALID)

    async def _read(self, text: str | None) -> Json | None:
        """The parsed message; if it is invalid or one too many, closes the socket and returns None."""
        now = time.monotonic()
        if len(self.received) == MAX_MESSAGES and now - self.received[0] < PERIOD:
            await self.close(CLOSED_FLOOD)
            return None
        self.received.append(now)
        delay = message_pace.delay(self.principal.user_id, now)
        if delay is None:
            await self.close(CLOSED_FLOOD)
            return None
        if delay:
            await asyncio.sleep(delay)
        if text is None:
            await self.close(CLOSED_BINARY)
            return None
        if len(text) > MAX_CHARACTERS:
            await self.close(CLOSED_TOO_LARGE)
            return None
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            await self.close(CLOSED_INVALID)
            return None
        return message

    async def _ask(self, message: Json, budget: Budget) -> None:
        key, text = key_of(message.get("key")), message.get("text")
        if key is None or not isinstance(text, str):
            await self.close(CLOSED_INVALID)
            return
        seen = _whole(message["seen"]) if "seen" in message else None
        scope = message.get("scope")
        options = Options(scope=scope if isinstance(scope, str) and is_scope(scope) else "")
        asked = RunRequest(text, self.conversation_id, options=options, seen=seen)
        try:
            if backlog().is_full:
                raise Refused("busy")
            accepted = await self._begin(asked, key, budget)
        except Refused as refused:
            words = {"code": refused.code, "message": gettext(refused.message)}
            await self._send_message({"type": "refused", "key": key, **words})
            return
        runs.start(accepted)
        html = await in_database(new_turn, self.principal, accepted.run_id)
        left = accepted.allowance.words if accepted.allowance else ""
        self.scope["session"] = await in_database(kept_alive, self.scope["session"])
        run = str(accepted.run_id)
        await self._send_message({"type": "accepted", "key": key, "run": run, "html": html, "left": left})
        await self._follow(accepted.run_id, 0)

    async def _begin(self, asked: RunRequest, key: str, budget: Budget) -> AcceptedRun:
        """Start a run. Retry if the previous run is only waiting for follow-up questions."""
        try:
            with time_budget(budget):
                return await in_database_within_budget(
                    runs.begin, self.principal, asked, idempotency_key=key, request_id=uuid4().hex
                )
        except Refused as refused:
            if refused.code != "generation_in_progress" or not await runs.stop_followups(
                self.principal, self.conversation_id
            ):
                raise
        return await in_database(
            runs.begin, self.principal, asked, idempotency_key=key, request_id=uuid4().hex
        )

    async def _stop(self, run_id: UUID | None) -> None:
        if run_id is None:
            return
        try:
            await runs.stop(self.principal, run_id)
        except Refused as refused:
            await self._send_message(
                {"type": "refused", "code": refused.code, "message": gettext(refused.message)}
            )

    async def _follow(self, run_id: UUID | None, after: int) -> None:
        await self._stop_following()
        place = None
        if run_id is not None:
            place = await in_database(place_of_run, self.principal, self.conversation_id, run_id)
        if run_id is None or place is None:
            unknown = Refused("answer_not_found")
            await self._send_message(
                {"type": "refused", "code": unknown.code, "message": gettext(unknown.message)}
            )
            return
        self._start_reader(self._read_run(run_id, place, after))

    def _start_reader(self, reading: Coroutine[Any, Any, None]) -> None:
        self.reader = asyncio.create_task(self._read_or_close(reading))

    async def _read_or_close(self, reading: Coroutine[Any, Any, None]) -> None:
        """Follow a run, or wait for one; on failure, close the socket.

        The page reconnects unless access was revoked.
        """
        try:
            await reading
        except Refused:
            await self.close(CLOSED_UNKNOWN)
        except Exception:
            logger.exception("The run that a page follows could not be read")
            await self.close(CLOSED_ERROR)
        self.following = None
        if connection_limiter.closing:
            await self.close(CLOSED_RESTART)

    async def _wait(self, first: int) -> None:
        """Wait until another page asks a question; send the question and follow its answer.

        If another branch was chosen elsewhere, send `branched` instead.
        """
        with runs.hub().waiting(self.conversation_id) as waiter:
            while (found := await self._asked_in_turn(first)) is None:
                await waiter.comes()
        run_id, html = found
        if html is None:
            await self._send_message({"type": "branched"})
            return
        await self._send_message({"type": "asked", "run": str(run_id or "") or None, "html": html})
        place = (
            await retry_until_available(place_of_run, self.principal, self.conversation_id, run_id)
            if run_id
            else None
        )
        if run_id and place is not None:
            await self._read_run(run_id, place, 0)

    async def _asked_in_turn(self, first: int) -> tuple[UUID | None, str | None] | None:
        async with self.turn:
            return await retry_until_available(self._newer_turns, first)

    def _newer_turns(self, first: int) -> tuple[UUID | None, str | None] | None:
        if not still_valid(self.principal):
            return None
        return newer_turns(self.principal, self.conversation_id, first)

    async def _stop_following(self) -> None:
        reader, self.reader, self.following = self.reader, None, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read_run(self, run_id: UUID, place: int, after: int) -> None:
        """Send a run to the page: a frame with all that the page lacks, then events as they arrive.

        A page that reads slowly does not delay the answer. Raises Refused.
        """
        frames = SocketFrames(self.principal, self.conversation_id, place, after)
        self.following, silent = run_id, 0
        watched = runs.watch(self.principal, run_id, boundary=after, withhold_names=False)
        async with aclosing(watched) as stream:
            async for part in stream:
                silent = 0 if part else silent + 1
                if part:
                    for frame in await frames.encode(part):
                        await self._send_message(frame)
                elif silent % SILENT_LOOKS == 0:
                    await self._send_message({"messages": []})
        for frame in await frames.end():
            await self._send_message(frame)

    async def _send_message(self, message: Json) -> None:
        # The server raises these if the page is gone; `disconnect` is called next.
        with suppress(OSError, RuntimeError):
            await self.send(text_data=json.dumps(message, ensure_ascii=False, separators=(",", ":")))


def _may_open(principal: Principal, conversation_id: UUID) -> bool:
    mine = Conversation.objects.owned_by(principal).filter(pk=conversation_id)
    return still_valid(principal) and mine.exists()


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1_000_000_000 else 0
