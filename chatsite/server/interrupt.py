"""Handles Ctrl-C and SIGTERM from the first line of a command.

While a command loads, signals are only recorded, even if the shell started the command with SIGINT ignored.
After `arm`, a signal raises KeyboardInterrupt, which ends a command through its `finally` blocks. During an
import, Python would turn the exception into other errors, so it is raised after the import, or at a second
signal. Long loops call `check` in case the exception was swallowed.
"""

import signal
from types import FrameType

AGAIN_SECONDS = 0.02  # pause between two checks of whether the import has ended


class Interrupt:
    """The signals of this process."""

    def __init__(self) -> None:
        self._seen = self._armed = False

    def install(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def arm(self) -> None:
        """Raise KeyboardInterrupt for signals from now on, and at once if a signal was recorded."""
        self._armed = True
        self.check()

    def disarm(self) -> None:
        """Return to only recording signals, and stop the timer.

        After the command, a late signal of the timer would kill the process.
        """
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal was recorded."""
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
