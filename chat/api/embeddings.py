"""`POST /v1/embeddings`: vectors of the site's embedding model."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar, cast
from weakref import WeakValueDictionary

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.request import Request

from chat.errors import Refused
from chat.limits import (
    SQL,
    ConnectionSlot,
    allowance_of,
    connection_limiter,
    today,
    used_today,
    with_one_more,
)
from chat.protocols import ChatProtocol, OpenAI
from chat.protocols.openai import openai_embeddings
from chat.protocols.openai.openai_embeddings import EmbeddingRequest
from chat.requests import InvalidRequest
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from chatsite.db.threads import in_database_within_budget
from chatsite.event_loops import PerEventLoop
from ingestion.embedding.embedder import BUILT_IN_NAME, Embedder, EmbeddingError, unit
from ingestion.embedding.spaces import active_space, embedder_of

from .api_view import (
    ProtocolView,
    refused,
)

T = TypeVar("T")

SECONDS = 60.0  # time limit for one batch, if the model is on a server
SHORTER = {BUILT_IN_NAME: (64, 128)}  # dimensions to which the built-in model's vectors can be truncated
MINUTE = 60.0
QUEUE_SECONDS = 5.0  # longest wait for the person's earlier requests, and again for a free thread
RETRY_SECONDS = 5
SERVER_REQUESTS = 8  # requests that one process makes to a model's server at once
OF_ONE_PERSON = 2  # concurrent requests of one person, to a server or to a model in this process
BUSY = "The site is busy with other embedding requests. Try again in a few seconds."

# One thread for a model in this process: a request blocks the next one, even after its caller disconnects.
_local = ThreadPoolExecutor(1, thread_name_prefix="embeddings")
# A server may take a minute for a request, so several run at once; OF_ONE_PERSON limits each person's share.
_at_server = ThreadPoolExecutor(SERVER_REQUESTS, thread_name_prefix="embeddings-server")
_turns: PerEventLoop[WeakValueDictionary[int, asyncio.Semaphore]] = PerEventLoop(WeakValueDictionary)


class EmbeddingsView(ProtocolView):
    """`POST /v1/embeddings`.

    Each request counts as one of the day's messages. Requests per minute are limited, too.
    """

    guests_welcome = False
    protocol: ChatProtocol = OpenAI()

    async def post(self, request: HttpRequest) -> HttpResponseBase:
        asked = await self.authenticate(request, self._asked)
        if isinstance(asked, HttpResponseBase):
            return asked
        principal, wanted, model, slot = asked

        def body_of_response() -> bytes:
            vectors = model.embed(wanted.texts, SECONDS)
            if wanted.dimensions:
                vectors = unit(vectors[:, : wanted.dimensions])
            return openai_embeddings.answer(vectors, model.name, as_base64=wanted.as_base64)

        try:
            with slot:
                threads = _at_server if model.is_remote else _local
                body = await _in_turn(body_of_response, threads, principal.user_id)
        except EmbeddingError as error:
            code = "upstream_unavailable" if error.temporary else "upstream_misconfigured"
            seconds = None if error.retry_after is None else int(error.retry_after) + 1
            words = "The embedding model is not responding at the moment."
            return refused(self.protocol, Refused(code, seconds, words))
        except Refused as refusal:
            with suppress(OperationalError, InterfaceError):
                await in_database_within_budget(_give_back, principal)
            return refused(self.protocol, refusal)
        return HttpResponse(body, content_type="application/json")

    def _asked(self, request: Request) -> tuple[Principal, EmbeddingRequest, Embedder, ConnectionSlot]:
        principal = cast(Principal, request.auth)
        slot = connection_limiter.reserve(principal.user_id)
        wanted = openai_embeddings.parse(request.data)
        model = embedder_of(active_space())
        sizes = (*SHORTER.get(model.name, ()), model.dimensions)
        if wanted.dimensions and wanted.dimensions not in sizes:
            allowed = " or ".join(map(str, sizes))
            raise InvalidRequest(
                f"“dimensions” must be {allowed}, which this site's model supports.", "dimensions"
            )
        _count(principal)
        return principal, wanted, model, slot


async def _in_turn(function: Callable[[], T], threads: ThreadPoolExecutor, person: int) -> T:
    """Run `function` in one of `threads`, and return its result.

    Raises Refused after waiting QUEUE_SECONDS for this person's earlier requests, or for a free thread.
    """
    loop, turn = asyncio.get_running_loop(), _turns().setdefault(person, asyncio.Semaphore(OF_ONE_PERSON))
    try:
        async with asyncio.timeout(QUEUE_SECONDS):
            await turn.acquire()
    except TimeoutError:
        raise Refused("rate_limited", RETRY_SECONDS, BUSY) from None

    def release(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(turn.release)

    work = threads.submit(copy_context().run, function)
    work.add_done_callback(release)  # work that has started keeps its turn even if the caller disconnects
    result = asyncio.wrap_future(work)
    try:
        await asyncio.wait({result}, timeout=QUEUE_SECONDS)
        if not result.done() and work.cancel():
            raise Refused("rate_limited", RETRY_SECONDS, BUSY)
        return await result
    except asyncio.CancelledError:
        work.cancel()
        raise


_asked_at: dict[int, deque[float]] = {}  # times of each person's requests in the last minute
_asked_at_lock = threading.Lock()  # requests are counted in database threads


def _count(principal: Principal) -> None:
    """Count the request. If a limit is reached, raises Refused and counts nothing."""
    _count_this_minute(principal.user_id)
    try:
        with transaction.atomic():
            used = used_today(principal)
            allowance = allowance_of(principal)
            with_one_more(allowance.messages if allowance else None, used)
            rows("count_message", {"owner": principal.user_id}, SQL)
    except BaseException:
        _forget_last(principal.user_id)
        raise


def _count_this_minute(person: int) -> None:
    now = time.monotonic()
    with _asked_at_lock:
        for each in [each for each, times in _asked_at.items() if times[-1] < now - MINUTE]:
            del _asked_at[each]
        times = _asked_at.get(person, deque())
        while times and times[0] < now - MINUTE:
            times.popleft()
        if len(times) >= settings.USER_EMBEDDINGS_PER_MINUTE:
            words = (
                f"You have sent {len(times)} embedding requests within a minute. Wait a moment and try again."
            )
            raise Refused("rate_limited", int(times[0] + MINUTE - now) + 1, words)
        times.append(now)
        _asked_at[person] = times  # must not be empty: the loop above reads the last time of each list


def _forget_last(person: int) -> None:
    with _asked_at_lock:
        times = _asked_at.get(person)
        if times is not None:
            times.pop()
            if not times:
                del _asked_at[person]


def _give_back(principal: Principal) -> None:
    """Undo :func:`_count` for a request that was refused before any work was done."""
    _forget_last(principal.user_id)
    rows("take_back_message", {"owner": principal.user_id, "today": today()}, SQL)
