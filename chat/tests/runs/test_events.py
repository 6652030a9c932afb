import json

from django.test import SimpleTestCase

from chat.events import (
    ContextReady,
    Failed,
    Finished,
    FollowUps,
    MessageDone,
    Rechecked,
    RunResult,
    Searching,
    Started,
    TextDelta,
    Thinking,
    Thought,
    TitleChanged,
    Usage,
    from_json,
    list_from_json,
    list_to_json,
    to_json,
)
from chat.statements import Proof, Statement
from chat.tests.sources import source

EVERY = [
    Started("r", "c", "q", "a", "2026-01-01T00:00:00.000Z"),
    Searching(4),
    ContextReady((source(),), (Thought("Step", ["x"], {"n": 1}), Thought("Other", "text"))),
    Thinking(),
    TextDelta("Hel"),
    TextDelta("lo"),
    MessageDone("stop", ("a.md#x",)),
    Rechecked(
        (
            Statement(
                0, 5, ("a.md#x",), "supported", (Proof(6, 12, "a.md#x", "supported", 1, ((0, 4),), True),)
            ),
        )
    ),
    FollowUps(("And then?",)),
    TitleChanged("Hello"),
    Usage(3, 4),
    Finished("complete"),
    Failed("failed", "internal", "id", 60),
]


class EventTests(SimpleTestCase):
    def test_every_event_survives_json(self):
        for event in EVERY:
            self.assertEqual(from_json(json.loads(json.dumps(to_json(event)))), event)

    def test_consecutive_texts_share_a_row_of_the_journal_and_stay_separate(self):
        values = json.loads(json.dumps(list_to_json(EVERY)))
        self.assertEqual(list(list_from_json(values)), EVERY)
        self.assertEqual(len(values), len(EVERY) - 1)
        former = [to_json(event) for event in EVERY]  # the former format of each event
        self.assertEqual(list(list_from_json(json.loads(json.dumps(former)))), EVERY)

    def test_events_of_a_later_version_are_ignored(self):
        self.assertIsNone(from_json(["Later", {"more": 1}]))
        self.assertEqual(from_json(["Usage", {"prompt": 3, "completion": 4, "later": 5}]), Usage(3, 4))
        thought = {"title": "Step", "description": "text", "props": None, "later": 5}
        context = ["ContextReady", {"sources": [], "thoughts": [thought], "message_id": "m", "later": 5}]
        self.assertEqual(from_json(context), ContextReady((), (Thought("Step", "text"),), "m"))

    def test_events_fold_into_the_complete_run(self):
        whole = RunResult()
        for event in EVERY[:-1]:
            whole.add(event)
        self.assertEqual(whole.text, "Hello")
        self.assertEqual(whole.end, Finished("complete"))
        self.assertEqual(whole.followups, ("And then?",))
