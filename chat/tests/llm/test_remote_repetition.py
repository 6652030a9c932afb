"""When the remote model repeats a request, and when it closes the connection."""

import asyncio
import email.utils
import time
from contextlib import aclosing

from django.test import override_settings

from chat.llm import Prompt, Text
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.tests.upstream_case import PROMPT, TURNS, FakeServerTestCase
from chat.tests.upstream_faults import (
    OVERFLOWS,
    answer,
    chunk,
    event,
    limited,
    raw,
    refused_parameter,
    status,
)
from chatsite.tests.limits import MARGIN_SECONDS


class RepetitionTests(FakeServerTestCase):
    def test_a_short_retry_after_is_honoured_once(self):
        self.assertEqual(self.ask("rate_limited_short", answer("Five.")), ("Five.", None))
        self.assertEqual(self.calls(), 2)
        self.assertEqual(self.ask("error_503_short", answer("Five.")), ("Five.", None))

    def test_a_request_is_repeated_at_most_once(self):
        self.assertEqual(self.ask("rate_limited_short", "rate_limited_short"), ("", "rate_limited"))
        self.assertEqual(self.calls(), 2)

    def test_a_retry_after_of_more_than_ten_seconds_is_not_honoured(self):
        for wait in ("60", "10.1", "inf", "nan", "-1"):
            before = self.calls()
            self.assertEqual(self.ask(limited(wait)), ("", "rate_limited"))
            self.assertEqual(self.calls() - before, 1, wait)
            self.assertLess(self.seconds, 2 + MARGIN_SECONDS)

    def test_a_retry_after_date_in_the_near_future_is_honoured(self):
        soon = email.utils.formatdate(time.time() + 1, usegmt=True)
        self.assertEqual(self.ask(limited(soon), answer("Five.")), ("Five.", None))
        self.assertEqual(self.calls(), 2)

    def test_without_a_near_retry_after_nothing_is_repeated(self):
        for fault in ("rate_limited", "rate_limited_until", "rate_limited_nonsense"):
            before = self.calls()
            self.assertEqual(self.ask(fault), ("", "rate_limited"))
            self.assertEqual(self.calls() - before, 1, fault)

    def test_nothing_is_repeated_after_the_first_token(self):
        for fault in ("stall", "reset", "cut_in_a_line", "error_in_stream"):
            before = self.calls()
            with override_settings(ANSWER_IDLE_SECONDS=0.3):
                self.assertIsNotNone(self.ask(fault)[1])
            self.assertEqual(self.calls() - before, 1, fault)

    def test_the_total_deadline_covers_both_calls(self):
        with override_settings(ANSWER_TOTAL_SECONDS=3, ANSWER_FIRST_TOKEN_SECONDS=60):
            self.assertEqual(self.ask(limited("2.9"), "silent"), ("", "upstream_timeout"))
        self.assertLess(self.seconds, 2.9 + 3)  # two separate limits would take this long

    def test_an_overlong_prompt_is_shortened_once(self):
        prompt = Prompt("How many days?", TURNS, PROMPT.sources, 0.3)
        for words in OVERFLOWS.values():
            self.fake.requests.clear()
            self.assertEqual(self.ask(status(400, {"error": words}), prompt=prompt)[1], None)
            first, second = self.fake.streams
            self.assertEqual(len(first.body["messages"]) - len(second.body["messages"]), 2)
            self.assertIn("rates.md", first.prompt)
            self.assertNotIn("rates.md", second.prompt)

    def test_an_overlong_prompt_reported_in_the_stream_is_shortened(self):
        self.assertIsNone(self.ask(raw(event({"error": OVERFLOWS["llama.cpp"]})))[1])
        self.assertEqual(self.calls(), 2)

    def test_an_overlong_prompt_after_shortening_is_an_error(self):
        self.assertEqual(self.ask("context_overflow", "context_overflow"), ("", "context_overflow"))
        self.assertEqual(self.calls(), 2)

    def test_a_prompt_that_cannot_be_shortened_is_not_repeated(self):
        prompt = Prompt("How many days?", (), PROMPT.sources[:1], 0.3)
        self.assertEqual(self.ask("context_overflow", prompt=prompt), ("", "context_overflow"))
        self.assertEqual(self.calls(), 1)

    def test_a_refused_member_is_left_out_from_then_on(self):
        async def twice():
            model, texts = RemoteModel(), []
            for _ in range(2):
                async with aclosing(model.answer(PROMPT)) as parts:
                    texts.append("".join([part.text async for part in parts if isinstance(part, Text)]))
            await connection().server.close()
            return texts

        self.fake.script(refused_parameter("temperature"), answer("Five."), answer("Six."))
        self.assertEqual(asyncio.run(twice()), ["Five.", "Six."])
        self.assertEqual(
            ["temperature" in request.body for request in self.fake.streams], [True, False, False]
        )

    def test_any_other_refused_member_is_an_error(self):
        self.assertEqual(self.ask(refused_parameter("messages")), ("", "upstream_misconfigured"))
        self.assertEqual(self.calls(), 1)


class LeavingTests(FakeServerTestCase):
    async def read_one(self, model):
        async with aclosing(model.answer(PROMPT)) as parts:
            async for _ in parts:
                return

    async def read_all(self, model):
        async with aclosing(model.answer(PROMPT)) as parts:
            async for _ in parts:
                pass

    def test_the_socket_closes_when_the_reader_leaves(self):
        for behaviour in (answer("one ", "two ", pause=5), "endless", "stall"):
            with self.subTest(behaviour):
                self.fake.script(behaviour)
                self.fake.requests.clear()
                asyncio.run(self.leave())

    async def leave(self):
        await self.read_one(RemoteModel())
        # Checked before the loop and the client end: only the reader's leaving can have closed it.
        self.assertTrue(await asyncio.to_thread(self.fake.streams[0].closed.wait, 1))
        await connection().server.close()

    def test_the_socket_closes_when_the_reading_task_is_cancelled(self):
        for behaviour in ("silent", "silent_before_text", "stall", "stall_with_keep_alive"):
            self.fake.script(behaviour)
            self.fake.requests.clear()
            self.fake.asked.clear()
            asyncio.run(self.cancel())

    async def cancel(self):
        task = asyncio.create_task(self.read_all(RemoteModel()))
        await asyncio.to_thread(self.fake.asked.wait, 5)
        await asyncio.sleep(0.1)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertTrue(await asyncio.to_thread(self.fake.streams[0].closed.wait, 1))
        await connection().server.close()

    def test_a_pooled_connection_closed_by_the_server_is_not_reused(self):
        data = chunk("Five days.") + chunk(reason="stop") + b"data: [DONE]\n\n"

        async def keep(exchange):
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n"
            )
            await exchange.send(head.encode() + data)  # then the fake closes, unannounced

        async def thrice():
            for _ in range(3):
                await self.read_all(RemoteModel())
                await asyncio.sleep(0.05)
            await connection().server.close()

        self.fake.script(keep, keep, keep)
        asyncio.run(thrice())
        self.assertEqual(len(self.fake.streams), 3)

    @override_settings(ANSWER_IDLE_SECONDS=0.3)
    def test_the_socket_closes_after_a_deadline(self):
        self.ask("stall")
        self.assertTrue(self.fake.streams[0].closed.wait(1))
