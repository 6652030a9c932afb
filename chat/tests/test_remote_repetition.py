"""When the remote model asks again, when it leaves, and what it asks beside the answer."""

import asyncio
from contextlib import aclosing
from unittest import mock

from django.test import SimpleTestCase, override_settings

from chat.llm import Prompt, Text, remote, side_texts
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.requests import Turn
from chat.tests.upstream_case import PROMPT, FakeServerTestCase
from chat.tests.upstream_faults import (
    FAULTS,
    OVERFLOWS,
    answer,
    completion,
    event,
    limited,
    raw,
    refused_parameter,
    status,
)

TURNS = (Turn("user", "Leave?"), Turn("assistant", "Yes."), Turn("user", "Pay?"), Turn("assistant", "No."))


class RepetitionTests(FakeServerTestCase):
    def test_a_short_wait_is_waited_once(self):
        self.assertEqual(self.ask("rate_limited_short", answer("Five.")), ("Five.", None))
        self.assertEqual(self.calls(), 2)
        self.assertEqual(self.ask("error_503_short", answer("Five.")), ("Five.", None))

    def test_never_more_than_once(self):
        self.assertEqual(self.ask("rate_limited_short", "rate_limited_short"), ("", "rate_limited"))
        self.assertEqual(self.calls(), 2)

    def test_a_longer_wait_than_ten_seconds_is_not_waited(self):
        for wait in ("60", "10.1", "inf", "nan", "-1"):
            before = self.calls()
            self.assertEqual(self.ask(limited(wait)), ("", "rate_limited"))
            self.assertEqual(self.calls() - before, 1, wait)
            self.assertLess(self.seconds, 2)

    def test_without_a_number_of_seconds_nothing_is_repeated(self):
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

    def test_the_total_time_counts_over_both_calls(self):
        with override_settings(ANSWER_TOTAL_SECONDS=0.8, ANSWER_FIRST_TOKEN_SECONDS=0.7):
            self.assertEqual(self.ask(limited("0.4"), "silent"), ("", "upstream_timeout"))
        self.assertLess(self.seconds, 1.05)

    def test_too_long_a_prompt_is_shortened_once(self):
        prompt = Prompt("How many days?", TURNS, PROMPT.sources, 0.3)
        for words in OVERFLOWS.values():
            self.fake.requests.clear()
            self.assertEqual(self.ask(status(400, {"error": words}), prompt=prompt)[1], None)
            first, second = self.fake.streams
            self.assertEqual(len(first.body["messages"]) - len(second.body["messages"]), 2)
            self.assertIn("rates.md", first.prompt)
            self.assertNotIn("rates.md", second.prompt)

    def test_too_long_in_the_stream_is_too_long_too(self):
        self.assertIsNone(self.ask(raw(event({"error": OVERFLOWS["llama.cpp"]})))[1])
        self.assertEqual(self.calls(), 2)

    def test_too_long_twice_is_an_error(self):
        self.assertEqual(self.ask("context_overflow", "context_overflow"), ("", "context_overflow"))
        self.assertEqual(self.calls(), 2)

    def test_what_cannot_be_shortened_is_not_repeated(self):
        prompt = Prompt("How many days?", (), PROMPT.sources[:1], 0.3)
        self.assertEqual(self.ask("context_overflow", prompt=prompt), ("", "context_overflow"))
        self.assertEqual(self.calls(), 1)

    def test_a_member_that_the_model_refuses_is_left_out_from_then_on(self):
        async def twice():
            model, texts = RemoteModel(), []
            for _ in range(2):
                async with aclosing(model.answer(PROMPT)) as parts:
                    texts.append("".join([part.text async for part in parts if isinstance(part, Text)]))
            await connection().client.close()
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
        # Before the loop or the client ends: nothing but the reader's leaving has closed it.
        self.assertTrue(await asyncio.to_thread(self.fake.streams[0].closed.wait, 1))
        await connection().client.close()

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
        await connection().client.close()

    @override_settings(ANSWER_IDLE_SECONDS=0.3)
    def test_the_socket_closes_after_a_deadline(self):
        self.ask("stall")
        self.assertTrue(self.fake.streams[0].closed.wait(1))


class SideCallTests(FakeServerTestCase):
    """Search query, follow-ups and title: wanted, never needed."""

    def call(self, name, *values, answered):
        self.fake.side = lambda request: answered

        async def called():
            try:
                return await getattr(RemoteModel(), name)(*values)
            finally:
                await connection().client.close()

        return asyncio.run(called())

    def test_a_search_query_takes_the_conversation_along(self):
        query = self.call("search_query", "And there?", TURNS, answered=completion('"leave in Japan"'))
        self.assertEqual(query, "leave in Japan")
        roles = [message["role"] for message in self.fake.requests[0].body["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "user", "assistant", "user"])

    def test_a_first_question_is_its_own_search_query(self):
        self.assertEqual(self.call("search_query", "Leave?", (), answered=completion("x")), "Leave?")
        self.assertEqual(self.fake.requests, [])

    def test_title_and_followups_are_cleaned(self):
        self.assertEqual(
            self.call("title", "Leave?", answered=completion('Title: "Leave days."')), "Leave days"
        )
        found = self.call("followups", PROMPT, "Five.", answered=completion("1. How many days?\n2) Why?"))
        self.assertEqual(found, ["Why?"])

    def test_every_failure_gives_nothing_and_is_no_error(self):
        faults = [
            "silent",
            "reset_at_once",
            "html",
            "redirect",
            "unauthorised",
            "error_500",
            "rate_limited_short",
        ]
        odd = [
            status(200, value)
            for value in (
                {},
                [],
                {"choices": []},
                {"choices": None},
                {"choices": [{"message": None}]},
                "x",
                7,
            )
        ]
        odd += [status(200, b"{broken"), completion(None), completion(["a"]), completion(7), completion("")]
        with mock.patch.object(remote, "SIDE_SECONDS", 0.2):
            for answered in [*(FAULTS[name] for name in faults), *odd]:
                self.fake.requests.clear()
                self.fake.side = lambda request, answered=answered: answered
                self.assertEqual(asyncio.run(self.call_all()), ["Leave", [], "Why?"])
                self.assertEqual(len(self.fake.requests), 3)

    async def call_all(self):
        model = RemoteModel()
        calls = model.title("Leave?"), model.followups(PROMPT, "Five."), model.search_query("Why?", TURNS)
        found = await asyncio.gather(*calls)
        await connection().client.close()
        return found

    def test_nothing_that_cannot_be_stored_comes_back(self):
        text = self.call("title", "Leave?", answered=completion("A\x00b"))
        self.assertEqual(text, "A\ufffdb")
        broken = status(200, b'{"choices": [{"message": {"content": "A \\ud83d"}}]}')
        self.call("title", "Leave?", answered=broken).encode()

    def test_a_member_that_the_model_refuses_is_left_out(self):
        async def behave(exchange):
            refused = "max_tokens" in exchange.request.body
            await (refused_parameter("max_tokens") if refused else completion("Leave days"))(exchange)

        self.assertEqual(self.call("title", "Leave?", answered=behave), "Leave days")
        self.assertEqual(len(self.fake.requests), 2)


class SideTextTests(SimpleTestCase):
    def test_reasoning_is_left_out(self):
        for text in (
            "<think>Hm.\nA title?</think>\n\nLeave days",
            "Hm.</think>Leave days",
            "<thinking>Hm</thinking> Leave days",
        ):
            self.assertEqual(side_texts.title(text), "Leave days")
        self.assertEqual(side_texts.title("<think>Hm, and then the tokens were"), "")
        self.assertEqual(side_texts.followups("<think>Is it?</think>Why?", ()), ["Why?"])

    def test_titles_lose_their_wrapping(self):
        for text in (
            "**Leave days**",
            "# Leave days",
            "“Leave days.”",
            "\n\nTitle: Leave  days\nMore",
            "`Leave days`",
        ):
            self.assertEqual(side_texts.title(text), "Leave days")
        self.assertEqual(side_texts.title("  \n "), "")

    def test_what_is_no_title_is_replaced_by_the_question(self):
        for text in ("word " * 11, "x" * 61, "Here is the revised sentence:"):
            self.assertEqual(side_texts.title(text), "")
        self.assertEqual(side_texts.title_of("how many\ndays?"), "How many days")
        self.assertEqual(side_texts.title_of("word " * 100), "W" + ("word " * 12).strip()[1:] + "…")
        self.assertEqual(side_texts.title_of("为" * 100), "为" * 60 + "…")

    def test_a_search_query_is_one_line(self):
        self.assertEqual(side_texts.search_query('Search query: "leave Japan"\nBecause…'), "leave Japan")
        self.assertEqual(side_texts.search_query("2026 budget"), "2026 budget")

    def test_followups_are_questions_without_numbers(self):
        text = '- Why?\n2. "How much?"\n(3) **Who?**\n10) When?'
        self.assertEqual(side_texts.followups(text, ()), ["Why?", "How much?", "Who?"])
        self.assertEqual(side_texts.followups("2026 budget: how much?", ()), ["2026 budget: how much?"])
        self.assertEqual(side_texts.followups("为什么？\nلماذا؟", ()), ["为什么？", "لماذا؟"])

    def test_followups_leave_out_statements_repetitions_and_what_was_asked(self):
        text = f"Here are three:\nWhy?\nwhy?\nLEAVE?\n{'long ' * 50}?"
        self.assertEqual(side_texts.followups(text, ("Leave?",)), ["Why?"])
