"""Runs database work of asynchronous code in threads, for a reader.

A run takes minutes, but uses the database for milliseconds. Every call therefore goes through
:func:`in_database` or :func:`in_database_within_budget`, whose thread returns its connection to the pool
before the caller continues, so that an open stream holds none.

PostgreSQL shows documents and passages only to a reader who may read them (row-level security, in addition to
the predicate in each query). The backend (chatsite.db.backend) tells PostgreSQL the reader of each statement:
a user's id, everything, or nobody, which is the default in web processes.

None of the context managers below may enclose a `yield` of an asynchronous generator, because its consumer's
code would run with the changed reader.
"""

import asyncio
import contextvars
import functools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import OperationalError, connection
from django.utils import timezone, translation

from chatsite.event_loops import PerEventLoop

from .availability import (
    breaker,
    sqlstate,
)
from .bulkheads import bulkheads
from .lanes import Lane
from .warm_threads import WarmThreads

P = ParamSpec("P")
T = TypeVar("T")

NOBODY = ""
EVERYTHING = "everything"
# Connection parameters of Django and psycopg, which libpq does not know
DJANGOS = frozenset({"context", "cursor_factory", "prepare_threshold"})
WAIT_SECONDS = 3.0  # longest wait for a thread or a connection; a time budget may shorten it
LOCKED = "A lock delays the database."
BUSY = "All database threads are busy."
ALL = "*"  # name of the lane that all views share; no view has this name
# The least budget of a request that has waited long for a slot (chatsite.http.address_limit): that wait says
# nothing about the database.
MIN_BUDGET_SECONDS = 0.5
MIN_SECONDS = 0.2  # each wait may take this long even if the budget is used up; most statements take less
UNDONE = frozenset({"40001", "40P01"})  # SQLSTATEs of a serialization failure and a deadlock
MARGIN_SECONDS = 2.0  # added to the server's limit, so that the server's own cancellation arrives first


class Budget:
    """The total time that a caller waits for the database.

    This includes waiting for a thread, for a connection, and for statements, but not the request's own work
    between statements. The time that the request `waited` in a queue before it began also counts, but at
    least MIN_BUDGET_SECONDS remain.
    """

    def __init__(self, waited: float = 0.0) -> None:
        self.left = max(MIN_BUDGET_SECONDS, settings.DATABASE_SECONDS - waited)


@dataclass(slots=True)
class _Reader:
    """The reader for whom statements run.

    `request` is the reader of the surrounding request, whose caller becomes known later. `budget` limits the
    wait of callers who should get a refusal instead of a long wait.
    """

    name: str
    request: "_Reader | None" = None
    budget: Budget | None = None
    view: str = ""  # the view that handles a request


_default = _Reader(NOBODY)  # used in every thread of this process unless another one is set
_lanes_of: PerEventLoop[dict[str, Lane]] = PerEventLoop(dict)  # the lanes of each event loop, by view
_reader: ContextVar[_Reader | None] = ContextVar("reader", default=None)


def read_everything_by_default() -> None:
    """Let this process read everything by default: for commands, workers and tests."""
    _default.name = EVERYTHING


def default_reader() -> str:
    """The default reader of the statements of this process."""
    return _default.name


def reader_name() -> str:
    """The current reader for PostgreSQL: the digits of a user's id, EVERYTHING, or NOBODY."""
    return (_reader.get() or _default).name


def statement_seconds() -> float | None:
    """How long a statement may take now before its session is closed.

    The time is what is left of the time budget, but at least MIN_SECONDS; without a budget, it is slightly
    more than the server's limit. None in commands and workers, where only the server limits statements.
    """
    if _default.name:
        return None
    budget = _budget()
    if budget is not None:
        return max(MIN_SECONDS, budget.left)
    return settings.STATEMENT_SECONDS + MARGIN_SECONDS


def connection_seconds() -> float:
    """How long to wait for a connection now."""
    budget = _budget()
    return WAIT_SECONDS if budget is None else max(MIN_SECONDS, min(WAIT_SECONDS, budget.left))


class Waiting:
    """Counts a block as waiting for the database; nested waits count once.

    It is a class and not a generator function, because every statement uses it, and a class takes half as
    many calls.
    """

    __slots__ = ("_budget", "_left", "_started")

    def __enter__(self) -> None:
        self._budget = _budget()
        if self._budget is not None:
            self._left, self._started = self._budget.left, time.monotonic()

    def __exit__(self, *error: object) -> None:
        if self._budget is not None:
            self._budget.left = self._left - (time.monotonic() - self._started)


def _budget() -> Budget | None:
    reader = _reader.get()
    return reader.budget if reader else None


@contextmanager
def reading_as(user_id: int | None) -> Iterator[None]:
    """Let the block read what this person may read; None means nobody.

    Functions in :func:`in_database` and tasks that are created in the block inherit the reader.
    """
    with _reading(NOBODY if user_id is None else str(user_id)):
        yield


@contextmanager
def reading_everything() -> Iterator[None]:
    """Read and write all documents; for a few statements only, whose caller checks permissions."""
    with _reading(EVERYTHING):
        yield


@contextmanager
def reading_for_request(waited: float = 0.0) -> Iterator[None]:
    """Let a request read as nobody until :func:`request_reads_as` sets the caller.

    That function can be called anywhere within the request. `waited` is the number of seconds for which the
    request was queued before.
    """
    request = _Reader(NOBODY, budget=Budget(waited))
    request.request = request
    token = _reader.set(request)
    try:
        yield
    finally:
        _reader.reset(token)


def request_reads_as(user_id: int | None) -> None:
    """Make the caller the request's reader; None means nobody. No effect outside of requests."""
    _set_request(NOBODY if user_id is None else str(user_id))


def request_is_for(view: str) -> None:
    """Set the request's view, whose share of threads and connections is limited."""
    current = _reader.get()
    if current and current.request:
        current.request.view = view


def current_view() -> str:
    """The current request's view; empty outside of requests."""
    current = _reader.get()
    return current.request.view if current and current.request else ""


def request_reads_everything() -> None:
    """Let the rest of an admin page's request read everything, without a time budget."""
    _set_request(EVERYTHING, keep_budget=False)


def request_may_wait() -> None:
    """Lift the time budget of a request that was accepted: its remaining work may wait for the database."""
    current = _reader.get()
    if current and current.request:
        current.request.budget = None


@contextmanager
def time_budget(budget: Budget) -> Iterator[None]:
    """Let all database calls in the block share one time budget.

    This is for callers outside of requests; requests have a budget (:func:`reading_for_request`).
    """
    current = _reader.get()
    token = _reader.set(_Reader(reader_name(), current.request if current else None, budget))
    try:
        yield
    finally:
        _reader.reset(token)


def request_reader() -> str:
    """The reader of the current request; NOBODY outside of requests."""
    current = _reader.get()
    return current.request.name if current and current.request else NOBODY


@contextmanager
def _reading(name: str) -> Iterator[None]:
    current = _reader.get()
    reader = _Reader(name, current.request, current.budget) if current else _Reader(name)
    token = _reader.set(reader)
    try:
        yield
    finally:
        _reader.reset(token)


def _set_request(name: str, *, keep_budget: bool = True) -> None:
    current = _reader.get()
    if current and current.request:
        current.request.name = name
        if not keep_budget:
            current.request.budget = None


@functools.cache
def _threads() -> WarmThreads:
    # Fewer threads than the pool has connections, so that work queues here, in order, and not inside the
    # pool.
    return WarmThreads(settings.DATABASE_THREADS, "database")


def libpq_parameters() -> dict[str, Any]:
    """The libpq parameters for a separate session with the site's database, without a pooler."""
    if settings.DATABASES["default"]["OPTIONS"]["transaction_pooling"]:
        return dict(settings.DATABASE_DIRECT)
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in DJANGOS}


def release_connection() -> None:
    """Return this thread's connection, unless a transaction is open on it.

    An open transaction may be that of a test.
    """
    if not connection.in_atomic_block:
        connection.close()


def _call(reader: _Reader | None, asked: float, function: Callable[[], T]) -> T:
    token = _reader.set(reader)
    if reader is not None and reader.budget is not None:
        reader.budget.left -= time.monotonic() - asked  # minus the time that the call waited for this thread
    try:
        return function()
    except OperationalError as error:
        breaker.record_error(error)
        raise
    finally:
        _reader.reset(token)
        release_connection()


def retry_on_deadlock(function: Callable[P, T]) -> Callable[P, T]:
    """Repeat a one-transaction function once after a deadlock or a serialization failure.

    Within a surrounding transaction, it is not repeated, and the error is raised.
    """

    @functools.wraps(function)
    def twice(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except OperationalError as error:
            if connection.in_atomic_block or sqlstate(error) not in UNDONE:
                raise
        return function(*args, **kwargs)

    return twice


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in a database thread, for the caller's reader, and release its connection.

    Cancelling the caller does not stop a function that a thread has begun.
    """
    return await asyncio.wrap_future(_submit(_reader.get(), time.monotonic(), function, *args, **kwargs))


async def in_database_within_budget(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Like :func:`in_database`, within the caller's time budget.

    Raises OperationalError, without having run anything, if no thread becomes free in time, and at once if
    the breaker is open, if calls wait while the database is unavailable, or if the view has just run into a
    lock.
    """
    if breaker.is_open or (breaker.is_unavailable and _threads().waiting):
        raise OperationalError("The database does not answer at the moment.")
    reader = _reader.get()
    if reader is None or reader.budget is None:  # outside of a request, or its budget was lifted
        reader = _Reader(reader_name(), reader.request if reader else None, Budget())
    assert reader.budget is not None
    asked, view = time.monotonic(), current_view()
    seconds = max(MIN_SECONDS, min(WAIT_SECONDS, reader.budget.left))
    if bulkheads.refuses(view):
        raise OperationalError(LOCKED)
    # Two threads are reserved for runs, which call in_database; one view can use at most half of all threads.
    lanes = _lanes_of()
    if view not in lanes:
        lanes[view] = Lane(max(1, settings.DATABASE_THREADS // 2))
    if ALL not in lanes:
        lanes[ALL] = Lane(max(1, settings.DATABASE_THREADS - 2))
    with ExitStack() as places:
        try:
            for lane in (lanes[view], lanes[ALL]):
                await lane.acquire(max(0.0, asked + seconds - time.monotonic()))
                places.callback(lane.release)
        except TimeoutError:
            raise OperationalError(BUSY) from None
        started = _submit(reader, asked, function, *args, **kwargs)
        result = asyncio.wrap_future(started)
        taken = places.pop_all()
        result.add_done_callback(lambda _: taken.close())  # keep the places until the thread is free again
    await asyncio.wait({result}, timeout=max(0.0, asked + seconds - time.monotonic()))
    if not result.done() and started.cancel():
        raise OperationalError(BUSY)
    return await result


def is_crowded() -> bool:
    """Whether calls wait for a database thread, or requests of this event loop in a lane."""
    return bool(_threads().waiting) or any(lane.waiting for lane in _lanes_of().values())


def _submit(
    reader: _Reader | None, asked: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> "Future[T]":
    """Queue the work with a copy of the caller's context.

    The context contains the trace and the id of the request. Django's language and time zone are not visible
    in other threads, so they are set again in the database thread, where they end with the copy.
    """
    language, zone = translation.get_language(), timezone.get_current_timezone()
    speaks_otherwise = language != settings.LANGUAGE_CODE
    is_elsewhere = zone is not timezone.get_default_timezone()

    def call() -> T:
        if speaks_otherwise:
            translation.activate(language) if language else translation.deactivate_all()
        if is_elsewhere:
            timezone.activate(zone)
        return function(*args, **kwargs)

    call.__name__ = getattr(function, "__name__", "call")  # metrics use this name
    return _threads().submit(contextvars.copy_context().run, _call, reader, asked, call)
