"""The threads in which synchronous code of requests runs."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async

from chatsite.http import body_limits
from chatsite.http.body_limits import LengthHandler


class Handler(LengthHandler):
    """Records the thread of each request, which waits until `together` requests have arrived."""

    def __init__(self, together=1):
        super().__init__()
        self.threads = []
        self.together = threading.Barrier(together)

    async def handle(self, scope, receive, send):
        def work():
            self.together.wait(20)
            self.threads.append(threading.current_thread())

        await sync_to_async(work)()
        if scope.get("fails"):
            raise ConnectionError


def test_requests_after_each_other_run_in_one_thread():
    async def scenario():
        handler = Handler()
        for _ in range(3):
            await handler({"type": "http"}, None, None)
        assert len(set(handler.threads)) == 1

    asyncio.run(scenario())


def test_requests_at_once_have_a_thread_each_of_which_a_few_are_kept(monkeypatch):
    monkeypatch.setattr(body_limits, "MAX_IDLE_THREADS", 2)

    async def scenario():
        handler = Handler(together=4)
        await asyncio.gather(*[handler({"type": "http"}, None, None) for _ in range(4)])
        assert len(set(handler.threads)) == 4
        assert len(handler._idle) == 2

    asyncio.run(scenario())


def test_a_thread_of_a_request_that_failed_is_not_used_again():
    async def scenario():
        handler = Handler()
        with pytest.raises(ConnectionError):
            await handler({"type": "http", "fails": True}, None, None)
        await handler({"type": "http"}, None, None)
        assert len(set(handler.threads)) == 2

    asyncio.run(scenario())
