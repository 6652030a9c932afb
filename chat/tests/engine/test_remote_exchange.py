"""A whole exchange with a model's server: question, search, prompt, stream, stored answer."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import asdict

import pytest
from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import TERMINAL, Finished, RunResult, TextDelta
from chat.llm.connections import connection
from chat.requests import RunRequest
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_case import SERVER
from chat.tests.upstream_faults import FAULTS, answer
from chatsite.db.threads import in_database
from history.models import Conversation, Message
from ingestion.tests.factories import command_principal, make_document, make_user

QUESTION = "How many days of leave may employees carry over?"
SECRET = "The board may carry over ninety days of leave, which employees must not know."


@pytest.mark.slow
@override_settings(**SERVER, CHAT_BACKEND="chat.llm.remote.RemoteModel", JOURNAL_FLUSH_SECONDS=0.02)
class ExchangeTests(TransactionTestCase):
    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document("guide.md", everyone=True)
        make_document("pay.md", ("Leave that is not carried over is paid out in May.",), everyone=True)
        make_document("board.md", (SECRET,), owner=make_user("chair"))
        self.fake = self.enterContext(FakeOpenAI())
        self.enterContext(override_settings(OPENAI_BASE_URL=self.fake.url))

    def begin(self, text=QUESTION, conversation=None):
        return runs.begin(self.principal, RunRequest(text, conversation), request_id="r-1")

    async def asked(self, *script, stop_after="", conversation=None):
        """Ask QUESTION; return the collected answer, the stored message, and all events as JSON."""
        self.fake.script(*script)
        accepted = await in_database(self.begin, QUESTION, conversation)
        runs.start(accepted)
        whole, seen = RunResult(), []
        async with aclosing(runs.follow(self.principal, accepted.run_id)) as numbered:
            async for _, event in numbered:
                whole.add(event)
                seen.append(event)
                if stop_after and isinstance(event, TextDelta) and stop_after in event.text:
                    await in_database(runs.request_stop, self.principal, accepted.run_id)
        await connection().server.close()
        self.assertIsInstance(seen[-1], TERMINAL)
        message = await in_database(Message.objects.get, pk=accepted.answer_id)
        return whole, message, json.dumps([asdict(event) for event in seen])

    async def test_from_the_question_to_the_stored_answer(self):
        words = ("Five days ", "[guide.", "md], not ninety [board", ".md] or [made-up.pdf#page=9].")
        whole, message, _ = await self.asked(answer(*words))
        self.assertEqual(whole.end, Finished("complete"))
        self.assertEqual(whole.text, "Five days [guide.md], not ninety or.")
        self.assertEqual((message.state, message.content), ("complete", whole.text))
        self.assertEqual((message.citations, message.finish_reason), (["guide.md"], "stop"))
        self.assertEqual(message.usage, {"prompt": 7, "completion": 2})
        self.assertEqual(message.followups, ["What then?", "And why?", "Who decides?"])
        conversation = await in_database(Conversation.objects.get, pk=message.conversation_id)
        self.assertEqual(conversation.title, "A title")

    async def test_the_prompt_holds_only_what_the_asker_may_read(self):
        whole, _, seen = await self.asked()
        self.assertEqual({source.label for source in whole.context.sources}, {"guide.md", "pay.md"})
        self.assertIn("guide.md: Employees may carry over five days", self.fake.streams[0].prompt)
        sent = json.dumps([request.body for request in self.fake.requests]) + seen
        self.assertNotIn("ninety", sent)
        self.assertNotIn("board.md", sent)

    async def test_a_second_question_includes_the_first(self):
        _, message, _ = await self.asked(answer("Five days [guide.md]."))
        before = len(self.fake.requests)
        await self.asked(conversation=message.conversation_id)
        search, stream = self.fake.requests[before], self.fake.streams[-1]
        self.assertFalse(search.streaming)
        for request in (search, stream):
            self.assertIn("Five days [guide.md].", request.prompt)

    async def test_a_stop_closes_the_socket_and_keeps_the_text(self):
        whole, message, _ = await self.asked("stall", stop_after="answer")
        self.assertEqual((whole.end, message.state), (Finished("stopped"), "stopped"))
        self.assertEqual(message.content, "Half an answer")
        self.assertTrue(self.fake.streams[0].closed.wait(1))

    async def test_failing_side_calls_do_not_affect_the_answer(self):
        for fault in ("error_500", "html", "reset_at_once", "unauthorised"):
            self.fake.side = lambda request, fault=fault: FAULTS[fault]
            whole, message, _ = await self.asked(answer("Five days [guide.md]."))
            self.assertEqual((whole.end, message.content), (Finished("complete"), "Five days [guide.md]."))
            self.assertEqual(message.followups, [])

    async def test_concurrent_answers_are_not_mixed_up(self):
        async def one(number):
            accepted = await in_database(self.begin, f"{QUESTION} Number {number}.")
            runs.start(accepted)
            return number, await runs.wait_for_result(self.principal, accepted.run_id)

        async def echo(exchange):
            number = exchange.request.prompt.rpartition("Number ")[2].split(".")[0]
            await answer(*[f"<{number}>"] * 20, pause=0.005)(exchange)

        self.fake.script(*[echo] * 20)
        for number, whole in await asyncio.gather(*(one(number) for number in range(20))):
            self.assertEqual(whole.text, f"<{number}>" * 20)
        await connection().server.close()
