"""How much of an answer a reader is told at a time.

To one who is behind, texts that follow each other are told as one, with the number of the last: catching up
costs what the text costs, and not what its many pieces did.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

from chat.events import Event, TextDelta

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


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def turn() -> asyncio.Lock:
    """Held by one of those who are behind at a time, so that everybody else waits for one of them at most."""
    return _by_loop.setdefault(asyncio.get_running_loop(), asyncio.Lock())
