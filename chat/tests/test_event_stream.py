import asyncio
import json
import random

from django.test import SimpleTestCase

from chat.llm.event_stream import Clock, Deadlines, Iterated, parts
from chat.llm.protocol import End, ModelError, Text, TokenCount

QUICK = Deadlines(first=0.2, idle=0.1, total=1.0)


def event(content=None, reason=None, **more):
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


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
            async for part in parts(Iterated(arriving(chunks)), Clock(deadlines)):
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

    def test_characters_split_over_chunks_are_whole(self):
        raw = event("Grüße 你好 🙂") + event(reason="stop") + b"data: [DONE]\n\n"
        generator = random.Random(3)
        for _ in range(50):
            cuts = sorted(generator.sample(range(1, len(raw)), 12))
            pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
            self.assertEqual(read(*pieces), [Text("Grüße 你好 🙂"), End("stop")])

    def test_a_stream_that_is_cut_has_no_end(self):
        self.assertEqual(read(event("Half")), [Text("Half")])

    def test_a_cut_inside_a_line_is_a_protocol_error_after_the_text(self):
        self.assertEqual(read(event("Half"), event("lost")[:20]), [Text("Half"), "upstream_protocol"])

    def test_an_html_page_is_no_stream(self):
        self.assertEqual(read(b"<!doctype html>\n<title>Welcome</title>\n"), ["upstream_protocol"])

    def test_a_json_answer_is_no_stream(self):
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

    def test_the_content_filter_is_told_apart(self):
        self.assertEqual(read(event("a"), event(reason="content_filter")), [Text("a"), "content_filter"])

    def test_keep_alive_comments_do_not_count_as_content(self):
        alive = [item for _ in range(20) for item in (b": keep-alive\n\n", 0.02)]
        self.assertEqual(read(*alive, event("late")), ["upstream_timeout"])
        self.assertEqual(read(event("a"), *alive, event("late")), [Text("a"), "upstream_timeout"])

    def test_dripping_ends_with_the_total_time(self):
        drip = [item for _ in range(40) for item in (event("x"), 0.02)]
        found = read(*drip, deadlines=Deadlines(first=0.2, idle=0.2, total=0.3))
        self.assertEqual(found[-1], "upstream_timeout")
        self.assertGreater(len(found), 5)

    def test_a_line_without_end_is_refused(self):
        self.assertEqual(read(b"data: ", *[b"x" * 300_000] * 8), ["upstream_protocol"])

    def test_nul_becomes_storable(self):
        self.assertEqual(read(event("a\x00b"), event(reason="stop")), [Text("a\ufffdb"), End("stop")])

    def test_a_character_of_two_surrogates_that_is_split_over_events_is_whole(self):
        halves = event("a\ud83d"), event("\ude42b")
        self.assertEqual(read(*halves, event(reason="stop")), [Text("a"), Text("🙂b"), End("stop")])

    def test_half_a_character_is_replaced_where_the_text_ends_and_left_out_where_it_is_cut(self):
        half = event("a\ud83d")
        self.assertEqual(read(half, event(reason="stop")), [Text("a"), Text("\ufffd"), End("stop")])
        self.assertEqual(read(half), [Text("a")])
        self.assertEqual(
            read(half, event("b"), event("\ude42")), [Text("a"), Text("\ufffdb"), Text("\ufffd")]
        )
