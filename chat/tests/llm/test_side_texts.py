"""Side texts of the remote model (search query, follow-ups, title), and odd replies to these requests."""

import asyncio
from unittest import mock

import pytest
from django.test import SimpleTestCase

from chat.llm import SearchQuery, remote, side_texts
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.tests.upstream_case import PROMPT, TURNS, FakeServerTestCase
from chat.tests.upstream_faults import FAULTS, completion, refused_parameter, status


class SideCallTests(FakeServerTestCase):
    """Search query, follow-ups and title are optional: the answer does without them."""

    def call(self, name, *values, answered):
        self.fake.side = lambda request: answered

        async def called():
            try:
                return await getattr(RemoteModel(), name)(*values)
            finally:
                await connection().server.close()

        return asyncio.run(called())

    def test_a_search_query_includes_the_conversation(self):
        query = self.call("search_query", "And there?", TURNS, answered=completion('"leave in Japan"'))
        self.assertEqual(query, SearchQuery("leave in Japan"))
        roles = [message["role"] for message in self.fake.requests[0].body["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "user", "assistant", "user"])

    def test_a_first_question_is_its_own_search_query(self):
        for question in ("Leave?", "Leave? Answer in one sentence."):
            query = self.call("search_query", question, (), answered=completion("x"))
            self.assertEqual(query, SearchQuery("Leave?"))
        self.assertEqual(self.fake.requests, [])

    def test_title_and_followups_are_cleaned(self):
        self.assertEqual(
            self.call("title", "Leave?", answered=completion('Title: "Leave days."')), "Leave days"
        )
        found = self.call("followups", PROMPT, "Five.", answered=completion("1. How many days?\n2) Why?"))
        self.assertEqual(found, ["Why?"])

    @pytest.mark.slow
    def test_every_failure_of_a_side_call_gives_an_empty_result(self):
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
        with mock.patch.object(remote, "SIDE_SECONDS", 0.8):
            for answered in [*(FAULTS[name] for name in faults), *odd]:
                self.fake.requests.clear()
                self.fake.side = lambda request, answered=answered: answered
                self.assertEqual(asyncio.run(self.call_all()), ["Leave", [], SearchQuery("Why?")])
                self.assertEqual(len(self.fake.requests), 3)

    async def call_all(self):
        model = RemoteModel()
        calls = model.title("Leave?"), model.followups(PROMPT, "Five."), model.search_query("Why?", TURNS)
        found = await asyncio.gather(*calls)
        await connection().server.close()
        return found

    def test_characters_that_cannot_be_stored_are_removed(self):
        text = self.call("title", "Leave?", answered=completion("A\x00b"))
        self.assertEqual(text, "A\ufffdb")
        broken = status(200, b'{"choices": [{"message": {"content": "A \\ud83d"}}]}')
        self.call("title", "Leave?", answered=broken).encode()

    def test_a_member_refused_by_the_model_is_left_out(self):
        async def behave(exchange):
            refused = "max_tokens" in exchange.request.body
            await (refused_parameter("max_tokens") if refused else completion("Leave days"))(exchange)

        self.assertEqual(self.call("title", "Leave?", answered=behave), "Leave days")
        self.assertEqual(len(self.fake.requests), 2)

    def test_concurrent_calls_are_all_repeated_without_a_refused_member(self):
        both_asked = asyncio.Barrier(3)

        async def behave(exchange):
            if "max_tokens" in exchange.request.body:
                await both_asked.wait()
                await refused_parameter("max_tokens")(exchange)
            else:
                await completion("Why?")(exchange)

        self.fake.side = lambda request: behave
        self.assertEqual(asyncio.run(self.call_all()), ["Why?", ["Why?"], SearchQuery("Why?")])


class SideTextTests(SimpleTestCase):
    def test_reasoning_is_left_out(self):
        for text in (
            "<think>Hm.\nA title?</think>\n\nLeave days",
            "Hm.</think>Leave days",
            "<thinking>Hm</thinking> Leave days",
        ):
            self.assertEqual(side_texts.title(text), "Leave days")
        self.assertEqual(side_texts.title("<think>Hm, and then the tokens were"), "")
        for nothing in ("{}", "[]", "—", "***"):
            self.assertEqual(side_texts.title(nothing), "", nothing)
        self.assertEqual(side_texts.title("年假"), "年假")
        self.assertEqual(side_texts.followups("<think>Is it?</think>Why?", ()), ["Why?"])

    def test_quotes_and_prefixes_of_titles_are_removed(self):
        for text in (
            "**Leave days**",
            "# Leave days",
            "“Leave days.”",
            "\n\nTitle: Leave  days\nMore",
            "`Leave days`",
        ):
            self.assertEqual(side_texts.title(text), "Leave days")
        self.assertEqual(side_texts.title("  \n "), "")

    def test_an_invalid_title_is_replaced_by_the_question(self):
        for text in ("word " * 11, "x" * 61, "Here is the revised sentence:"):
            self.assertEqual(side_texts.title(text), "")
        self.assertEqual(side_texts.title_of("how many\ndays?"), "How many days")
        self.assertEqual(side_texts.title_of("word " * 100), "W" + ("word " * 12).strip()[1:] + "…")
        self.assertEqual(side_texts.title_of("为" * 100), "为" * 60 + "…")
        self.assertEqual(side_texts.title_of("Answer in one sentence.\nHow many days?"), "How many days")

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
