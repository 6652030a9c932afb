"""Events of an answer as messages of the socket, without sockets."""

import html
import random
import re
from unittest import TestCase, mock

from chat.events import (
    ContextReady,
    Finished,
    MessageDone,
    Searching,
    Started,
    TextDelta,
    Thinking,
    Thought,
    TitleChanged,
)
from chat.portal import frames
from chat.portal.frames import AnswerRenderer
from chat.portal.rendering.markdown import (
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
LAST_TAGS = re.compile(r"(?:</[^>]*>\s*)*\Z")
SOURCES = (source(1, "a.md#x", title="A plan"), source(2, "b.pdf#page=2", title="B plan"))


LIVE = """Some *plain* words follow here and `there is code` in them [a.md#x]. More words after it, quite
a few of them, on two lines.

1. First item of a list with words [b.pdf#page=2] behind it
2. Second **item** is longer than that

```python
for day in days: print(day, "a string")
    more code here
```

| Who is it | How many days |
|---|---|
| all of them here | 5 of them |

A formula \\(x^2\\) and $5 with words behind them"""


def words(rendered: str) -> str:
    """The text of HTML as a person reads it."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", rendered)).split())


def page() -> str:
    chips = {"a.md#x": Chip("A plan"), "b.pdf#page=2": Chip("B plan, page 2")}
    return render(TEXT, Citations(1, chips))


class Reader:
    """Applies messages as the page's script does."""

    def __init__(self):
        self.blocks, self.open, self.status, self.found = [], "", "", ""

    def take(self, messages):
        for message in messages:
            match message["type"]:
                case "reset":
                    self.blocks, self.open = list(message["blocks"]), message["open"]
                case "block":
                    self.blocks.append(message["html"])
                    self.open = ""
                case "open":
                    self.open = message["html"]
                case "grow":
                    last = LAST_TAGS.search(self.open)
                    self.open = self.open[: last.start()] + html.escape(message["text"]) + last[0]
                case "status":
                    self.status = message["text"]
                case "found":
                    self.found = message["html"]


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


class AnswerRendererTests(TestCase):
    def test_a_reader_ends_with_what_the_page_shows(self):
        for size in (1, 3, 10, 1000):
            rendered, reader = AnswerRenderer(1), Reader()
            for seq, event in enumerate(events(size), start=1):
                reader.take(rendered.add(seq, event))
            self.assertEqual("\n".join(reader.blocks), page())
            self.assertEqual(reader.open, "")

    def test_a_late_reader_gets_everything_so_far_and_ends_with_the_same_page(self):
        chance = random.Random(3)
        every = events(4)
        for _ in range(20):
            cut = chance.randrange(1, len(every))
            rendered, reader = AnswerRenderer(1), Reader()
            for seq, event in enumerate(every[:cut], start=1):
                rendered.add(seq, event)
            reader.take(rendered.reset()["messages"])
            for seq, event in enumerate(every[cut:], start=cut + 1):
                reader.take(rendered.add(seq, event))
            self.assertEqual("\n".join(reader.blocks), page())

    def test_steps_are_described_in_words(self):
        rendered, reader = AnswerRenderer(1), Reader()
        reader.take(rendered.add(1, Searching(1204)))
        self.assertEqual(reader.status, "Searching 1,204 documents you can read")
        reader.take(rendered.add(2, ContextReady(SOURCES, ())))
        self.assertEqual(reader.status, "Reading 2 passages from 1 document")

    def test_a_model_that_reasons_is_said_to_think_until_its_first_word(self):
        rendered, reader = AnswerRenderer(1), Reader()
        for seq, event in enumerate([Searching(4), ContextReady(SOURCES, ()), Thinking()], start=1):
            reader.take(rendered.add(seq, event))
        self.assertEqual((reader.status, reader.open), ("Thinking", ""))
        self.assertIn("Thinking", str(rendered.reset()))
        reader.take(rendered.add(4, TextDelta("Five days")))
        told = ("Reading 2 passages from 1 document", "<p>Five days</p>")
        self.assertEqual((reader.status, reader.open), told)

    def test_an_interrupted_text_keeps_its_last_words(self):
        rendered = AnswerRenderer(1)
        rendered.add(1, ContextReady(SOURCES, ()))
        rendered.add(2, TextDelta("Half a"))
        self.assertEqual(rendered.finish(), [{"type": "block", "html": "<p>Half a</p>"}])

    def test_plain_text_is_sent_incrementally_and_the_page_shows_the_same(self):
        chance = random.Random(5)
        self.enterContext(mock.patch.object(frames, "PAUSE", 0))  # after slow rendering
        for _ in range(30):
            rendered, reader, grown = AnswerRenderer(1), Reader(), 0
            reader.take(rendered.add(1, ContextReady(SOURCES, ())))
            text, seq = LIVE, 1
            while text:
                size = chance.randrange(1, 12)
                piece, text, seq = text[:size], text[size:], seq + 1
                messages = rendered.add(seq, TextDelta(piece))
                reader.take(messages)
                grown += any(message["type"] == "grow" for message in messages)
                self.assertEqual(words(reader.open), words(rendered._renderer.open), (piece, text[:20]))
            self.assertGreater(grown, 5)

    def test_searches_and_results_are_sent_before_the_first_word(self):
        rendered, reader = AnswerRenderer(1), Reader()
        thoughts = (Thought("Generated search query", "carried <leave>"),)
        reader.take(rendered.add(1, ContextReady(SOURCES, thoughts)))
        self.assertIn("carried &lt;leave&gt;", reader.found)
        self.assertIn('href="?source=1.r2"', reader.found)
        self.assertIn("A plan", reader.found)
