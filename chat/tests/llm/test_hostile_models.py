"""A model's server that tries to fill this site's memory, or to get text into its log."""

import asyncio
import gzip
import json
import time
from unittest.mock import patch

import pytest
from django.test import override_settings

from chat.llm import ModelError
from chat.llm.remote import RemoteModel
from chat.tests.upstream_case import LONG, PROMPT, QUICK, FakeServerTestCase
from chat.tests.upstream_faults import KEY, chunk, event, raw, status
from chatsite.tests.limits import HANG_SECONDS

MUCH = 32_000_000  # bytes: more than the site reads and the sockets buffer
GOOD = chunk("Yes.") + chunk(reason="stop") + event("[DONE]").replace(b'"', b"")


def flood(code, piece, *first, kind="text/event-stream"):
    """An endless body that repeats these bytes."""

    async def behave(exchange):
        await exchange.head(code, kind)
        for data in first:
            await exchange.send(data)
        while True:
            await exchange.send(piece)

    return behave


async def trailers(exchange):
    """Endless headers after the body (trailers)."""
    text = chunk("Begun ")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    await exchange.send(head + b"%x\r\n%b\r\n" % (len(text), text))
    await asyncio.sleep(0.1)  # the text is read before its stream turns out to be broken
    await exchange.send(b"0\r\n")
    while True:
        await exchange.send(b"X-More: and more\r\n" * 3000)


def packed(data):
    return gzip.compress(data, 1), "Content-Encoding: gzip"


class HostileModelTests(FakeServerTestCase):
    deadlines = QUICK

    def sent(self):
        return sum(request.sent for request in self.fake.requests)

    @override_settings(ANSWER_FIRST_TOKEN_SECONDS=HANG_SECONDS, ANSWER_TOTAL_SECONDS=HANG_SECONDS)
    def test_an_endless_error_is_read_up_to_the_limit_of_errors(self):
        for code, told in ((400, "upstream_misconfigured"), (500, "upstream_unavailable")):
            with self.subTest(code):
                self.assertEqual(self.ask(flood(code, b"x" * 65536)), ("", told))
        self.assertLess(self.sent(), 2 * MUCH)

    @override_settings(ANSWER_IDLE_SECONDS=HANG_SECONDS, ANSWER_TOTAL_SECONDS=HANG_SECONDS)
    def test_endless_trailers_are_not_kept(self):
        self.assertEqual(self.ask(trailers), ("Begun ", "interrupted"))
        self.assertLess(self.sent(), MUCH)

    @pytest.mark.slow
    def test_a_flood_of_comments_does_not_move_the_deadline(self):
        comments = b": still here\n" * 4000
        with patch("chat.llm.completion_stream.MAX_STREAM_BYTES", 10**12):
            self.assertEqual(self.ask(flood(200, comments)), ("", "upstream_timeout"))
            self.assertEqual(self.ask(flood(200, comments, chunk("Begun "))), ("Begun ", "upstream_timeout"))

    @override_settings(ANSWER_FIRST_TOKEN_SECONDS=HANG_SECONDS, ANSWER_TOTAL_SECONDS=HANG_SECONDS)
    def test_unrequested_compression_is_not_decompressed(self):
        data, header = packed(GOOD)
        self.assertEqual(self.ask(raw_with(header, data)), ("", "upstream_protocol"))
        data, header = packed(json.dumps({"error": {"message": "context length"}}).encode())
        self.assertEqual(self.ask(status(400, data, header)), ("", "upstream_misconfigured"))

    def test_an_endless_or_deeply_nested_title_is_ignored(self):
        for side in (flood(200, b"x" * 65536), status(200, b'{"choices":' + b"[" * 400_000)):
            self.fake.side = lambda _, side=side: side
            before = time.monotonic()
            self.assertEqual(asyncio.run(RemoteModel().title("How much?")), "How much")
            self.assertLess(time.monotonic() - before, 5)
        self.assertLess(self.sent(), MUCH)

    def test_an_error_in_another_form_is_a_refusal(self):
        error = {"message": f"Incorrect API key: {KEY}", "param": ["x"], "code": {"a": 1}, "type": ["y"]}
        self.assertEqual(self.ask(status(400, {"error": error})), ("", "upstream_misconfigured"))

    def test_an_endless_error_leaves_no_connection_open(self):
        async def stalls(exchange):
            await exchange.head(500, "application/json", "Content-Length: 100")
            await exchange.send(b"{")
            await exchange.gone()

        async def ask():
            with self.assertRaises(ModelError) as caught:
                async for _ in RemoteModel().answer(PROMPT):
                    pass
            return caught.exception.code, await asyncio.to_thread(self.fake.streams[0].closed.wait, 2)

        self.fake.script(stalls)
        self.assertEqual(asyncio.run(ask()), ("upstream_timeout", True))

    @override_settings(**LONG)
    def test_a_byte_order_mark_before_the_stream_is_skipped(self):
        self.assertEqual(self.ask(raw(b"\xef\xbb\xbf" + GOOD)), ("Yes.", None))


def raw_with(header, data):
    async def behave(exchange):
        await exchange.head(200, "text/event-stream", header)
        await exchange.send(data)

    return behave
