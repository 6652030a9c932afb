"""Ctrl-C and SIGTERM, noticed from the first line of a command on.

While a command loads they are only noted: the shell may have started it with SIGINT ignored. From `arm` on
they raise KeyboardInterrupt, which ends a command through its `finally` blocks, but not in the middle of an
import, where Python turns it into other errors: then as soon as the import has ended, or a second signal has
come. Long loops call `check`, in case it was swallowed all the same.
"""

import signal
from types import FrameType

AGAIN_SECONDS = 0.02  # between two looks whether an import has ended


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

    def disarm(self) -> None:
        """Only note them again: the command has ended, and a late alarm would kill its process."""
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def check(self) -> None:
        """Raises KeyboardInterrupt if a signal has come."""
        if self._seen:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        repeated = self._seen and number != signal.SIGALRM
        self._seen = True
        if not self._armed:
            return
        if _is_importing(frame) and not repeated:
            signal.signal(signal.SIGALRM, self._note)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


interrupt = Interrupt()
