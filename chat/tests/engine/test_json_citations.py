"""Citations within JSON, and stop sequences: the split of a text into pieces does not matter."""

import json
import time

import pytest
from django.test import SimpleTestCase

from chat.citations import JsonCitationFilter
from chat.engine.writing import StopSequences

LABELS = ["guide.pdf#page=3", "Größen.xlsx#sheet=A"]


def filtered(text, size=1_000_000, labels=LABELS):
    """(the text that is passed on, the labels that it cites)"""
    citations = JsonCitationFilter(labels)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return "".join([*map(citations.feed, pieces), citations.flush()]), citations.cited


class JsonCitationTests(SimpleTestCase):
    def test_known_citations_stay_and_invented_ones_are_removed_for_any_split(self):
        value = {
            "text": "Five days [guide.pdf#page=3], or six [secret.pdf#page=1].",
            "quoted": 'He said "no" \\ [GUIDE.pdf#page=3]',
            "umlaut": "Größe 5 [Größen.xlsx#sheet=A] 🙂",
        }
        expected = {
            "text": "Five days [guide.pdf#page=3], or six.",
            "quoted": 'He said "no" \\ [guide.pdf#page=3]',
            "umlaut": value["umlaut"],
        }
        for ascii_only in (True, False):
            text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
            for size in (1, 2, 7, 1_000_000):
                told, cited = filtered(text, size)
                self.assertEqual(json.loads(told), expected)
                self.assertEqual(cited, LABELS)

    def test_values_other_than_strings_stay_unchanged(self):
        text = '{"numbers": [1.5, 2.5], "names": ["a.pdf", "b.pdf"], "none": [null, true]}'
        self.assertEqual(filtered(text, 1), (text, []))

    def test_a_truncated_string_has_no_invented_citation_and_no_half_character(self):
        for cut in (
            '{"text": "Six [secret.pdf]',
            '{"text": "Six [secret.pdf',
            r'{"text": "Six \u00',
            r'{"text": "Six \ud83d\u',
        ):
            told, _ = filtered(cut, 3)
            self.assertNotIn("secret.pdf]", told)
            json.loads(told + '"}')

    def test_half_a_surrogate_pair_stays_escaped(self):
        told, _ = filtered(r'{"text": "\ud83d [secret.pdf]"}')
        self.assertTrue(told.isascii())

    @pytest.mark.slow
    def test_a_long_text_takes_linear_time(self):
        for text in ('"' * 200_000, "\\" * 200_000, '{"a": "' + "[" * 200_000, '{"a": "' + " " * 200_000):
            begun = time.thread_time()
            filtered(text, 5)
            self.assertLess(time.thread_time() - begun, 10)


class StopSequenceTests(SimpleTestCase):
    def stopped(self, text, *sequences, size=1):
        stops = StopSequences(sequences)
        pieces = [stops.feed(text[start : start + size]) for start in range(0, len(text), size)]
        return "".join([*pieces, stops.flush()]), stops.reached

    def test_the_text_ends_before_the_first_stop_sequence_for_any_split(self):
        for size in (1, 2, 5, 100):
            self.assertEqual(self.stopped("one two three", "three", "two", size=size), ("one ", True))
            self.assertEqual(self.stopped("aaab", "aab", size=size), ("a", True))
            self.assertEqual(self.stopped("one tw", "two", size=size), ("one tw", False))
            self.assertEqual(self.stopped("one", size=size), ("one", False))

    def test_text_that_cannot_begin_a_stop_sequence_is_not_held_back(self):
        self.assertEqual(StopSequences(["END"]).feed("one E"), "one ")
        self.assertEqual(StopSequences(["END"]).feed("one e"), "one e")
