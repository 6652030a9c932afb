"""The sample documents contain the answers to their questions, on the listed pages."""

import json
from pathlib import Path

import pytest
from django.conf import settings
from django.test import SimpleTestCase

from ingestion.indexing.splitting import (
    MAX_JOINED,
    passages_of,
)
from ingestion.parsing import process

SAMPLES = Path(settings.BASE_DIR) / "ingestion" / "samples"


def plain(text):
    return " ".join(text.split()).lower()


@pytest.mark.slow
class SamplesTests(SimpleTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.passages = {}
        for path in SAMPLES.glob("*/*"):
            found = process.read(path, path.suffix, lambda done, total: None)
            cls.passages[path.name] = list(passages_of(found.sections))

    def test_every_answer_is_complete_in_one_passage_of_its_page(self):
        missing = []
        for line in (SAMPLES / "questions.jsonl").read_text().splitlines():
            row = json.loads(line)
            name, _, anchor = row["truth"].strip("[]").partition("#")
            there = [passage.content for passage in self.passages[name] if passage.anchor == anchor]
            if not any(plain(row["answer"]) in plain(content) for content in there):
                missing.append(row["question"])
        self.assertEqual(missing, [])

    def test_passages_are_short_and_never_empty(self):
        sizes = [len(passage.content) for found in self.passages.values() for passage in found]
        self.assertLessEqual(max(sizes), MAX_JOINED)
        self.assertGreater(min(sizes), 0)
