"""Events of an answer as messages of the socket, without sockets."""

import random
from unittest import TestCase

from chat.events import (
    ContextReady,
    Finished,
    MessageDone,
    Searching,
    Started,
    TextDelta,
    Thinking,
    TitleChanged,
)
from chat.portal.frames import Transcript
from chat.portal.markdown import (
    Chip,
    Citations,
    render,
)
from chat.tests.sources import source

TEXT = """First **words** [a.md#x].

- one
- two [a.md#x]

| Who | Days |
|---|---|
| all | 5 |

The end [b.pdf#page=2] and no more"""
SOURCES = (source(1, "a.md#x", title="A plan"), source(2, "b.pdf#page=2", title="B plan"))


def page() -> str:
    chips = {"a.md#x": Chip("A plan"), "b.pdf#page=2": Chip("B plan, page 2")}
    return render(TEXT, Citations(1, chips))


class Reader:
    """Does with messages what the page's module does."""

    def __init__(self):
        self.blocks, self.tail, self.status = [], "", ""

    def take(self, messages):
        for message in messages:
            match message["type"]:
                case "reset":
                    self.blocks, self.tail = list(message["blocks"]), message["tail"]
                case "block":
                    self.blocks.append(message["html"])
                    self.tail = message["tail"]
                case "tail":
                    self.tail += message["text"]
                case "retail":
                    self.tail = message["text"]
                case "status":
                    self.status = message["text"]


def events(size):
    pieces = [TextDelta(TEXT[at : at + size]) for at in range(0, len(TEXT), size)]
    return [
        Started("r", "c", "q", "a", "2026-01-01T00:00:00Z"),
        Searching(1204),
        ContextReady(SOURCES, ()),
        *pieces,
        MessageDone("stop", ("a.md#x", "b.pdf#page=2")),
        TitleChanged("Plans"),
        Finished("complete"),
    ]


class TranscriptTests(TestCase):
    def test_a_reader_ends_with_what_the_page_shows(self):
        for size in (1, 3, 10, 1000):
            transcript, reader = Transcript(1), Reader()
            for seq, event in enumerate(events(size), start=1):
                reader.take(transcript.add(seq, event))
            self.assertEqual("\n".join(reader.blocks), page())
            self.assertEqual(reader.tail, "")

    def test_whoever_comes_in_the_middle_is_told_all_so_far_and_ends_with_the_same(self):
        chance = random.Random(3)
        every = events(4)
        for _ in range(20):
            cut = chance.randrange(1, len(every))
            transcript, reader = Transcript(1), Reader()
            for seq, event in enumerate(every[:cut], start=1):
                transcript.add(seq, event)
            reader.take(transcript.reset()["messages"])
            for seq, event in enumerate(every[cut:], start=cut + 1):
                reader.take(transcript.add(seq, event))
            self.assertEqual("\n".join(reader.blocks), page())

    def test_the_steps_are_told_in_words(self):
        transcript, reader = Transcript(1), Reader()
        reader.take(transcript.add(1, Searching(1204)))
        self.assertEqual(reader.status, "Searching 1,204 documents you can read")
        reader.take(transcript.add(2, ContextReady(SOURCES, ())))
        self.assertEqual(reader.status, "Reading 2 passages from 1 document")

    def test_a_model_that_reasons_is_said_to_think_until_its_first_word(self):
        transcript, reader = Transcript(1), Reader()
        for seq, event in enumerate([Searching(4), ContextReady(SOURCES, ()), Thinking()], start=1):
            reader.take(transcript.add(seq, event))
        self.assertEqual((reader.status, reader.tail), ("Thinking", ""))
        self.assertIn("Thinking", str(transcript.reset()))
        reader.take(transcript.add(4, TextDelta("Five days")))
        self.assertEqual((reader.status, reader.tail), ("Reading 2 passages from 1 document", "Five days"))

    def test_a_text_that_breaks_off_keeps_its_last_words(self):
        transcript = Transcript(1)
        transcript.add(1, ContextReady(SOURCES, ()))
        transcript.add(2, TextDelta("Half a"))
        self.assertEqual(transcript.finish(), [{"type": "block", "html": "<p>Half a</p>", "tail": ""}])
