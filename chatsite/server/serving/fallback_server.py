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
READ_SECONDS = 2.0  # for a request's head; a client that sends none gets the response, too
MAX_HEAD_BYTES = 65_536
MAX_CALLERS = 500  # at once; further ones get the response without their request being read


class FallbackServer:
    """Accepts connections from the site's socket, in a thread of the supervising process."""

    def __init__(self, listener: socket.socket, retry_after: Callable[[], int]) -> None:
        self._listener = listener
        self._retry_after = retry_after
        self._page = str(loader.render_to_string("503.html", {"status": 503, "words": WORDS}))
        self._callers: set[asyncio.Task[None]] = set()
        self._stop: Callable[[], None] | None = None

    def answer(self, needed: bool) -> None:
        """Start or stop answering. Called often; repeating the same state does nothing."""
        if needed and self._stop is None:
            loop, over = asyncio.new_event_loop(), asyncio.Event()
            thread = threading.Thread(
                target=self._run, args=(loop, over), name="fallback-server", daemon=True
            )
            thread.start()
            self._stop = lambda: self._join(thread, loop, over)
        elif not needed and self._stop is not None:
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
        listener = self._listener.dup()
        server = await asyncio.start_server(
            self._answer, sock=listener, limit=MAX_HEAD_BYTES, backlog=BACKLOG
        )
        await over.wait()
        server.close()
        # Finish those that have connected, also a moment ago: the task that answers them may not exist yet.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            _, unfinished = await asyncio.wait(others, timeout=2 * READ_SECONDS)
            if unfinished:
                break

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._callers.add(task)
        try:
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
        finally:
            self._callers.discard(task)


def _response(head: bytes, page: str, retry_after: int) -> bytes:
    """An HTML page for browsers, JSON for programs."""
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
