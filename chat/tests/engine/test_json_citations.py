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
    def test_known_citations_stay_and_invented_ones_go_in_whatever_pieces(self):
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

    def test_what_is_no_string_is_never_touched(self):
        text = '{"numbers": [1.5, 2.5], "names": ["a.pdf", "b.pdf"], "none": [null, true]}'
        self.assertEqual(filtered(text, 1), (text, []))

    def test_a_string_that_is_cut_keeps_no_invented_citation_and_no_half_character(self):
        for cut in (
            '{"text": "Six [secret.pdf]',
            '{"text": "Six [secret.pdf',
            r'{"text": "Six \u00',
            r'{"text": "Six \ud83d\u',
        ):
            told, _ = filtered(cut, 3)
            self.assertNotIn("secret.pdf]", told)
            json.loads(told + '"}')

    def test_half_of_a_pair_of_surrogates_stays_escaped(self):
        told, _ = filtered(r'{"text": "\ud83d [secret.pdf]"}')
        self.assertTrue(told.isascii())

    @pytest.mark.slow
    def test_a_long_text_costs_what_its_length_costs(self):
        for text in ('"' * 200_000, "\\" * 200_000, '{"a": "' + "[" * 200_000, '{"a": "' + " " * 200_000):
            begun = time.thread_time()
            filtered(text, 5)
            self.assertLess(time.thread_time() - begun, 10)


class StopSequenceTests(SimpleTestCase):
    def stopped(self, text, *sequences, size=1):
        stops = StopSequences(sequences)
        pieces = [stops.feed(text[start : start + size]) for start in range(0, len(text), size)]
        return "".join([*pieces, stops.flush()]), stops.reached

    def test_the_text_ends_before_the_first_of_them_in_whatever_pieces(self):
        for size in (1, 2, 5, 100):
            self.assertEqual(self.stopped("one two three", "three", "two", size=size), ("one ", True))
            self.assertEqual(self.stopped("aaab", "aab", size=size), ("a", True))
            self.assertEqual(self.stopped("one tw", "two", size=size), ("one tw", False))
            self.assertEqual(self.stopped("one", size=size), ("one", False))

    def test_nothing_is_held_back_that_can_begin_none(self):
        self.assertEqual(StopSequences(["END"]).feed("one E"), "one ")
        self.assertEqual(StopSequences(["END"]).feed("one e"), "one e")
