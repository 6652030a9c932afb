"""The sizes of the pieces in which readers get an answer."""

from itertools import pairwise

from django.test import SimpleTestCase

from chat.events import MessageDone, Searching, TextDelta
from chat.runs.active import (
    MAX_EVENTS,
    MAX_TEXT,
    coalesce,
    parts_of,
)


def numbered(*texts, first=1):
    return [(number, TextDelta(text)) for number, text in enumerate(texts, start=first)]


def text_of(parts):
    return "".join(event.text for part in parts for _, event in part if isinstance(event, TextDelta))


class PartsTests(SimpleTestCase):
    def test_a_few_events_are_sent_unchanged(self):
        few = numbered(*["a"] * MAX_EVENTS)
        self.assertEqual(list(parts_of(few, 0)), [few])
        self.assertEqual(list(parts_of([], 0)), [])

    def test_consecutive_texts_of_many_events_are_merged_with_the_number_of_the_last(self):
        many = [(1, Searching(2)), *numbered(*["a"] * 100, first=2), (102, MessageDone("stop", ()))]
        self.assertEqual(
            list(parts_of(many, 0)),
            [[(1, Searching(2)), (101, TextDelta("a" * 100)), (102, MessageDone("stop", ()))]],
        )

    def test_a_part_has_some_thousand_characters_and_no_text_is_lost(self):
        many = numbered(*[f"{number} " for number in range(20_000)])
        parts = list(coalesce(many, 0))
        self.assertEqual(text_of(parts), text_of([many]))
        self.assertTrue(all(MAX_TEXT <= len(text_of([part])) < MAX_TEXT + 10 for part in parts[:-1]))
        ends = [part[-1][0] for part in parts]
        self.assertTrue(all(one < other for one, other in pairwise(ends)))
        self.assertEqual(ends[-1], 20_000)

    def test_received_and_new_text_are_not_merged(self):
        told = list(coalesce(numbered("a", "b", "c", "d"), 2))
        self.assertEqual(told, [[(2, TextDelta("ab"))], [(4, TextDelta("cd"))]])

    def test_events_other_than_text_are_sent_fifty_at_a_time(self):
        many = [(number, Searching(number)) for number in range(1, 121)]
        self.assertEqual([len(part) for part in coalesce(many, 0)], [50, 50, 20])
