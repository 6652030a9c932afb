import asyncio
import json
import random
from unittest import mock

import pytest
from django.conf import settings
from django.test import SimpleTestCase

from chat.llm.chat_model import (
    End,
    ModelError,
    Reasoning,
    Text,
    TokenCount,
)
from chat.llm.completion_stream import (
    GATHER_SECONDS,
    MAX_GATHER_SECONDS,
    MAX_STREAM_BYTES,
    Clock,
    Deadlines,
    GatheredBody,
    parts,
)
from chat.llm.sse import MAX_EVENT_BYTES, EventParser
from chatsite.http.overload import Backlog

PATIENT = Deadlines(first=60, idle=60, total=60)
QUICK = Deadlines(first=0.2, idle=0.1, total=1.0)


def data(**members):
    return b"data: " + json.dumps(members).encode() + b"\n\n"


def delta(reason=None, index=0, **members):
    return data(choices=[{"index": index, "delta": members, "finish_reason": reason}])


def event(content=None, reason=None):
    return delta(reason) if content is None else delta(reason, content=content)


async def arriving(chunks):
    for chunk in chunks:
        if isinstance(chunk, float):
            await asyncio.sleep(chunk)
        else:
            yield chunk


def read(*chunks, deadlines=QUICK):
    async def collect():
        found = []
        try:
            async for part in parts(GatheredBody(arriving(chunks), 0), Clock(deadlines)):
                found.append(part)
        except ModelError as error:
            found.append(error.code)
        return found

    return asyncio.run(collect())


class EventStreamTests(SimpleTestCase):
    def test_text_usage_and_end_are_read(self):
        usage = b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}\n\n'
        found = read(event("Hel"), event("lo"), event(reason="stop"), usage, b"data: [DONE]\n\n")
        self.assertEqual(found, [Text("Hel"), Text("lo"), End("stop"), TokenCount(7, 2)])

    def test_impossible_token_counts_are_ignored(self):
        for number in (10**23, -1):
            usage = {"prompt_tokens": number, "completion_tokens": 2}
            line = f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode()
            found = read(event("Hello", reason="stop"), line, b"data: [DONE]\n\n")
            self.assertEqual(found, [Text("Hello"), End("stop")])

    def test_only_the_models_finish_reason_completes_an_answer(self):
        for reason, code in {
            "error": "interrupted",
            "abort": "interrupted",
            "what nobody knows": "interrupted",
            "tool_calls": "upstream_protocol",
            "function_call": "upstream_protocol",
            "content_filter": "content_filter",
        }.items():
            self.assertEqual(read(event("Half", reason)), [Text("Half"), code], reason)
        for reason in ("stop", "length"):
            self.assertEqual(read(event("All", reason)), [Text("All"), End(reason)])

    def test_an_answer_has_a_budget_of_bytes_whatever_they_hold(self):
        for piece in (
            b": " + b"x" * 65_530 + b"\n\n",
            delta(reasoning_content="x" * 65_000),
            event("x" * 65_000),
        ):
            given = 0

            async def flood(piece=piece):
                nonlocal given
                while given < 2 * MAX_STREAM_BYTES:
                    given += len(piece)
                    yield piece

            async def collect(flood=flood):
                async for _ in parts(GatheredBody(flood(), 0), Clock(PATIENT)):
                    pass

            with self.assertRaises(ModelError) as caught:
                asyncio.run(collect())
            self.assertEqual(caught.exception.code, "upstream_protocol")
            self.assertLessEqual(given, MAX_STREAM_BYTES + len(piece))

    def test_data_after_the_end_shares_the_budget_and_does_not_undo_the_answer(self):
        given = 0

        def pieces():
            nonlocal given
            yield from (event("Five days."), event(reason="stop"))
            while given < 2 * MAX_STREAM_BYTES:
                given += 65_534
                yield b": " + b"x" * 65_530 + b"\n\n"

        async def collect():
            return [part async for part in parts(GatheredBody(arriving(pieces()), 0), Clock(PATIENT))]

        self.assertEqual(asyncio.run(collect()), [Text("Five days."), End("stop")])
        self.assertLessEqual(given, MAX_STREAM_BYTES + 65_534)

    def test_other_tasks_get_a_turn_after_each_piece_without_content(self):
        turns = 0

        async def count_turns():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def collect():
            counting = asyncio.create_task(count_turns())
            pieces = [b": nothing\n\n" * 100] * 50 + [event("Five days."), event(reason="stop")]
            found = [part async for part in parts(GatheredBody(arriving(pieces), 0), Clock(PATIENT))]
            counting.cancel()
            return found

        self.assertEqual(asyncio.run(collect()), [Text("Five days."), End("stop")])
        self.assertGreaterEqual(turns, 50)

    def test_unrequested_tool_calls_and_audio_are_not_an_answer(self):
        call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for members in (
            {"tool_calls": [call]},
            {"function_call": {"name": "f"}},
            {"audio": {"data": "AA=="}},
        ):
            self.assertEqual(
                read(event("a"), delta(**members), event(reason="stop"))[1:], ["upstream_protocol"]
            )
        self.assertEqual(
            read(delta(content="a", tool_calls=[]), event(reason="stop")), [Text("a"), End("stop")]
        )

    def test_content_may_be_a_list_of_text_parts_and_all_of_it_is_kept(self):
        parts_of_two = [{"type": "text", "text": "Five "}, {"type": "text", "text": "days."}]
        self.assertEqual(
            read(event(parts_of_two), event(reason="stop")), [Text("Five "), Text("days."), End("stop")]
        )
        thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, parts_of_two[0]]
        self.assertEqual(read(event(thinking)), [Reasoning(), Text("Five ")])
        for unread in ([{"type": "image_url"}], [{"type": "text"}], ["text"], [None], {"text": "a"}, 5, True):
            self.assertEqual(read(event(unread), event(reason="stop")), ["upstream_protocol"], unread)

    def test_a_refusal_text_is_the_answer(self):
        self.assertEqual(
            read(delta(content=None, refusal="I cannot say."), event(reason="stop")),
            [Text("I cannot say."), End("stop")],
        )

    def test_other_choices_than_the_first_are_ignored(self):
        both = data(
            choices=[{"index": 1, "delta": {"content": "No"}}, {"index": 0, "delta": {"content": "Yes"}}]
        )
        self.assertEqual(
            read(both, delta("error", index=1), event(reason="stop")), [Text("Yes"), End("stop")]
        )
        self.assertEqual(read(data(choices=[{"delta": {"content": "a"}, "finish_reason": "stop"}])),
                         [Text("a"), End("stop")])  # fmt: skip
        self.assertEqual(read(data(choices=[{"index": "0", "delta": {}}])), ["upstream_protocol"])

    def test_reasoning_defers_the_first_deadline_and_the_total_one_ends_it(self):
        for name in ("reasoning_content", "reasoning"):
            thinking = [item for _ in range(8) for item in (delta(**{name: "Hm. "}), 0.05)]
            self.assertEqual(
                read(*thinking, event("Five days."), event(reason="stop")),
                [Reasoning(), Text("Five days."), End("stop")],
            )
            self.assertEqual(read(*thinking * 4)[1:], ["upstream_timeout"])

    def test_reasoning_after_the_first_text_is_not_content(self):
        thinking = [item for _ in range(8) for item in (delta(reasoning="Hm. "), 0.03)]
        self.assertEqual(read(event("Five"), *thinking), [Text("Five"), "upstream_timeout"])

    def test_characters_split_over_chunks_are_joined(self):
        raw = event("Grüße 你好 🙂") + event(reason="stop") + b"data: [DONE]\n\n"
        generator = random.Random(3)
        for _ in range(50):
            cuts = sorted(generator.sample(range(1, len(raw)), 12))
            pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
            self.assertEqual(read(*pieces), [Text("Grüße 你好 🙂"), End("stop")])

    def test_a_truncated_stream_has_no_end(self):
        self.assertEqual(read(event("Half")), [Text("Half")])

    def test_a_cut_inside_a_line_is_a_protocol_error_after_the_text(self):
        self.assertEqual(read(event("Half"), event("lost")[:20]), [Text("Half"), "upstream_protocol"])

    def test_an_html_page_is_not_a_stream(self):
        self.assertEqual(read(b"<!doctype html>\n<title>Welcome</title>\n"), ["upstream_protocol"])

    def test_a_json_answer_is_not_a_stream(self):
        self.assertEqual(read(b'{"choices": [{"message": {"content": "x"}}]}'), ["upstream_protocol"])

    def test_broken_json_and_broken_utf8_are_protocol_errors(self):
        self.assertEqual(read(b"data: {broken\n\n"), ["upstream_protocol"])
        self.assertEqual(
            read(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'), ["upstream_protocol"]
        )

    def test_an_error_object_in_the_stream_ends_it(self):
        self.assertEqual(
            read(event("a"), b'data: {"error": {"message": "key sk-123"}}\n\n'),
            [Text("a"), "upstream_unavailable"],
        )

    def test_an_error_by_its_event_or_its_field_ends_the_stream_too(self):
        for told in (b'event: error\ndata: {"message": "overloaded"}\n\n', b'error: {"code": 500}\n\n'):
            self.assertEqual(read(event("a"), told), [Text("a"), "upstream_unavailable"])
        self.assertEqual(read(data(error={"code": 429, "message": "slow down"})), ["rate_limited"])

    def test_the_content_filter_is_distinguished(self):
        self.assertEqual(read(event("a"), event(reason="content_filter")), [Text("a"), "content_filter"])

    def test_keep_alive_comments_do_not_count_as_content(self):
        alive = [item for _ in range(20) for item in (b": keep-alive\n\n", 0.02)]
        self.assertEqual(read(*alive, event("late")), ["upstream_timeout"])
        self.assertEqual(read(event("a"), *alive, event("late")), [Text("a"), "upstream_timeout"])

    def test_a_dripping_stream_ends_at_the_total_deadline(self):
        drip = [item for _ in range(40) for item in (event("x"), 0.02)]
        found = read(*drip, deadlines=Deadlines(first=0.2, idle=0.2, total=0.3))
        self.assertEqual(found[-1], "upstream_timeout")
        self.assertGreater(len(found), 5)

    def test_a_line_without_end_is_refused(self):
        self.assertEqual(read(b"data: ", *[b"x" * 300_000] * 8), ["upstream_protocol"])

    def test_nul_is_replaced(self):
        self.assertEqual(read(event("a\x00b"), event(reason="stop")), [Text("a\ufffdb"), End("stop")])

    def test_a_surrogate_pair_split_over_events_is_joined(self):
        halves = event("a\ud83d"), event("\ude42b")
        self.assertEqual(read(*halves, event(reason="stop")), [Text("a"), Text("🙂b"), End("stop")])

    def test_half_a_character_is_replaced_at_the_end_and_left_out_of_truncated_text(self):
        half = event("a\ud83d")
        self.assertEqual(read(half, event(reason="stop")), [Text("a"), Text("\ufffd"), End("stop")])
        self.assertEqual(read(half), [Text("a")])
        self.assertEqual(
            read(half, event("b"), event("\ude42")), [Text("a"), Text("\ufffdb"), Text("\ufffd")]
        )


def parsed(*pieces):
    parser, found = EventParser(), []
    for piece in pieces:
        found += parser.feed(piece)
    return [told for _, told in [*found, *parser.feed(b"", last=True)]]


class ServerSentEventTests(SimpleTestCase):
    """Modelled on the tests of browsers (web-platform-tests, eventsource)."""

    def test_lines_end_with_either_character_or_with_both(self):
        for stream in (
            b"data: a\n\ndata: b\n\n",
            b"data: a\r\rdata: b\r\r",
            b"data: a\r\n\r\ndata: b\r\n\r\n",
            b"data: a\n\r\ndata: b\r\r\n",
        ):
            for size in (1, 2, 3, len(stream)):
                pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
                self.assertEqual(parsed(*pieces), [b"a", b"b"], (stream, size))

    def test_several_lines_of_data_are_one_event(self):
        self.assertEqual(parsed(b"data:msg\ndata:\ndata\ndata: end\n\n"), [b"msg\n\n\nend"])
        pretty = b"".join(
            b"data: %b\n" % line for line in json.dumps({"a": [1]}, indent=1).encode().split(b"\n")
        )
        self.assertEqual(json.loads(parsed(pretty, b"\n")[0]), {"a": [1]})

    def test_one_space_after_the_colon_comments_and_other_fields_are_ignored(self):
        stream = b"data:  a\n:data: no\n: \nid: 1\nretry: 5\nwhat: ever\nevent: message\ndata:b\n\n"
        self.assertEqual(parsed(stream), [b" a\nb"])

    def test_an_event_without_data_is_ignored(self):
        self.assertEqual(parsed(b"event: ping\n\ndata:\n\ndata\n\ndata: a\n\n"), [b"a"])

    def test_a_byte_order_mark_counts_only_at_the_beginning(self):
        mark = b"\xef\xbb\xbf"
        self.assertEqual(parsed(mark[:1], mark[1:], b"data: a\n\n", mark + b"data: b\n\n"), [b"a"])

    def test_events_with_single_line_feeds_are_sent_as_they_arrive(self):
        parser = EventParser()
        self.assertEqual(parser.feed(b'data: {"a": 1}\n'), [(b"", b'{"a": 1}')])
        self.assertEqual(
            parser.feed(b'data: {"b": 2}\ndata: {"c": 3}\n'), [(b"", b'{"b": 2}'), (b"", b'{"c": 3}')]
        )
        self.assertEqual((parser.feed(b"data: [DONE]\n"), parser.done), ([], True))

    @pytest.mark.slow
    def test_an_event_of_many_lines_is_bounded_and_takes_linear_time(self):
        parser, lines = EventParser(), b"data: {\n" * 1_000
        with self.assertRaises(ModelError):
            for _ in range(MAX_EVENT_BYTES):
                parser.feed(lines)


class GatheringTests(SimpleTestCase):
    def now(self):
        return self.clock

    async def waits(self, late, reads=8, first_at_once=False):
        """How long each read of a stream waits for more text if timers are `late` by so many seconds."""
        sleep, waits = asyncio.sleep, []

        async def late_sleep(seconds):
            waits.append(round(seconds, 1))
            await sleep(0)
            self.clock += seconds + late

        body = GatheredBody(arriving([b"a"] * (reads + 1)))
        with (
            mock.patch.object(asyncio, "sleep", late_sleep),
            mock.patch.object(asyncio.get_running_loop(), "time", side_effect=self.now),
        ):
            for number in range(reads + 1):
                await body.read(self.clock + 1_000, at_once=first_at_once and number == 0)
        return waits

    async def test_the_read_after_the_first_text_waits_like_every_other(self):
        self.clock = 0.0
        self.assertEqual(await self.waits(late=0.01, reads=2, first_at_once=True), [GATHER_SECONDS] * 2)

    async def test_a_busy_process_reads_each_stream_less_often_up_to_a_limit(self):
        self.clock = 0.0
        self.assertEqual(await self.waits(late=0.01), [GATHER_SECONDS] * 8)
        self.assertEqual(await self.waits(late=0.3), [0.2, 0.4, *[MAX_GATHER_SECONDS] * 6])
        with mock.patch.object(Backlog, "is_crowded", True):  # questions are waiting to start
            self.assertEqual(await self.waits(late=0.01), [0.2, 0.4, *[MAX_GATHER_SECONDS] * 6])
        # Text reaches the database within a second.
        self.assertLessEqual(MAX_GATHER_SECONDS + 2 * settings.JOURNAL_FLUSH_SECONDS, 1.0)
