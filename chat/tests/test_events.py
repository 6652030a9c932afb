import json

from django.test import SimpleTestCase

from chat.events import (
    ContextReady,
    Failed,
    Finished,
    FollowUps,
    MessageDone,
    Searching,
    Started,
    TextDelta,
    Thought,
    TitleChanged,
    Usage,
    Whole,
    from_json,
    to_json,
)
from chat.tests.sources import source

EVERY = [
    Started("r", "c", "q", "a", "2026-01-01T00:00:00.000Z"),
    Searching(4),
    ContextReady((source(),), (Thought("Step", ["x"], {"n": 1}), Thought("Other", "text"))),
    TextDelta("Hel"),
    TextDelta("lo"),
    MessageDone("stop", ("a.md#x",)),
    FollowUps(("And then?",)),
    TitleChanged("Hello"),
    Usage(3, 4),
    Finished("complete"),
    Failed("failed", "internal", "id"),
]


class EventTests(SimpleTestCase):
    def test_every_event_survives_json(self):
        for event in EVERY:
            self.assertEqual(from_json(json.loads(json.dumps(to_json(event)))), event)

    def test_an_exchange_folds_into_its_whole(self):
        whole = Whole()
        for event in EVERY[:-1]:
            whole.add(event)
        self.assertEqual(whole.text, "Hello")
        self.assertEqual(whole.end, Finished("complete"))
        self.assertEqual(whole.followups, ("And then?",))
