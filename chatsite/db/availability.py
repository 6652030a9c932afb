"""Whether the database is to be had: what its errors say of that, and what this process knows of it now.

A server that hangs is noticed by waiting, which costs seconds. Who has waited in vain tells the others: until
the database has answered somebody, one of them a second finds out whether it does, and the rest are refused
at once. Who waited while others were answered met with much work, or a long statement, and tells nothing.
A server whose disk is full refuses at once by itself, but may take a question before it refuses its
answer: so new questions are not taken for a moment after each such refusal.
"""

import time

import psycopg
from django.db import InterfaceError, OperationalError

NO_ROOM = "53100"  # SQLSTATE: the server's disk is full
# How those begin that say: no connection, shut down, no connection to spare, a lock that somebody else keeps.
AWAY = ("08", "57P", "53300", "55P03")
PROBE_SECONDS = 1.0
QUIET_SECONDS = 1.0  # in which a database that is there has answered somebody
FULL_SECONDS = 1.5
EPISODE_SECONDS = 10.0  # without an error, after which the next one is a new beginning
OPERATIONAL = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)


def sqlstate(error: BaseException) -> str:
    """PostgreSQL’s code, also of a wrapped error; nothing where the client found the fault."""
    wrapped: BaseException | None = error
    while wrapped is not None:
        if state := getattr(wrapped, "sqlstate", None):
            return str(state)
        wrapped = wrapped.__cause__
    return ""


def has_no_room(error: BaseException) -> bool:
    return sqlstate(error) == NO_ROOM


def first_line(error: BaseException) -> str:
    """Of a driver's message, which holds no password."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].strip()


def why_absent(error: BaseException) -> str:
    """In one line why the database was not to be had, or had no room; nothing where it is another error.

    What remains is the fault of a statement, and worth a traceback.
    """
    state = sqlstate(error)
    wrapped: BaseException | None = error
    while wrapped is not None and not isinstance(wrapped, OPERATIONAL):
        wrapped = wrapped.__cause__
    if wrapped is None or (state and state != NO_ROOM and not state.startswith(AWAY)):
        return ""
    return first_line(wrapped)


class Absence:
    """What this process knows. Told and asked from any thread."""

    def __init__(self) -> None:
        self.missing = False
        self._missed = self._met = self._probed = self._full = float("-inf")
        self.full_since = float("inf")  # of the monotonic clock: when the disk was first found full, of late

    def missed(self, seconds: float = 0) -> None:
        """Somebody has waited so long for the database in vain.

        Where others were answered meanwhile it is there, and has much to do, or one statement takes long.
        """
        now = time.monotonic()
        if now - self._met >= min(seconds, QUIET_SECONDS):
            self.missing, self._missed = True, now

    def found(self) -> None:
        """A session is there, which may have answered a moment ago for the last time."""
        self.missing = False

    def met(self) -> None:
        """It has answered."""
        self.missing, self._met = False, time.monotonic()

    def failed(self, error: BaseException) -> None:
        """It has answered with an error."""
        if has_no_room(error):
            now = time.monotonic()
            if now - self._full > EPISODE_SECONDS:
                self.full_since = now
            self._full = now

    def lets_ask(self) -> bool:
        """Whether it is worth trying; while the database is missing, once in a second."""
        if not self.missing:
            return True
        now = time.monotonic()
        if now < self._probed + PROBE_SECONDS:
            return False
        self._probed = now
        return True

    @property
    def hopeless(self) -> bool:
        """Whether it is missing, and somebody is finding out just now whether it is back."""
        return self.missing and time.monotonic() < self._probed + PROBE_SECONDS

    def within(self, seconds: float) -> bool:
        """Whether the database was missed in that time."""
        return time.monotonic() - self._missed < seconds

    @property
    def full(self) -> bool:
        """Whether it had no room a moment ago."""
        return time.monotonic() - self._full < FULL_SECONDS


absence = Absence()
