"""A share of the connections for each view, so that a blocked table stops only the pages that need it.

Requests that wait for a lock keep their connections. Without a limit the requests of one view would take all
of the pool, and every other page would wait too. A view that ran into a lock is refused at once, but for one
request a second that finds out whether the lock is gone. Where nobody has asked for a while, nothing is
known of the lock any more, and those that come together are let in.
"""

import threading
import time
from collections import Counter

from django.conf import settings

PROBE_SECONDS = 1.0
KNOWN_SECONDS = 4.0  # for which a lock is remembered that nobody meets again: longer than one is waited for


class Bulkheads:
    """Connections in use by view. A view is any name; the empty one has no limit."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._used: Counter[str] = Counter()
        self._probed: dict[str, float] = {}  # when, of views that ran into a lock

    def refuses(self, view: str) -> bool:
        """Whether the view ran into a lock, and somebody is finding out just now whether it is gone."""
        return time.monotonic() < self._probed.get(view, float("-inf")) + PROBE_SECONDS

    def enter(self, view: str, seconds: float) -> bool:
        """Take a place, waiting so long for one; whether there was any."""
        if not view:
            return True
        deadline = time.monotonic() + seconds
        most = max(1, settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"] // 2)
        with self._changed:
            while self._used[view] >= most and not self.refuses(view):
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    return False
            if self.refuses(view):
                return False
            if time.monotonic() < self._probed.pop(view, float("-inf")) + KNOWN_SECONDS:
                self._probed[view] = time.monotonic()
            self._used[view] += 1
        return True

    def leave(self, view: str, *, stuck: bool) -> None:
        """Give a place back; `stuck` where its statements ran into a lock."""
        if not view:
            return
        with self._changed:
            self._used[view] -= 1
            if not self._used[view]:
                del self._used[view]
            if stuck:
                self._probed[view] = time.monotonic()
            else:
                self._probed.pop(view, None)
            self._changed.notify_all()


bulkheads = Bulkheads()
