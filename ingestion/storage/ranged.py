"""A remote file with random access; the reads between two seeks share one streamed request."""

import io
from collections.abc import Callable
from typing import Any, Protocol


class Body(Protocol):
    """The body of a streamed response."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class RangedReader(io.RawIOBase):
    """The file as a raw stream.

    `begin` requests everything from a byte position on; `size` is the size of the whole file.
    """

    def __init__(self, begin: Callable[[int], Body], size: int) -> None:
        self._begin = begin
        self._size = size
        self._position = 0
        self._body: Body | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        position = max(0, base + offset)
        if position != self._position:
            self._stop()
        self._position = position
        return position

    def readinto(self, buffer: Any) -> int:
        if self._position >= self._size:
            return 0
        if self._body is None:
            data = self._next(len(buffer))
        else:
            try:
                data = self._next(len(buffer))
            except Exception:  # libraries raise exceptions of their own
                # A large file takes minutes, and its connection may break: continue from here with a new one.
                self._stop()
                data = self._next(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _next(self, size: int) -> bytes:
        if self._body is None:
            self._body = self._begin(self._position)
        data = self._body.read(size)
        if not data:
            raise OSError("The file ended early.")
        return data

    def close(self) -> None:
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
