"""GET /chat/runs/{id}/events and POST /chat/runs/{id}/stop: one answer by its id, through any connection."""

import asyncio
import json
import threading
import time
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import OperationalError
from django.test import AsyncClient, TransactionTestCase, override_settings

from chat import runs
from chat.api import streaming_responses
from chat.engine import searching
from chat.llm import ModelError, use_model
from chat.models import JournalEntry, Run
from chat.requests import RunRequest
from chat.tests.scripted_model import ScriptedModel
from chatsite.accounts.models import ApiKey
from chatsite.accounts.principal import valid_among
from chatsite.db.threads import in_database
from chatsite.tests.limits import HANG_SECONDS
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import command_principal, make_document, make_user

WORDS = [f"word{number} " for number in range(30)] + ["[guide.md]."]
ASKED = {"messages": [{"role": "user", "content": "Carry over leave until when?"}], "session_state": None}


def events_of_sse(body):
    """[(id, data)] of a stream of server-sent events, comments left out."""
    found = []
    for block in body.split(b"\n\n"):
        fields = dict(line.split(b": ", 1) for line in block.splitlines() if not line.startswith(b":"))
        if fields:
            found.append((int(fields[b"id"]), json.loads(fields[b"data"])))
    return found


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class RunEventsCase(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.secret = ApiKey.objects.issue(self.user, "test")[1]
        self.document = make_document("guide.md", everyone=True)

    async def ask(self, model, **more):
        """Ask a question; return the whole answer and the id of its run."""
        with use_model(model):
            answer = await self.post("/chat", ASKED | more)
        return answer, answer.headers["Chat-Run"]

    async def post(self, path, body=None, secret=None):
        headers = {"Authorization": f"Bearer {secret or self.secret}"}
        return await AsyncClient().post(path, body, "application/json", headers=headers)

    async def get(self, run, query="", secret=None, **headers):
        headers |= {"Authorization": f"Bearer {secret or self.secret}"}
        return await AsyncClient().get(f"/chat/runs/{run}/events{query}", headers=headers)

    async def events(self, run, query="", **headers):
        answer = await self.get(run, query, **headers)
        body = b"".join([chunk async for chunk in answer.streaming_content])
        return [json.loads(line) for line in body.splitlines()]


@pytest.mark.slow
class ResumeTests(RunEventsCase):
    async def test_every_event_has_its_number_and_the_last_one_has_everything(self):
        asked = {"context": {"overrides": {"suggest_followup_questions": True}}}
        answer, run = await self.ask(ScriptedModel(words=WORDS, suggestions=["And sick pay?"]), **asked)
        told = await self.events(run)
        self.assertEqual([event["seq"] for event in told], list(range(1, len(told) + 1)))
        kinds = list(dict.fromkeys(event["type"] for event in told))
        self.assertEqual(
            kinds, ["started", "searching", "context", "text", "message_end", "followups", "title", "end"]
        )
        text = "".join(event["text"] for event in told if event["type"] == "text")
        end = told[-1]
        self.assertEqual((end["state"], end["error"]), ("complete", None))
        self.assertEqual([message["content"] for message in end["messages"]], [text])
        self.assertEqual(text, answer.json()["message"]["content"])
        self.assertEqual(end["messages"][0]["citations"], ["guide.md"])
        context = {name: told[2][name] for name in ("data_points", "thoughts")}
        self.assertEqual(end["messages"][0]["context"], context)
        self.assertEqual(end["followup_questions"], ["And sick pay?"])

    async def test_events_after_a_number_are_sent(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        told = await self.events(run)
        for after in range(len(told)):
            self.assertEqual(await self.events(run, f"?after={after}"), told[after:])

    async def test_a_reader_that_has_everything_gets_the_end_again(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        end = (await self.events(run))[-1]
        for after in (end["seq"], end["seq"] + 1, 2_000_000_000):
            self.assertEqual(await self.events(run, f"?after={after}"), [end])

    async def test_after_the_journal_is_deleted_the_end_keeps_its_number(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        end = (await self.events(run))[-1]
        await in_database(JournalEntry.objects.all().delete)
        for after in (0, 7, end["seq"], end["seq"] + 5):
            self.assertEqual(await self.events(run, f"?after={after}"), [end])

    async def test_new_events_are_sent_as_they_are_written(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.02)):
            answer = await self.post("/chat/stream", ASKED)
            following = await asyncio.gather(*(self.events(answer.headers["Chat-Run"]) for _ in range(3)))
        self.assertEqual(following[0], following[1])
        self.assertEqual(following[0], following[2])
        self.assertEqual(following[0][-1]["messages"][0]["content"], "".join(WORDS))

    async def test_a_future_number_waits_for_the_end(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.01)):
            answer = await self.post("/chat/stream", ASKED)
            told = await self.events(answer.headers["Chat-Run"], "?after=5000")
        self.assertEqual([event["type"] for event in told], ["end"])

    async def test_a_failed_answer_says_why_and_keeps_its_text(self):
        model = ScriptedModel(words=["Five "], reason=None, error=ModelError("upstream_timeout"))
        _, run = await self.ask(model)
        end = (await self.events(run))[-1]
        self.assertEqual((end["state"], end["error"]["code"]), ("interrupted", "upstream_timeout"))
        self.assertEqual(end["messages"][0]["content"], "Five ")

    async def test_sources_are_sent_under_the_present_rights(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        await in_database(set_audience, self.document, Audience())
        told = await self.events(run)
        self.assertEqual(told[2]["data_points"]["text"], [])
        self.assertEqual(told[-1]["messages"][0]["context"]["data_points"]["text"], [])

    async def test_another_persons_run_looks_like_a_missing_one(self):
        _, run = await self.ask(ScriptedModel())
        stranger = await in_database(make_user, "stranger")
        secret = (await in_database(ApiKey.objects.issue, stranger, "test"))[1]
        theirs = await self.get(run, secret=secret)
        unknown = await self.get(uuid4(), secret=secret)
        self.assertEqual((theirs.status_code, unknown.status_code), (404, 404))
        self.assertEqual(theirs.content, unknown.content)
        self.assertEqual(theirs.json(), {"error": "There is no such answer."})

    async def test_wrong_numbers_and_formats_are_refused_by_name(self):
        _, run = await self.ask(ScriptedModel())
        for query, member in (("?after=-1", "after"), ("?after=x", "after"), ("?after=99999999999", "after"),
                              ("?format=xml", "format"), ("?after=٣", "after")):  # fmt: skip
            answer = await self.get(run, query)
            self.assertEqual(answer.status_code, 400, query)
            self.assertIn(member, answer.json()["error"])
        self.assertEqual((await self.get(run, Accept="image/png")).status_code, 406)
        posted = await self.post(f"/chat/runs/{run}/events")
        self.assertEqual((posted.status_code, posted.headers["Allow"]), (405, "GET"))


@pytest.mark.slow
class ServerSentTests(RunEventsCase):
    async def sse(self, run, query="?format=sse", **headers):
        answer = await self.get(run, query, **headers)
        return events_of_sse(b"".join([chunk async for chunk in answer.streaming_content]))

    async def test_events_have_ids_and_last_event_id_is_honoured(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        told = await self.sse(run)
        self.assertEqual([number for number, _ in told], [event["seq"] for _, event in told])
        accepted = {"Accept": "text/event-stream"}
        self.assertEqual(await self.sse(run, "", **accepted, **{"Last-Event-ID": ""}), told)
        self.assertEqual(await self.sse(run, "", **accepted, **{"Last-Event-ID": "9"}), told[9:])
        self.assertEqual(await self.sse(run, "?after=3", **accepted, **{"Last-Event-ID": "9"}), told[9:])
        self.assertEqual(await self.sse(run, "?after=12", **accepted, **{"Last-Event-ID": "9"}), told[12:])

    async def test_an_event_source_that_has_the_end_is_told_not_to_reconnect(self):
        _, run = await self.ask(ScriptedModel())
        last = (await self.sse(run))[-1][0]
        answer = await self.get(run, "?format=sse", **{"Last-Event-ID": str(last)})
        self.assertEqual(answer.status_code, 204)

    async def test_a_reader_ahead_of_the_journal_of_a_dead_process_gets_the_end(self):
        principal = command_principal(self.user)
        accepted = await in_database(runs.begin, principal, RunRequest("When?"))
        words = [["TextDelta", "Half an "], ["TextDelta", "answer"]]
        await JournalEntry.objects.acreate(run_id=accepted.run_id, first=1, last=2, events=words)
        await in_database(runs.expire_all)
        for seen in ("2", "3", "4"):  # one of these would have been the number of the end
            [(number, end)] = await self.sse(accepted.run_id, **{"Last-Event-ID": seen})
            self.assertEqual(end["messages"][0]["content"], "Half an answer")
        answer = await self.get(accepted.run_id, "?format=sse", **{"Last-Event-ID": str(number)})
        self.assertEqual(answer.status_code, 204)

    async def test_keep_alives_are_sent_in_every_stream_format(self):
        model = ScriptedModel(words=["One ", "two."], pause=1.3)
        with patch.object(streaming_responses, "KEEP_ALIVE_SECONDS", 0.2), use_model(model):
            asked = {"messages": ASKED["messages"], "stream": True}
            answer = await self.post("/v1/chat/completions", asked)
            run = answer.headers["Chat-Run"]

            async def body(response):
                return b"".join([chunk async for chunk in response.streaming_content])

            bodies = await asyncio.gather(
                body(answer), body(await self.get(run)), body(await self.get(run, "?format=sse"))
            )
        self.assertIn(b": waiting\n\n", bodies[0])
        self.assertIn(b'"type":"waiting"}\n', bodies[1])
        self.assertIn(b": waiting\n\n", bodies[2])


class AbsentDatabaseTests(RunEventsCase):
    async def test_a_stream_survives_an_unavailable_database(self):
        failures = []

        def away(*arguments):
            if failures:
                raise failures.pop()
            return valid_among(*arguments)

        with (
            patch("chat.runs.revalidation.valid_among", away),
            patch.multiple("chat.runs.revalidation", CHECK_SECONDS=0.05, LATE_SECONDS=0.1),
            use_model(ScriptedModel(words=WORDS, pause=0.02)),
        ):
            principal = command_principal(self.user)
            accepted = await in_database(runs.begin, principal, RunRequest("Leave?"))
            runs.start(accepted)
            following = asyncio.create_task(self.events(accepted.run_id))
            await asyncio.sleep(0.2)
            failures.extend([OperationalError] * 3)
            told = await following
        self.assertEqual(failures, [])
        self.assertEqual(told[-1]["messages"][0]["content"], "".join(WORDS))

    async def test_a_stream_whose_first_read_fails_is_refused(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        for place in ("chat.runs.follow.withheld_labels", "chat.runs.journal.read"):
            with patch(place, side_effect=OperationalError("lock timeout")):
                answer = await self.get(run)
            self.assertEqual((answer.status_code, answer["Retry-After"]), (503, "2"), place)
        self.assertEqual((await self.events(run))[-1]["state"], "complete")

    async def test_keep_alives_are_sent_while_a_statement_waits_for_the_database(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        reached, free = asyncio.Event(), asyncio.Event()
        run_so_far = runs.run_so_far

        async def wait(*arguments):
            reached.set()
            await free.wait()
            return await run_so_far(*arguments)

        with (
            patch.object(runs, "run_so_far", wait),
            patch.multiple(streaming_responses, KEEP_ALIVE_SECONDS=0.05, POLL_SECONDS=0.01),
        ):
            stream = aiter((await self.get(run)).streaming_content)
            lines = [json.loads(await anext(stream))]
            while lines[-1]["type"] != "waiting":
                lines += [json.loads(line) for line in (await anext(stream)).splitlines()]
            await asyncio.wait_for(reached.wait(), HANG_SECONDS)
            free.set()
            lines += [json.loads(line) async for part in stream for line in part.splitlines()]
        self.assertEqual(lines[-1]["state"], "complete")

    async def test_closing_a_stream_ends_its_wait_for_the_database(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        reached, ended = asyncio.Event(), asyncio.Event()

        async def wait(*_):
            reached.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        with (
            patch.object(runs, "run_so_far", wait),
            patch.multiple(streaming_responses, KEEP_ALIVE_SECONDS=0.05, POLL_SECONDS=0.01),
        ):
            stream = aiter(await self.get(run))
            while not reached.is_set():
                await anext(stream)
            await stream.aclose()
        self.assertTrue(ended.is_set())


class StopTests(RunEventsCase):
    async def stop(self, run, secret=None):
        return await self.post(f"/chat/runs/{run}/stop", secret=secret)

    async def test_stopping_ends_the_answer_and_can_be_repeated(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.05)):
            answer = await self.post("/chat/stream", ASKED)
            run = answer.headers["Chat-Run"]
            stops = await asyncio.gather(self.stop(run), self.stop(run))
            told = await self.events(run)
        self.assertEqual({stop.status_code for stop in stops}, {204})
        self.assertEqual((told[-1]["state"], told[-1]["error"]), ("stopped", None))
        self.assertEqual((await self.stop(run)).status_code, 204)
        self.assertEqual((await self.events(run))[-1], told[-1])

    async def test_sources_stored_during_a_stop_are_sent(self):
        storing, record = threading.Event(), searching._record

        def slowly(*arguments):
            storing.set()
            time.sleep(0.3)  # the stop arrives meanwhile
            return record(*arguments)

        with patch.object(searching, "_record", slowly), use_model(ScriptedModel(words=WORDS)):
            answer = await self.post("/chat/stream", ASKED)
            run = answer.headers["Chat-Run"]
            self.assertTrue(await asyncio.to_thread(storing.wait, 10))
            await self.stop(run)
            told = await self.events(run)
        self.assertEqual(told[-1]["state"], "stopped")
        self.assertIn("guide.md", str(told[-1]))
        self.assertEqual((await self.events(run))[-1], told[-1])

    async def test_another_person_cannot_stop_a_run(self):
        stranger = await in_database(make_user, "stranger")
        secret = (await in_database(ApiKey.objects.issue, stranger, "test"))[1]
        with use_model(ScriptedModel(words=WORDS, pause=0.02)):
            answer = await self.post("/chat/stream", ASKED)
            run = answer.headers["Chat-Run"]
            theirs, unknown = await self.stop(run, secret), await self.stop(uuid4(), secret)
            told = await self.events(run)
        self.assertEqual((theirs.status_code, theirs.content), (404, unknown.content))
        self.assertEqual(theirs.json(), {"error": "There is no such answer."})
        self.assertEqual(told[-1]["state"], "complete")

    async def test_a_question_is_answered_although_its_caller_disconnected(self):
        """A stored question is answered even if nobody waits for the response."""
        begin = runs.begin

        def slowly(*arguments, **values):
            accepted = begin(*arguments, **values)
            asyncio.run(asyncio.sleep(0.2))
            return accepted

        with use_model(ScriptedModel(words=["Five."])), patch("chat.api.views.runs.begin", slowly):
            asking = asyncio.create_task(self.post("/chat", ASKED))
            async with asyncio.timeout(5):
                while not await Run.objects.aexists():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            run = await Run.objects.aget()
            told = await self.events(run.pk)
        self.assertEqual(told[-1]["messages"][0]["content"], "Five.")
