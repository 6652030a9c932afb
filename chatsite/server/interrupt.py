"""Ctrl-C and SIGTERM, noticed from the first line of a command on.

While a command loads they are only noted: the shell may have started it with SIGINT ignored, and an exception
in the middle of an import ends in a traceback or is swallowed. From `arm` on they raise KeyboardInterrupt,
which ends a command through its `finally` blocks; long loops call `check`, in case that was swallowed too.
"""

import signal
from types import FrameType


class Interrupt:
    """The signals of this process."""

    def __init__(self) -> None:
        self._seen = self._armed = False

    def install(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def arm(self) -> None:
        """Raise KeyboardInterrupt from now on; at once for a signal that came earlier."""
        self._armed = True
        self.check()

    def check(self) -> None:
        """Raises KeyboardInterrupt if a signal has come."""
        if self._seen:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._seen = True
        if self._armed:
            raise KeyboardInterrupt


interrupt = Interrupt()
