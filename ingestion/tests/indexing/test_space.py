"""The disk space of deleted documents is reused."""

import pytest
from django.db import connection
from django.test import TransactionTestCase

from ingestion import documents as pipeline
from ingestion.models import Document, Passage, PassageWords, Vector
from ingestion.tests.factories import make_document
from ingestion.tests.media import MediaMixin

TABLES = ("ingestion_document", "ingestion_passage", "ingestion_passagewords", "ingestion_vector")
PASSAGES = 150
CYCLES = 4


@pytest.mark.slow
class SpaceTests(MediaMixin, TransactionTestCase):
    def size(self):
        """The size of the tables and indexes in bytes, after a vacuum as autovacuum would run it."""
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"VACUUM {table}")
            cursor.execute(
                "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name",
                [[*TABLES]],
            )
            return int(cursor.fetchone()[0])

    def cycle(self, number):
        texts = [
            f"Passage {place} of round {number} tells of {place * 7 + number}." for place in range(PASSAGES)
        ]
        documents = [make_document(f"{number}-{each}.md", texts[each::2], everyone=True) for each in range(2)]
        pipeline.delete_documents(documents)

    def test_adding_and_deleting_again_and_again_takes_no_more_space(self):
        make_document("kept.md", ["This one stays."], everyone=True)
        sizes = []
        for number in range(CYCLES):
            self.cycle(number)
            sizes.append(self.size())
        self.assertEqual((Document.objects.count(), Passage.objects.count()), (1, 1))
        self.assertEqual((PassageWords.objects.count(), Vector.objects.count()), (1, 1))
        self.assertLessEqual(max(sizes[1:]), sizes[0] * 1.15, sizes)

    def test_dead_rows_are_removed_long_before_they_are_a_fifth_of_the_table(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, reloptions FROM pg_class WHERE relname = ANY(%s)", [[*TABLES[1:]]]
            )
            for _, options in cursor.fetchall():
                self.assertIn("autovacuum_vacuum_scale_factor=0.05", options)
