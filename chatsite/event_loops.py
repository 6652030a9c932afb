"""Objects that belong to one event loop.

Connections, locks and tasks that were created on one loop fail on another.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerEventLoop(Generic[T]):
    """Calling it returns the running event loop's object, which `make` creates at the first call."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._objects: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def __call__(self) -> T:
        loop = asyncio.get_running_loop()
        if loop not in self._objects:
            self._objects[loop] = self._make()
        return self._objects[loop]

    def items(self) -> list[tuple[asyncio.AbstractEventLoop, T]]:
        """The existing loops with their objects; callable from any thread."""
        return list(self._objects.items())


_closers: PerEventLoop[list[Callable[[], Awaitable[None]]]] = PerEventLoop(list)


def close_at_end(close: Callable[[], Awaitable[None]]) -> None:
    """Await `close` at the orderly end of the running event loop."""
    _closers().append(close)


async def close_all() -> None:
    """Close the objects of the running event loop; called once, before it ends."""
    closers = _closers()
    while closers:
        await closers.pop()()
