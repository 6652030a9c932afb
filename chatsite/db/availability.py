"""Interprets database errors, and tracks whether the database is available to this process.

It takes seconds to notice that a server hangs, so the first request that times out opens the breaker: until
the database answers again, one request per second probes it, and the others are refused at once. If other
queries succeeded meanwhile, the database is up and merely busy, so the breaker stays closed.

A server whose disk is full refuses writes at once, but may still store a question and then refuse its answer.
After each disk-full error, new questions are therefore refused for a moment.
"""

import time

import psycopg
from django.db import InterfaceError, OperationalError

from chatsite import metrics

DISK_FULL = "53100"  # SQLSTATE: the server's disk is full
# SQLSTATE prefixes: connection failure, shutdown, too many connections, lock not available.
UNAVAILABLE = ("08", "57P", "53300", "55P03")
PROBE_SECONDS = 1.0
QUIET_SECONDS = 1.0  # a database that is up has answered some query within this time
FULL_SECONDS = 1.5  # how long the disk counts as full after an error
EPISODE_SECONDS = 10.0  # after this time without disk-full errors, the next one starts a new series
OPERATIONAL = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


def sqlstate(error: BaseException) -> str:
    """The SQLSTATE of an error or of an error that it wraps; empty if it arose in the client."""
    wrapped: BaseException | None = error
    while wrapped is not None:
        if state := getattr(wrapped, "sqlstate", None):
            return str(state)
        wrapped = wrapped.__cause__
    return ""


def operational_error(error: BaseException) -> BaseException | None:
    """The database's operational error: this error or one that it wraps; None for others.

    Errors of the job queue wrap those of the database.
    """
    wrapped: BaseException | None = error
    while wrapped is not None and not isinstance(wrapped, OPERATIONAL):
        wrapped = wrapped.__cause__
    return wrapped


def is_disk_full(error: BaseException) -> bool:
    return sqlstate(error) == DISK_FULL


def first_line(error: BaseException) -> str:
    """The first line of an error's message. The driver puts no password into it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].strip()


def unavailability(error: BaseException) -> str:
    """Why the database was unavailable or full, in one line; empty for any other error.

    Callers show any other error with its traceback, because a statement may have caused it.
    """
    state, wrapped = sqlstate(error), operational_error(error)
    if wrapped is None or (state and state != DISK_FULL and not state.startswith(UNAVAILABLE)):
        return ""
    return first_line(wrapped)


class DatabaseBreaker:
    """What this process knows about the database's availability. Thread-safe."""

    def __init__(self) -> None:
        self.is_unavailable = False
        self._timed_out_at = self._succeeded_at = self._probed_at = self._full_at = float("-inf")
        self.full_since = float("inf")  # monotonic clock: when the current series of disk-full errors began

    def record_timeout(self) -> None:
        """Record that waiting for a connection or a statement timed out.

        If another statement was answered a moment ago, the database is up and merely busy, so the breaker
        stays closed: a short wait alone proves nothing.
        """
        now = time.monotonic()
        if now - self._succeeded_at >= QUIET_SECONDS:
            self.is_unavailable, self._timed_out_at = True, now

    def record_connection(self) -> None:
        """Record that a session was obtained. Closes the breaker, but does not count as a response."""
        self.is_unavailable = False

    def record_success(self) -> None:
        """Record that the server responded to a statement, even with an error."""
        self.is_unavailable, self._succeeded_at = False, time.monotonic()

    def record_error(self, error: BaseException) -> None:
        """Record an operational error; only errors about a full disk have an effect."""
        if is_disk_full(error):
            now = time.monotonic()
            if now - self._full_at > EPISODE_SECONDS:
                self.full_since = now
            self._full_at = now

    def allows_probe(self) -> bool:
        """Whether to try the database: always while it is available, otherwise once a second."""
        if not self.is_unavailable:
            return True
        now = time.monotonic()
        if now < self._probed_at + PROBE_SECONDS:
            return False
        self._probed_at = now
        return True

    @property
    def is_open(self) -> bool:
        """Whether the database is unavailable and a probe began within the last PROBE_SECONDS."""
        return self.is_unavailable and time.monotonic() < self._probed_at + PROBE_SECONDS

    def timed_out_within(self, seconds: float) -> bool:
        """Whether the database was found to be unavailable in the last `seconds`."""
        return time.monotonic() - self._timed_out_at < seconds

    @property
    def is_full(self) -> bool:
        """Whether the disk was full a moment ago."""
        return time.monotonic() - self._full_at < FULL_SECONDS


breaker = DatabaseBreaker()
metrics.BREAKERS_OPEN.read_from(lambda: {("database",): float(breaker.is_unavailable)})
