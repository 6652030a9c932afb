"""A whole exchange with a model's server: question, search, prompt, stream, stored answer."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import asdict

from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import TERMINAL, Failed, Finished, TextDelta, Whole
from chat.llm.connections import connection
from chat.requests import ChatRequest
from chat.tests.fake_openai import FakeOpenAI
from chat.tests.upstream_case import QUICK, SERVER
from chat.tests.upstream_faults import FAULTS, KEY, answer
from chatsite.database import in_database
from history.models import Conversation, Message
from ingestion.tests.factories import command_principal, make_document, make_user

QUESTION = "How many days of leave may employees carry over?"
SECRET = "The board may carry over ninety days of leave, which employees must not know."
SENT = ("internal details", "upstream says hello", KEY, "Incorrect API key", "127.0.0.1")


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
        return runs.begin(self.principal, ChatRequest(text, conversation), request_id="r-1")

    async def asked(self, *script, stop_after="", conversation=None):
        """(whole, message, every event as JSON)"""
        self.fake.script(*script)
        accepted = await in_database(self.begin, QUESTION, conversation)
        runs.start(accepted)
        whole, seen = Whole(), []
        async with aclosing(runs.follow(self.principal, accepted.id)) as numbered:
            async for _, event in numbered:
                whole.add(event)
                seen.append(event)
                if stop_after and isinstance(event, TextDelta) and stop_after in event.text:
                    await in_database(runs.request_stop, self.principal, accepted.id)
        await connection().client.close()
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

    async def test_a_second_question_takes_the_first_along(self):
        _, message, _ = await self.asked(answer("Five days [guide.md]."))
        before = len(self.fake.requests)
        await self.asked(conversation=message.conversation_id)
        search, stream = self.fake.requests[before], self.fake.streams[-1]
        self.assertFalse(search.streaming)
        for request in (search, stream):
            self.assertIn("Five days [guide.md].", request.prompt)

    async def test_too_long_a_prompt_is_shortened_and_asked_once_more(self):
        whole, message, _ = await self.asked("context_overflow", answer("Five days [guide.md]."))
        self.assertEqual((whole.end, message.content), (Finished("complete"), "Five days [guide.md]."))
        first, second = self.fake.streams
        self.assertGreater(len(first.prompt), len(second.prompt))
        whole, _, _ = await self.asked("context_overflow", "context_overflow")
        self.assertEqual(whole.end, Failed("failed", "context_overflow", "r-1"))

    @override_settings(**QUICK)
    async def test_every_fault_ends_in_its_state_with_our_own_words(self):
        expected = {
            "silent": ("failed", "upstream_timeout", ""),
            "stall": ("interrupted", "upstream_timeout", "Half an answer"),
            "reset": ("interrupted", "interrupted", "Half an "),
            "reset_before_text": ("failed", "upstream_unavailable", ""),
            "cut_in_a_line": ("interrupted", "upstream_protocol", "Half an "),
            "no_finish_reason": ("interrupted", "interrupted", "Half an answer"),
            "nothing": ("failed", "empty_answer", ""),
            "no_text": ("failed", "empty_answer", ""),
            "html": ("failed", "upstream_protocol", ""),
            "json": ("failed", "upstream_protocol", ""),
            "error_in_stream": ("interrupted", "upstream_unavailable", "Half an "),
            "unauthorised": ("failed", "upstream_misconfigured", ""),
            "rate_limited_long": ("failed", "rate_limited", ""),
            "error_500": ("failed", "upstream_unavailable", ""),
            "filtered": ("blocked", "content_filter", "Half an "),
            "redirect": ("failed", "upstream_misconfigured", ""),
        }
        for fault, (state, code, text) in expected.items():
            whole, message, seen = await self.asked(fault)
            self.assertEqual(whole.end, Failed(state, code, "r-1"), fault)
            self.assertEqual((message.state, message.error_code, message.content), (state, code, text), fault)
            for word in SENT:
                self.assertNotIn(word, seen, fault)
        self.assertLess(set(expected), set(FAULTS))

    async def test_an_answer_that_was_cut_short_is_complete_and_says_so(self):
        whole, message, _ = await self.asked("length")
        self.assertEqual((whole.done.finish_reason, message.finish_reason), ("length", "length"))
        self.assertEqual(whole.end, Finished("complete"))

    @override_settings(ANSWER_MAX_CHARACTERS=5_000)
    async def test_output_without_end_stops_at_the_limit(self):
        whole, message, _ = await self.asked("endless")
        self.assertEqual((len(message.content), whole.done.finish_reason), (5_000, "length"))
        self.assertTrue(await asyncio.to_thread(self.fake.streams[0].closed.wait, 1))

    async def test_a_stop_closes_the_socket_and_keeps_the_text(self):
        whole, message, _ = await self.asked("stall", stop_after="answer")
        self.assertEqual((whole.end, message.state), (Finished("stopped"), "stopped"))
        self.assertEqual(message.content, "Half an answer")
        self.assertTrue(self.fake.streams[0].closed.wait(1))

    async def test_failing_side_calls_cost_the_answer_nothing(self):
        for fault in ("error_500", "html", "reset_at_once", "unauthorised"):
            self.fake.side = lambda request, fault=fault: FAULTS[fault]
            whole, message, _ = await self.asked(answer("Five days [guide.md]."))
            self.assertEqual((whole.end, message.content), (Finished("complete"), "Five days [guide.md]."))
            self.assertEqual(message.followups, [])

    async def test_many_at_once_are_not_mixed_up(self):
        async def one(number):
            accepted = await in_database(self.begin, f"{QUESTION} Number {number}.")
            runs.start(accepted)
            return number, await runs.whole(self.principal, accepted.id)

        async def echo(exchange):
            number = exchange.request.prompt.rpartition("Number ")[2].split(".")[0]
            await answer(*[f"<{number}>"] * 20, pause=0.005)(exchange)

        self.fake.script(*[echo] * 20)
        for number, whole in await asyncio.gather(*(one(number) for number in range(20))):
            self.assertEqual(whole.text, f"<{number}>" * 20)
        await connection().client.close()
