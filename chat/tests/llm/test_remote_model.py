"""A model's server that fails in every way, and how the answer ends."""

import asyncio
import os
from unittest import mock

from django.test import override_settings

from chat.llm import (
    ModelError,
    TokenCount,
    completion_stream,
)
from chat.llm.chat_model import (
    End,
    Reasoning,
)
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.tests.upstream_case import LONG, PROMPT, QUICK, FakeServerTestCase
from chat.tests.upstream_faults import KEY, answer, chunk, event, raw
from chatsite.tests.limits import MARGIN_SECONDS


class AnswerTests(FakeServerTestCase):
    def test_text_usage_and_finish_reason_arrive(self):
        self.assertEqual(self.ask(answer("Hel", "lo")), ("Hello", None))
        self.assertEqual(self.others, [End("stop"), TokenCount(7, 2)])

    def test_the_proxy_of_the_environment_is_used(self):
        proxy = {"HTTP_PROXY": self.fake.url.removesuffix("/v1"), "NO_PROXY": ""}
        with mock.patch.dict(os.environ, proxy), override_settings(OPENAI_BASE_URL="http://model.invalid/v1"):
            self.assertEqual(self.ask(answer("Hello")), ("Hello", None))
        self.assertEqual(self.fake.streams[0].headers["host"], "model.invalid")

    def test_a_server_on_this_machine_is_reached_without_a_proxy(self):
        proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "", "no_proxy": ""}
        with mock.patch.dict(os.environ, proxy):
            self.assertEqual(self.ask(answer("Hello")), ("Hello", None))

    def test_the_request_holds_the_prompt_and_the_settings(self):
        self.ask()
        request = self.fake.streams[0]
        self.assertEqual(request.headers["authorization"], f"Bearer {KEY}")
        self.assertEqual((request.body["model"], request.body["temperature"]), ("fake", 0.3))
        self.assertEqual([message["role"] for message in request.body["messages"]], ["system", "user"])
        self.assertIn("How many days?\n\nSources:\nguide.md: ", request.prompt)

    def test_characters_split_over_packets_are_joined(self):
        data = chunk("Grüße 你好 🙂") + chunk(reason="stop")
        pieces = [data[place : place + 1] for place in range(len(data))]
        self.assertEqual(self.ask(raw(*pieces, pause=0.0005)), ("Grüße 你好 🙂", None))

    def test_a_length_reason_is_passed_on(self):
        self.assertEqual(self.ask("length"), ("Half an answer", None))
        self.assertEqual(self.others[0], End("length"))

    def test_reasoning_is_not_text(self):
        stream = raw(chunk(reasoning_content="Let me think."), chunk("Five days."), chunk(reason="stop"))
        self.assertEqual(self.ask(stream), ("Five days.", None))
        self.assertEqual(self.others, [Reasoning(), End("stop")])

    def test_nothing_after_the_end_of_the_text_undoes_it(self):
        whole = [chunk("Five days."), chunk(reason="stop")]
        for after in (b"data: {broken\n\n", event({"error": {"message": "late"}}), b"data: cut"):
            self.assertEqual(self.ask(raw(*whole, after)), ("Five days.", None))

    def test_a_connection_left_open_after_the_end_is_closed(self):
        async def hang(exchange):
            await raw(chunk("Five days."), chunk(reason="stop"))(exchange)
            await exchange.gone()

        with mock.patch.object(completion_stream, "USAGE_SECONDS", 0.2):
            self.assertEqual(self.ask(hang), ("Five days.", None))
        self.assertLess(self.seconds, 2 + MARGIN_SECONDS)

    def test_servers_with_other_addresses_share_no_client(self):
        async def both():
            first = connection()
            with override_settings(OPENAI_BASE_URL="http://127.0.0.1:1/v1"):
                second = connection()
            return first, second, connection()

        first, second, again = asyncio.run(both())
        self.assertIs(first, again)
        self.assertIsNot(first, second)


class FaultTests(FakeServerTestCase):
    """Faults that are not tested on the real site, as in chatsite/tests/failures/test_upstream_faults.py."""

    deadlines = QUICK

    def fails(self, fault, text, code, calls=1, within=1.8):
        self.assertEqual(self.ask(fault), (text, code))
        self.assertEqual(self.calls(), calls)
        self.assertLess(self.seconds, within + MARGIN_SECONDS)

    def test_headers_and_first_token_share_one_deadline(self):
        async def late(exchange):
            await asyncio.sleep(3.8)
            await exchange.head()
            await exchange.gone()

        with override_settings(ANSWER_FIRST_TOKEN_SECONDS=4, ANSWER_TOTAL_SECONDS=60):
            self.assertEqual(self.ask(late), ("", "upstream_timeout"))
        self.assertLess(self.seconds, 3.8 + 4)  # two separate deadlines would take this long

    @override_settings(**LONG)
    def test_json_of_another_form_is_a_protocol_error(self):
        self.fails("wrong_shapes", "Half an ", "upstream_protocol")
        for value in (
            {"choices": {"a": 1}},
            {"choices": [{"delta": "x"}]},
            {"usage": {"prompt_tokens": "many"}},
        ):
            self.assertEqual(self.ask(raw(event(value))), ("", "upstream_protocol"))

    def test_an_address_or_key_that_cannot_be_sent_is_a_failure(self):
        for wrong in ({"OPENAI_BASE_URL": "http://[::/v1"}, {"OPENAI_API_KEY": "schlüssel"}):
            with override_settings(**wrong):
                self.fake.script()
                with self.assertRaises(ModelError) as caught:
                    asyncio.run(anext(RemoteModel().answer(PROMPT)))
                self.assertEqual(caught.exception.code, "upstream_misconfigured")
        self.assertEqual(self.calls(), 0)

    @override_settings(**LONG)
    def test_a_failure_logs_its_cause_and_quotes_nothing(self):
        self.fails("no_such_model", "", "upstream_misconfigured")
        self.assertEqual(self.error.summary, "upstream_misconfigured (APIStatusError 404, model_not_found)")
