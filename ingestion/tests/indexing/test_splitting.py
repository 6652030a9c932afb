"""Sections into passages."""

import time

from django.test import SimpleTestCase

from ingestion.indexing.splitting import (
    MAX_JOINED,
    MAX_LENGTH,
    passages_of,
)
from ingestion.parsing.sections import Section

SENTENCE = "The ferry leaves at nine and arrives at ten, weather permitting. "


def contents(*texts):
    sections = [Section(f"page={number}", number, "Heading", text) for number, text in enumerate(texts, 1)]
    return list(passages_of(sections))


class SplittingTests(SimpleTestCase):
    def test_passages_have_anchor_page_and_heading_and_stay_in_their_section(self):
        passages = contents("Short.", "Other.")
        found = [(passage.anchor, passage.page, passage.heading, passage.content) for passage in passages]
        self.assertEqual(found, [("page=1", 1, "Heading", "Short."), ("page=2", 2, "Heading", "Other.")])

    def test_passages_end_where_sentences_end(self):
        for passage in contents(SENTENCE * 50):
            self.assertTrue(passage.content.endswith("permitting."), passage.content[-30:])
            self.assertLessEqual(len(passage.content), MAX_LENGTH)

    def test_passages_do_not_end_within_sentences_with_abbreviations_and_ordinals(self):
        sentences = (
            "Der Beitrag nach § 3 Abs. 2 Nr. 4 ist bis zum 15. Februar zu zahlen.",
            "Anträge sind bei Frau Dr. Meier bis zum 3. Oktober zu stellen, z. B. per E-Mail.",
            "The fees in Fig. 2 are approx. 30 euros for Mr. Brown and others.",
        )
        text = " ".join(sentences * 20)
        passages = contents(text)
        self.assertGreater(len(passages), 5)
        for passage in passages:
            self.assertTrue(passage.content.endswith(sentences), passage.content[-40:])
            self.assertIn(passage.content, text)

    def test_a_short_remainder_joins_its_neighbour(self):
        passages = contents(f"{(SENTENCE * 6).strip()}\n\nA scrap.\n\n{(SENTENCE * 6).strip()}")
        self.assertEqual([len(passage.content) > 300 for passage in passages], [True, True])

    def test_rows_are_not_split(self):
        rows = [
            f"Port: Harbour {number}; Telephone: 01632 9601{number}; Notes: {'x' * 90}"
            for number in range(40)
        ]
        lines = [line for passage in contents("\n".join(rows)) for line in passage.content.split("\n")]
        self.assertEqual(lines, rows)

    def test_an_introduction_stays_with_its_list(self):
        found = contents(f"{(SENTENCE * 6).strip()}\n\nBring these:\n\n{(SENTENCE * 6).strip()}")
        self.assertEqual([passage.content.startswith("Bring these:") for passage in found], [False, True])

    def test_splitting_loses_nothing_and_takes_linear_time_for_any_text(self):
        for text in ("x" * 500_000, "word " * 100_000, "line\n" * 100_000, SENTENCE * 5_000):
            started = time.thread_time()
            passages = contents(text)
            self.assertLess(time.thread_time() - started, 20)
            self.assertEqual("".join("".join(p.content for p in passages).split()), "".join(text.split()))
            self.assertLessEqual(max(len(passage.content) for passage in passages), MAX_JOINED)

    def test_an_empty_text_has_no_passages(self):
        self.assertEqual(contents("", " \n "), [])
