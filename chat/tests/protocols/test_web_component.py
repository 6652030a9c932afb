"""Streams for the published web component, as it reads them (see chat/protocols/web_component.py)."""

import random
import re

from django.test import SimpleTestCase

from chat.events import (
    ContextReady,
    Failed,
    Finished,
    FollowUps,
    MessageDone,
    MessageStarted,
    RunResult,
    Started,
    TextDelta,
    Thought,
    Usage,
)
from chat.protocols import (
    ChatCompletions,
    WebComponent,
    choose,
)
from chat.protocols.web_component import (
    Markup,
    plain_text,
)
from chat.tests.sources import source

FILE = "leave 2026.pdf"
LABEL = f"{FILE}#page=4"
SHOWN_FILE = "leave 𝟤𝟢𝟤𝟨.pdf"
TEXT = f"Next year 25 days [{LABEL}]. As a [note]: <b>x</b> & y << 3."
STEPS = "Do this:\n\n1. Ask [plain.md].\n2. Wait.\n\nThen go."
SEED = 20261122


def sources(*labels):
    return tuple(source(label=label, sourcefile=label.partition("#")[0]) for label in labels)


def cited(name):
    """The events of an answer that cites a file of this name."""
    return [
        Started("r", "c", "q", "a", "2026-01-01T00:00:00.000Z", "m"),
        ContextReady(sources(name), ()),
        TextDelta(f"Yes [{name}]."),
        MessageDone("stop", (name,)),
        Finished("complete"),
    ]


def exchange(*words, questions=("Are 3 enough: yes?", "Next Question?")):
    return [
        Started("r", "c", "q", "a", "2026-01-01T00:00:00.000Z", "m"),
        ContextReady(
            sources(LABEL, "plain.md"),
            (
                Thought("Original user query", "<b>Why</b>\nso?"),
                Thought("Prompt", ["{'role': 'system'}"], {"top": 3}),
            ),
        ),
        *(TextDelta(word) for word in words),
        MessageDone("stop", ()),
        Usage(7, 2),
        FollowUps(questions),
        Finished("complete"),
    ]  # fmt: skip


def body(**members):
    asked = {"messages": [{"role": "user", "content": "How many?"}], "stream": True}
    return asked | {"context": {"approach": "rrr"}} | members


def chunks(events, protocol=None):
    encoder = (protocol or WebComponent()).encoder()
    return [chunk for event in events for chunk in encoder.encode(event)]


def contents(events):
    return [
        content
        for chunk in chunks(events)
        if "choices" in chunk and (content := chunk["choices"][0]["delta"].get("content"))
    ]


def choice_of(events):
    folded = RunResult()
    for event in events:
        folded.add(event)
    return WebComponent().full_response(folded)[1]["choices"][0]


class ChoiceTests(SimpleTestCase):
    def test_a_request_with_an_approach_comes_from_the_component(self):
        self.assertIsInstance(choose({}, body()), WebComponent)
        for context in ({}, None, [], {"overrides": {"approach": "rrr"}}):
            self.assertIs(type(choose({}, body(context=context))), ChatCompletions)

    def test_other_clients_of_the_protocol_get_the_text_unchanged(self):
        told = chunks(exchange(TEXT), ChatCompletions())
        self.assertIn(TEXT, [chunk["choices"][0]["delta"].get("content") for chunk in told])


class StreamTests(SimpleTestCase):
    def test_no_piece_has_text_that_the_component_would_drop(self):
        text = contents(exchange(TEXT, STEPS, questions=()))
        for piece in text:
            self.assertIsNone(re.search(r"[0-9]|Next|<<|>\n", piece), piece)

    def test_a_citation_is_a_separate_piece_with_only_the_file_name(self):
        pieces = contents(exchange(f"Of 25 days [{LABEL}][plain.md].", questions=()))
        self.assertEqual(pieces, ["Of 𝟤𝟧 days ", f"[{SHOWN_FILE}]", "[plain.md]", "."])

    def test_only_citations_get_brackets(self):
        self.assertEqual("".join(contents(exchange("a [note] b", questions=()))), "a &lbrack;note&rbrack; b")

    def test_markup_of_a_model_is_text(self):
        self.assertEqual(
            "".join(contents(exchange("<img src=x onerror=alert()>", questions=()))),
            "&lt;img src=x onerror=alert()&gt;",
        )

    def test_a_numbered_list_is_a_list(self):
        shown = "".join(contents(exchange(STEPS, questions=())))
        self.assertEqual(
            re.sub(r' class="[^"]*"', "", shown),
            "Do this:<ol><li>Ask [plain.md].</li><li>Wait.</li></ol>Then go.",
        )

    def test_numbers_outside_lists_are_kept(self):
        for text in ("3. May is a holiday.", "1.5 days", "12) no", "10. 11. and"):
            self.assertEqual(plain_text("".join(contents(exchange(text, questions=())))), text)

    def test_the_pieces_do_not_depend_on_the_split_of_the_models_text(self):
        text = f"{STEPS}\n\n{TEXT}\n1. One\nmore\n\n   still one\n2. [{LABEL}] two\n\n 12. [open"
        expected = "".join(contents(exchange(text, questions=())))
        seeded = random.Random(SEED)
        for _ in range(200):
            cuts = sorted(seeded.sample(range(1, len(text)), seeded.randrange(1, 40)))
            words = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
            self.assertEqual("".join(contents(exchange(*words, questions=()))), expected, (SEED, words))

    def test_follow_up_questions_end_the_text_in_pieces(self):
        pieces = contents(exchange("Yes."))
        self.assertEqual(
            pieces,
            ["Yes.", "<<", "Are 𝟥 enough: yes?", ">>\n", "<<", "N", "ext Q", "uestion?", ">>"],
        )
        *_, listed, last = chunks(exchange("Yes."))
        self.assertEqual(listed["choices"][0]["context"]["followup_questions"][1], "Next Question?")
        self.assertEqual((last["choices"][0]["finish_reason"], last["usage"]["total_tokens"]), ("stop", 9))

    def test_thoughts_are_html_for_the_component_and_a_list_as_documented(self):
        first = chunks(exchange("Yes."))[0]["choices"][0]
        told = first["delta"]["context"]["thoughts"]
        self.assertIn("<b>Original user query</b><br>&lt;b&gt;Why&lt;/b&gt;<br>so?", told)
        self.assertIn("top: 3", told)
        self.assertIsInstance(first["context"]["thoughts"], list)
        self.assertEqual(first["delta"]["context"]["data_points"], first["context"]["data_points"])

    def test_a_failure_sends_held_text_and_then_the_error(self):
        *_, piece, error = chunks(
            [*exchange("a")[:2], TextDelta("Half ["), Failed("interrupted", "interrupted")]
        )
        self.assertEqual(piece["choices"][0]["delta"]["content"], "&lbrack;")
        self.assertEqual((error["statusCode"], error["message"]), (502, error["error"]))

    def test_a_stopped_answer_sends_held_text_and_then_the_end(self):
        *_, piece, end = chunks([*exchange("a")[:2], TextDelta("Half ["), Finished("stopped")])
        self.assertEqual(piece["choices"][0]["delta"]["content"], "&lbrack;")
        self.assertEqual(end["choices"][0]["finish_reason"], "stop")

    def test_the_citations_of_every_agent_are_known(self):
        events = exchange("One.")[:4]
        events += [
            MessageStarted("m2", "Second", "2026-01-01T00:00:01.000Z"),
            ContextReady(sources("second.md"), ()),
            TextDelta("Two [second.md]."),
        ]
        self.assertIn("[second.md]", contents(events))

    def test_a_long_hostile_text_takes_linear_time(self):
        markup = Markup(streamed=True)
        for piece in (
            "1. ",
            *[" "] * 20_000,
            *["["] * 20_000,
            *["1"] * 20_000,
            "<" * 200_000,
            "\n" * 200_000,
        ):
            "".join(markup.feed(piece))


class WholeTests(SimpleTestCase):
    def test_citations_are_marked_by_file_name(self):
        content = choice_of(exchange(f"Of 25 [{LABEL}] and [plain.md] [{LABEL}].", questions=()))["message"][
            "content"
        ]
        self.assertEqual(re.findall(r"\[(.*?)]", content), [FILE, "plain.md", FILE])
        self.assertEqual(re.findall(r'<sup class="citation">(\d)</sup>', content), ["1", "2", "1"])

    def test_the_name_of_a_file_is_text_in_whole_answers_and_in_streams(self):
        name = '<img src=x onerror="alert()"> &lt;b&gt; R&D.md'
        for content in (
            choice_of([*cited(name)])["message"]["content"],
            "".join(contents(cited(name))),
        ):
            self.assertNotRegex(content, r"<(?!span|/span|sup|/sup)|&lt;b")
            self.assertIn("R&D.md]", content)
            self.assertIn(f"[{name}]", plain_text(content))

    def test_a_colon_does_not_begin_a_list_of_steps(self):
        content = choice_of(exchange("At noons: 10:15.\n\n" + STEPS))["message"]["content"]
        self.assertNotIn(":", content)
        self.assertIn("<ol", content)

    def test_follow_up_questions_are_read_but_not_shown(self):
        choice = choice_of(exchange("Yes."))
        content = choice["message"]["content"]
        self.assertTrue(content.startswith("Yes.<span hidden>"))
        self.assertEqual(re.findall(r"<<([^<>]+)>>", content), ["Are 3 enough∶ yes?", "Next Question?"])
        self.assertEqual(choice["context"]["followup_questions"][0], "Are 3 enough: yes?")

    def test_the_thoughts_are_html_in_the_message(self):
        choice = choice_of(exchange("Yes."))
        self.assertIsInstance(choice["message"]["context"]["thoughts"], str)
        self.assertIsInstance(choice["context"]["thoughts"], list)


class HistoryTests(SimpleTestCase):
    def test_returned_messages_are_restored_to_the_models_text(self):
        said = f"Next year 25 [{FILE}] & <b> at 10:15.\nMore [note]."
        cited = said.replace(FILE, LABEL)
        for shown in (
            "".join(contents(exchange(cited, questions=()))),
            re.sub(r"<sup[^>]*>(.*?)</sup>", "", choice_of(exchange(cited))["message"]["content"]),
        ):
            self.assertEqual(plain_text(shown + "\n\n"), said)

    def test_earlier_messages_and_chosen_questions_are_restored_to_plain_text(self):
        asked = [
            {"role": "user", "content": "is 3 &lt; 5?\n\n"},
            {"role": "assistant", "content": "\n\n"},
            {"role": "user", "content": "Are 𝟥 enough∶ yes?"},
        ]
        request = WebComponent().parse(body(messages=asked))
        self.assertEqual(request.question, "Are 3 enough: yes?")
        self.assertEqual([turn.content for turn in request.earlier], ["is 3 < 5?"])
