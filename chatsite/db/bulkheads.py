"""Limits on the connections of each view: a locked table stops only the pages that need it.

Requests that wait for a lock keep their connections. Without a limit, the requests of one view would take the
whole pool, and every other page would wait too.

After a view has run into a lock, its requests are refused for a second; then one request probes whether the
lock is gone, while others wait for the result. KNOWN_SECONDS after a request last ran into the lock, the
lock's state is unknown, and requests that arrive together are all admitted.
"""

import threading
import time
from collections import Counter

from django.conf import settings

PROBE_SECONDS = 1.0  # how long requests are refused after a lock, and how long others wait for a probe
# Waiting requests check this often whether a probe has taken longer than PROBE_SECONDS.
POLL_SECONDS = 0.1
# How long a lock is remembered after a request ran into it; by default, longer than LOCK_SECONDS.
KNOWN_SECONDS = 4.0


class Bulkheads:
    """The connections in use by each view.

    Views are identified by any string; the empty string has no limit.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._used: Counter[str] = Counter()
        self._stuck: dict[str, float] = {}  # when a view last ran into a lock
        self._probed: dict[str, float] = {}  # start of the request that probes whether the lock is gone

    def refuses(self, view: str) -> bool:
        """Whether the view ran into a lock a moment ago."""
        return _is_recent(self._stuck, view, PROBE_SECONDS)

    @property
    def delay_requests(self) -> bool:
        """Whether some view ran into a lock during the last KNOWN_SECONDS."""
        return any(_is_recent(self._stuck, view, KNOWN_SECONDS) for view in list(self._stuck))

    def enter(self, view: str, seconds: float) -> bool:
        """Take one of the view's places, waiting up to `seconds`.

        Returns False if none became free, or if the view is refused.
        """
        if not view:
            return True
        deadline = time.monotonic() + seconds
        most = max(1, settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"] // 2)
        with self._changed:
            while not self.refuses(view) and (
                self._used[view] >= most or _is_recent(self._probed, view, PROBE_SECONDS)
            ):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, POLL_SECONDS))
            if self.refuses(view):
                return False
            if _is_recent(self._stuck, view, KNOWN_SECONDS):
                self._probed[view] = time.monotonic()
            self._used[view] += 1
        return True

    def leave(self, view: str, *, stuck: bool | None) -> None:
        """Release a place.

        `stuck` says whether the request's statements ran into a lock; None if that is unknown.
        """
        if not view:
            return
        with self._changed:
            self._used[view] -= 1
            if not self._used[view]:
                del self._used[view]
            self._probed.pop(view, None)
            if stuck:
                self._stuck[view] = time.monotonic()
            elif stuck is False:
                self._stuck.pop(view, None)
            self._changed.notify_all()


def _is_recent(moments: dict[str, float], view: str, seconds: float) -> bool:
    return time.monotonic() < moments.get(view, float("-inf")) + seconds


bulkheads = Bulkheads()
