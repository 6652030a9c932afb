"""How many answers this process writes; more than a number of them would starve each other."""

from django.conf import settings


class Room:
    """Counted on the event loop; looked at from any thread."""

    def __init__(self) -> None:
        self._taken = 0

    def enter(self) -> None:
        self._taken += 1

    def leave(self) -> None:
        self._taken -= 1

    @property
    def full(self) -> bool:
        return self._taken >= settings.PROCESS_ANSWERS


room = Room()
