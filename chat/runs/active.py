"""How much of an answer a reader is told at a time.

To one who is behind, texts that follow each other are told as one, with the number of the last: catching up
costs what the text costs, and not what its many pieces did.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings

from chat.engine import AcceptedRun
from chat.events import TERMINAL, ContextReady, Event, MessageDone, TextDelta
from chatsite.accounts.principal import Principal
from chatsite.event_loops import PerEventLoop

Numbered = tuple[int, Event]

MOST_AT_ONCE = 50  # events, each told as it is; who has more to hear is behind
LONGEST = 8_000  # characters of text that are told as one: a line that holds them stays below 64 KB


def in_parts(numbered: Sequence[Numbered], apart: int) -> Iterable[Sequence[Numbered]]:
    """All of them as they are, where they are few; else :func:`joined`."""
    if len(numbered) > MOST_AT_ONCE:
        return joined(numbered, apart)
    return [numbered] if numbered else []


def joined(numbered: Iterable[Numbered], apart: int) -> Iterator[list[Numbered]]:
    """Parts of some thousand characters; what comes up to the number `apart` and what after it stay apart."""
    part: list[Numbered] = []
    pieces: list[str] = []
    number = size = 0

    def end_text() -> None:
        if pieces:
            part.append((number, TextDelta("".join(pieces))))
            pieces.clear()

    for following, event in numbered:
        if isinstance(event, TextDelta):
            pieces.append(event.text)
            size += len(event.text)
        else:
            end_text()
            part.append((following, event))
        number = following
        if size >= LONGEST or number == apart or len(part) >= MOST_AT_ONCE:
            end_text()
            yield part
            part, size = [], 0
    end_text()
    if part:
        yield part


# Held by one of those who are behind at a time, so that everybody else waits for one of them at most.
turn = PerEventLoop(asyncio.Lock)


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


MOMENT = 1.0  # seconds, in which nobody is asked for their right again
STRIDE_SECONDS = 0.2  # between two times that readers are woken for text: each time costs more than a token


@dataclass(eq=False)
class Live:
    """One answer that is being written here."""

    run: AcceptedRun
    events: list[Event] = field(default_factory=list)
    written: int = 0  # how many of the events the journal has
    sources: dict[UUID, int] = field(default_factory=dict)  # how many passages each message is written from
    stopping: bool = False  # at its owner's wish
    withdrawn: bool = False  # because its owner may not read all of its sources any more
    task: asyncio.Task[None] | None = None
    _waiting: "list[asyncio.Future[None]]" = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    _woken: float = 0.0  # when readers were last woken for text, in the loop's time
    _stride: asyncio.TimerHandle | None = None

    def just_begun_by(self, principal: Principal) -> bool:
        """Whether that caller was let in a moment ago to ask this."""
        return principal == self.run.principal and time.monotonic() - self.begun < MOMENT

    def publish(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, TextDelta):
            self._wake_in_strides()
            return
        if isinstance(event, ContextReady):
            message_id = UUID(event.message_id) if event.message_id else self.run.answer_id
            self.sources[message_id] = len(event.sources)
        self.wake()

    async def news(self) -> None:
        """Until something is published, or a second or so has passed."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _wake_in_strides(self) -> None:
        """The first text at once; what follows soon after it waits for the end of the stride."""
        if self._stride is not None or not self._waiting:
            return
        loop = asyncio.get_running_loop()
        if (now := loop.time()) >= self._woken + STRIDE_SECONDS:
            self._woken = now
            self.wake()
        else:
            self._stride = loop.call_at(self._woken + STRIDE_SECONDS, self._end_of_stride)

    def _end_of_stride(self) -> None:
        self._stride = None
        self._woken = asyncio.get_running_loop().time()
        self.wake()

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        if not (self.stopping or self.withdrawn) and self.task:
            self.stopping = True
            self.task.cancel()

    def withdraw(self) -> None:
        if not (self.stopping or self.withdrawn) and self.task:
            self.withdrawn = True
            self.task.cancel()

    def has_ended(self) -> bool:
        return isinstance(self.events[-1], TERMINAL)

    def has_text(self) -> bool:
        return any(isinstance(event, TextDelta) for event in self.events)

    def is_whole(self) -> bool:
        """Whether the model has said all: what comes after it may be missing. Of a team nobody knows."""
        return not self.run.by_team and any(isinstance(event, MessageDone) for event in self.events)
