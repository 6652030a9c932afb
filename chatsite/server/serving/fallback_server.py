"""Responds with 503 while the web servers have crashed and wait for their restart."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

from django.template import loader

from chatsite.http import error_pages
from chatsite.server.address import BACKLOG

WORDS = "The site is starting again. Try again in a few seconds."
READ_SECONDS = 2.0  # time to read a request's head; after that, the response is sent anyway
MAX_HEAD_BYTES = 65_536
MAX_CALLERS = 500  # how many requests are read at the same time; other callers get the response at once


class FallbackServer:
    """Accepts connections on the site's socket, in a thread of the supervising process."""

    def __init__(self, listener: socket.socket, retry_after: Callable[[], int]) -> None:
        self._listener = listener
        self._retry_after = retry_after
        self._page = str(loader.render_to_string("503.html", {"status": 503, "words": WORDS}))
        self._callers: set[asyncio.Task[None]] = set()
        self._stop: Callable[[], None] | None = None

    def set_active(self, active: bool) -> None:
        """Start or stop answering. May be called often: it does nothing if the state is unchanged."""
        if active and self._stop is None:
            loop, over = asyncio.new_event_loop(), asyncio.Event()
            thread = threading.Thread(
                target=self._run, args=(loop, over), name="fallback-server", daemon=True
            )
            thread.start()
            self._stop = lambda: self._join(thread, loop, over)
        elif not active and self._stop is not None:
            self._stop()
            self._stop = None

    @staticmethod
    def _join(thread: threading.Thread, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        loop.call_soon_threadsafe(over.set)
        thread.join()

    def _run(self, loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._serve(over))

    async def _serve(self, over: asyncio.Event) -> None:
        """Accept connections until `over`, then finish those that were accepted.

        `asyncio.start_server` is not used, because a connection that it accepts just before the server is
        closed stays open without a response.
        """
        loop = asyncio.get_running_loop()
        with self._listener.dup() as listener:
            listener.setblocking(False)
            listener.listen(BACKLOG)
            loop.add_reader(listener, self._accept, listener)
            await over.wait()
            loop.remove_reader(listener)
        if self._callers:
            await asyncio.wait(self._callers, timeout=2 * READ_SECONDS)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:  # too many open files: without a pause, accept would fail again and again
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(READ_SECONDS, self._accept_again, listener)
            return
        task = asyncio.create_task(self._answer(connection))
        self._callers.add(task)
        task.add_done_callback(self._callers.discard)

    def _accept_again(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    async def _answer(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=MAX_HEAD_BYTES)
        head = b""
        if len(self._callers) <= MAX_CALLERS:
            with contextlib.suppress(OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
                async with asyncio.timeout(READ_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
        writer.write(_response(head, self._page, self._retry_after()))
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(READ_SECONDS):
                await writer.wait_closed()


def _response(head: bytes, page: str, retry_after: int) -> bytes:
    """The response to a request with this head: an HTML page for browsers, JSON for programs."""
    line, _, fields = head.decode("latin-1").partition("\r\n")
    method, _, target = line.partition(" ")
    path = target.split(" ")[0].partition("?")[0]
    if "text/html" in fields and not error_pages.is_for_programs(path):
        content, kind = page.encode(), "text/html; charset=utf-8"
    else:
        content, kind = error_pages.body(path, 503, WORDS)
    lines = [
        "HTTP/1.1 503 Service Unavailable",
        f"Content-Type: {kind}",
        f"Content-Length: {len(content)}",
        f"Retry-After: {retry_after}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "\r\n"]).encode() + (b"" if method == "HEAD" else content)
