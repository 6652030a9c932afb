"""Limits concurrent work to a number of places, with a queue and an estimate of the wait."""

import asyncio
import time

FIRST_SECONDS = 0.02  # assumed time between two departures, until it is measured
WEIGHT = 0.15  # weight of the newest interval in the moving average
STALL_SHARE = 0.25  # an interval is assumed to be at least this share of the time since the last departure
DECISION_SECONDS = 0.7  # longest wait before an early refusal, which must come within a second


class Departures:
    """Measures how often callers leave a queue, while the queue is not empty."""

    def __init__(self) -> None:
        self.each = FIRST_SECONDS  # average seconds between two departures
        self.since = time.monotonic()  # when the last caller left, or the first one came to an empty queue
        self._is_first = True

    def begin(self) -> None:
        """Record the first arrival in an empty queue."""
        self.since = time.monotonic()
        self._is_first = True

    def note(self) -> None:
        """Record a departure. The first departure only starts the measurement of intervals."""
        now = time.monotonic()
        if not self._is_first:
            self.each += WEIGHT * (now - self.since - self.each)
        self._is_first = False
        self.since = now

    @property
    def stall(self) -> float:
        """Seconds since the last departure, or since the first arrival."""
        return time.monotonic() - self.since

    def wait(self, number: int) -> float:
        """The expected seconds until this many callers have left, one after the other."""
        return number * max(self.each, STALL_SHARE * self.stall)


class Lane:
    """A number of places on one event loop; callers wait in order for a free one."""

    def __init__(self, places: int) -> None:
        self._free = places
        self.waiting: dict[asyncio.Future[None], None] = {}  # an ordered set
        self._departures = Departures()

    async def acquire(self, seconds: float) -> None:
        """Wait for a place.

        Raises TimeoutError after `seconds`, or earlier if the queue is too long.
        """
        if self._free and not self.waiting:
            self._free -= 1
            return
        if not self.waiting:
            self._departures.begin()
        asked = time.monotonic()
        turn = asyncio.get_running_loop().create_future()
        self.waiting[turn] = None
        try:
            await asyncio.wait({turn}, timeout=min(DECISION_SECONDS, seconds))
            left = seconds - (time.monotonic() - asked)
            # If nobody has left the queue meanwhile, the database may be restarting, so keep waiting.
            moves = self._departures.since > asked
            if not turn.done() and not (moves and self._departures.wait(self._position(turn)) > left):
                await asyncio.wait({turn}, timeout=max(0.0, left))
            if not turn.done():
                raise TimeoutError
        except BaseException:
            if turn.done():
                self.release()  # the place was assigned at this very moment
            raise
        finally:
            self.waiting.pop(turn, None)

    def release(self) -> None:
        if self.waiting:
            turn = next(iter(self.waiting))
            del self.waiting[turn]
            turn.set_result(None)
            self._departures.note()
        else:
            self._free += 1

    def _position(self, turn: "asyncio.Future[None]") -> int:
        """The position in the queue, from 1."""
        return next(number for number, other in enumerate(self.waiting, start=1) if other is turn)
