"""The threads in which synchronous code of requests runs."""

import asyncio
import threading
from typing import ClassVar
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.core.signals import request_started
from django.http import HttpResponse

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


def test_concurrent_requests_have_a_thread_each_and_a_few_threads_are_kept(monkeypatch):
    monkeypatch.setattr(body_limits, "MAX_IDLE_THREADS", 2)

    async def scenario():
        handler = Handler(together=4)
        await asyncio.gather(*[handler({"type": "http"}, None, None) for _ in range(4)])
        assert len(set(handler.threads)) == 4
        assert len(handler._idle) == 2

    asyncio.run(scenario())


def test_a_thread_of_a_failed_request_is_not_reused():
    async def scenario():
        handler = Handler()
        with pytest.raises(ConnectionError):
            await handler({"type": "http", "fails": True}, None, None)
        await handler({"type": "http"}, None, None)
        assert len(set(handler.threads)) == 2

    asyncio.run(scenario())


class ClosedResponse(HttpResponse):
    """Records the threads in which responses were closed."""

    threads: ClassVar[list[threading.Thread]] = []

    def close(self):
        super().close()
        self.threads.append(threading.current_thread())


class Answering(LengthHandler):
    """Answers each request; `work` of them in their thread."""

    def __init__(self, work=None):
        super().__init__()
        self.work = work

    async def run_get_response(self, request):
        if self.work:
            await sync_to_async(self.work)()
        return ClosedResponse("Sent")


@pytest.mark.parametrize("works", [False, True])
def test_only_responses_of_a_thread_are_closed_there(works):
    threads = []
    sent = []

    async def send(message):
        sent.append(message)

    async def scenario():
        handler = Answering((lambda: threads.append(threading.current_thread())) if works else None)
        for _ in range(2):
            never, whole = asyncio.Event(), iter([{"type": "http.request", "body": b""}])

            async def receive(never=never, whole=whole):
                message = next(whole, None)
                return message or await never.wait()

            scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
            await handler(scope, receive, send)

    # As in chatsite.asgi, no receiver of the signal needs a thread.
    started = mock.patch.object(request_started, "receivers", [])
    with started, mock.patch.object(ClosedResponse, "threads", []) as closed:
        request_started.sender_receivers_cache.clear()
        asyncio.run(scenario())
    assert closed == (threads if works else [threading.current_thread()] * 2)
    assert [message["body"] for message in sent if "body" in message] == [b"Sent"] * 2
