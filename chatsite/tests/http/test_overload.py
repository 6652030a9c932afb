"""More questions than a process can start: those that would wait long are refused by their heads."""

import asyncio
import json
import time

import pytest

from chat.api.embeddings import EmbeddingsView
from chat.api.views import RunView
from chat.mcp.views import McpView
from chatsite.db import lanes
from chatsite.db.lanes import Lane
from chatsite.http import overload
from chatsite.http.overload import BEGINS, OverloadLimit, backlog, take_ticket
from chatsite.tests.routes import address as address_of
from chatsite.tests.routes import parameters, routes
from ingestion.api.search_views import SearchView

UUID = "11111111-2222-4333-8444-555555555555"
FORMS = {  # forms of the portal that start an answer or a search
    "POST": {
        "chat:new", "chat:ask", "chat:edit", "chat:again", "chat:continue", "chat:ask-in-project",
        "chat:several",
    },
    "GET": {"chat:search", "chat:palette", "history:search"},
}  # fmt: skip


def scope(path="/chat", method="POST", headers=()):
    return {"type": "http", "path": path, "method": method, "headers": [(b"content-length", b"9"), *headers]}


class Caller:
    """Sends one request in parts, and records the response."""

    def __init__(self, application, path="/chat", method="POST", parts=(b"{}",)):
        self.parts, self.messages = list(parts), []
        self.more = asyncio.Event()
        self.task = asyncio.create_task(application(scope(path, method), self.receive, self.send))

    async def receive(self):
        if len(self.parts) == 1 and not self.more.is_set():
            await self.more.wait()
        part = self.parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self.parts)}

    async def send(self, message):
        self.messages.append(message)

    @property
    def status(self):
        return self.messages[0]["status"] if self.messages else None

    def finish(self):
        self.more.set()


class Site:
    """An application that reads the body, and responds when it is released."""

    def __init__(self, status=200):
        self.go_on, self.reached, self.status = asyncio.Event(), 0, status

    async def __call__(self, scope, receive, send):
        self.reached += 1
        while (await receive())["more_body"]:
            pass
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def crowd(work, number):
    for _ in range(number):
        overload.Ticket(work).enter()


class TestWhatIsRefused:
    def test_a_question_that_would_wait_too_long_is_refused_by_its_head(self):
        async def scenario():
            site = Site()
            work = backlog()
            work.lag = 0.1
            crowd(work, 50)
            work.departures.each = 0.1
            asked = Caller(OverloadLimit(site), parts=[b"{", b"}"])
            asked.finish()
            await asyncio.wait_for(asked.task, 1)
            assert (asked.status, site.reached) == (503, 0)
            headers = dict(asked.messages[0]["headers"])
            assert headers[b"retry-after"] == b"2"
            assert json.loads(asked.messages[1]["body"])["error"]

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        ("path", "method"),
        [("/", "GET"), ("/healthz", "GET"), (f"/c/{UUID}/", "GET"), (f"/chat/runs/{UUID}/stop", "POST"),
         (f"/v1/responses/resp_{'a' * 32}/cancel", "POST"), (f"/c/{UUID}/stop", "POST")],
    )  # fmt: skip
    def test_pages_health_checks_and_stops_are_answered_despite_a_late_loop(self, path, method):
        async def scenario():
            site = Site()
            site.go_on.set()
            backlog().lag = 10.0
            asked = Caller(OverloadLimit(site), path, method)
            asked.finish()
            await asked.task
            assert asked.status == 200

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        ("path", "method"),
        [("/documents/add/", "POST"), ("/search/", "GET"), ("/api/documents/a.txt", "PUT")],
    )
    def test_uploads_and_searches_are_refused_if_the_loop_itself_is_late(self, path, method):
        async def scenario():
            site = Site()
            backlog().lag = 1.0
            asked = Caller(OverloadLimit(site), path, method)
            asked.finish()
            await asyncio.wait_for(asked.task, 2)
            assert (asked.status, site.reached) == (503, 0)

        asyncio.run(scenario())

    def test_an_idle_process_refuses_nothing_although_its_work_waits_for_others(self):
        async def scenario():
            work = backlog()
            crowd(work, 500)
            work.departures.each = 1.0
            assert not work.is_full
            assert not work.is_crowded
            work.lag = 2 * overload.BUSY_LAG
            assert work.is_full
            assert work.is_crowded

        asyncio.run(scenario())

    def test_concurrent_questions_are_accepted_while_the_first_is_in_progress(self):
        async def scenario():
            work = backlog()
            work.lag = 0.1
            crowd(work, 50)
            work.departures.since -= 1.0  # as if nothing had started for a second
            assert not work.is_full
            work.left(begun=True)  # the first one says nothing about the time between two
            assert not work.is_full
            work.departures.since -= 3.0
            assert work.is_full

        asyncio.run(scenario())

    def test_the_loop_notices_by_itself_that_it_is_late(self):
        async def scenario():
            work = backlog()
            assert work.lag == 0.0
            for _ in range(3):
                await asyncio.sleep(overload.TICK_SECONDS)
                asyncio.get_running_loop().call_soon(time.sleep, 1.0)
            await asyncio.sleep(0)
            assert work.lag > 0.1

        asyncio.run(scenario())


class TestWhatCounts:
    def test_a_dripping_body_does_not_count_as_work_until_it_is_complete(self):
        async def scenario():
            site = Site()
            asked = Caller(OverloadLimit(site), parts=[b"{", b"}"])
            await settle()
            assert (site.reached, backlog().waiting) == (1, 0)
            asked.finish()
            await settle()
            assert backlog().waiting == 1
            site.go_on.set()
            await asked.task
            assert backlog().waiting == 0

        asyncio.run(scenario())

    def test_a_run_holds_the_ticket_of_its_request_until_its_prompt_is_sent(self):
        async def scenario():
            taken = []

            async def answers(scope, receive, send):
                await receive()
                taken.append(take_ticket())
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b""})

            asked = Caller(OverloadLimit(answers))
            asked.finish()
            await asked.task
            assert backlog().waiting == 1
            taken[0].leave()
            taken[0].leave()
            assert backlog().waiting == 0

        asyncio.run(scenario())

    def test_a_failed_or_cancelled_request_releases_its_ticket(self):
        async def scenario():
            async def fails(scope, receive, send):
                await receive()
                raise ValueError

            failing = Caller(OverloadLimit(fails))
            failing.finish()
            await asyncio.wait({failing.task})
            left = Caller(OverloadLimit(Site()))
            left.finish()
            await settle()
            assert backlog().waiting == 1
            left.task.cancel()
            await asyncio.wait({left.task})
            assert backlog().waiting == 0
            assert isinstance(failing.task.exception(), ValueError)

        asyncio.run(scenario())


class TestUrls:
    def test_every_url_that_starts_an_answer_or_a_search_is_known(self):
        named = {"conversation_id": UUID, "project_id": UUID, "asked": 3, "position": 4}
        missed = []
        for name, pattern in routes():
            view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
            begins = isinstance(view, type) and issubclass(
                view, (RunView, EmbeddingsView, McpView, SearchView)
            )
            method = "POST" if begins else next((m for m, names in FORMS.items() if name in names), None)
            if method is None:
                continue
            path = address_of(name, {each: named[each] for each in parameters(pattern)})
            if not BEGINS[method].match(path):
                missed.append((name, path))
        assert missed == []

    def test_other_urls_below_them_do_not_count(self):
        others = [
            "/chat-history",
            "/chats",
            "/api/chatter",
            f"/chat/runs/{UUID}/stop",
            "/ask/x",
            "/v1/models",
        ]
        assert [path for path in others if BEGINS["POST"].match(path)] == []


class TestLanes:
    def test_waiting_callers_are_served_in_order(self):
        async def scenario():
            lane, order = Lane(1), []

            async def go(number):
                await lane.acquire(5)
                order.append(number)
                await asyncio.sleep(0)
                lane.release()

            await asyncio.gather(*(go(number) for number in range(20)))
            assert order == list(range(20))
            await lane.acquire(0)

        asyncio.run(scenario())

    def test_only_callers_that_would_wait_too_long_are_refused_early(self, monkeypatch):
        monkeypatch.setattr(lanes, "DECISION_SECONDS", 0.1)

        async def scenario():
            lane = Lane(1)
            await lane.acquire(0)
            loop = asyncio.get_running_loop()
            began = loop.time()
            waiting = [asyncio.create_task(lane.acquire(1.0)) for _ in range(40)]
            for number in range(1, 6):
                loop.call_later(0.07 * number, lane.release)
            done, _ = await asyncio.wait(waiting[5:])
            assert all(isinstance(each.exception(), TimeoutError) for each in done)
            early = [each for each in waiting[20:] if each.done()]
            assert len(early) == 20
            await asyncio.gather(*waiting[:5])
            assert loop.time() - began < 5

        asyncio.run(scenario())

    def test_without_progress_all_callers_wait_to_the_limit_because_the_database_may_return(
        self, monkeypatch
    ):
        monkeypatch.setattr(lanes, "DECISION_SECONDS", 0.05)

        async def scenario():
            lane = Lane(1)
            await lane.acquire(0)
            waiting = [asyncio.create_task(lane.acquire(5)) for _ in range(10)]
            await asyncio.sleep(0.3)
            assert not any(each.done() for each in waiting)
            for each in waiting:
                lane.release()
                await each

        asyncio.run(scenario())

    def test_a_cancelled_caller_leaves_the_queue(self):
        async def scenario():
            lane = Lane(1)
            await lane.acquire(0)
            waiting = asyncio.create_task(lane.acquire(5))
            await asyncio.sleep(0)
            lane.release()
            waiting.cancel()
            await asyncio.wait({waiting})
            await lane.acquire(0)

        asyncio.run(scenario())
