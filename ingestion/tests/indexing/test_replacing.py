"""Reading a file again: unchanged passages are not embedded again."""

from django.core.files.base import ContentFile
from django.test import TestCase

from ingestion import documents
from ingestion.documents import upsert
from ingestion.models import Document, Passage, PreparedVector, Vector
from ingestion.tests.embedding_server import Server, by_words
from ingestion.tests.media import EVERYONE, MediaMixin


def text_of(*numbers, start="# Guide"):
    return "\n\n".join([start, *(f"## Part {n}\n\nParagraph {n} says {n}." for n in numbers)])


class ReplacingTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.server = Server(by_words(64))
        self.addCleanup(self.server.stop)
        settings = self.server.settings(dimensions=64)
        settings.enable()
        self.addCleanup(settings.disable)

    def put(self, text):
        put = upsert(ContentFile(text.encode()), "guide.md", owner=None, audience=EVERYONE)
        if put.outcome != "unchanged":
            documents.read_document(put.document.pk, put.replacement)
        asked, self.server.asked = self.server.texts, []
        return put.outcome, asked

    def vectors(self):
        """{text of a passage: its vector}"""
        found = Vector.objects.values_list("passage__content", "vector")
        return {content: tuple(vector) for content, vector in found}

    def test_the_same_file_again_is_not_read(self):
        outcome, asked = self.put(text_of(1, 2, 3))
        self.assertEqual((outcome, len(asked)), ("added", 3))
        self.assertEqual(self.put(text_of(1, 2, 3)), ("unchanged", []))
        self.assertEqual(Document.objects.get().version, 1)

    def test_only_changed_passages_are_embedded(self):
        self.put(text_of(1, 2, 3, 4))
        before = self.vectors()
        outcome, asked = self.put(text_of(1, 2, 3, 4).replace("3 says", "3 asks"))
        self.assertEqual((outcome, len(asked)), ("replaced", 1))
        self.assertIn("Paragraph 3 asks", asked[0])
        after = self.vectors()
        self.assertEqual(len(after), 4)
        same = before.keys() & after.keys()
        self.assertEqual([before[key] for key in same], [after[key] for key in same])
        self.assertEqual((len(same), PreparedVector.objects.count()), (3, 0))

    def test_a_moved_passage_keeps_its_embedding(self):
        self.put(text_of(1, 2, 3))
        self.assertEqual(self.put(text_of(3, 1, 2))[1], [])
        self.assertEqual(Passage.objects.order_by("position").first().heading, "Part 3")
        self.assertEqual(len(self.vectors()), 3)

    def test_a_passage_under_another_title_is_embedded_again(self):
        self.put(text_of(1, 2))
        self.assertEqual(len(self.put(text_of(1, 2, start="# Handbook"))[1]), 2)

    def test_a_text_that_occurs_twice_is_embedded_once_and_found_at_both_places(self):
        text = "# Guide\n\n## Note\n\nThe same.\n\n## Between\n\nOther.\n\n## Note\n\nThe same."
        self.assertEqual(len(self.put(text)[1]), 2)
        self.assertEqual((Passage.objects.count(), Vector.objects.count()), (3, 3))

    def test_reading_again_embeds_nothing(self):
        self.put(text_of(1, 2, 3))
        document = Document.objects.get()
        documents.retry(document)
        documents.read_document(document.pk)
        document.refresh_from_db()
        self.assertEqual((document.version, self.server.texts, len(self.vectors())), (2, [], 3))

    def test_equal_texts_of_another_document_are_embedded_separately(self):
        self.put(text_of(1, 2))
        other = upsert(ContentFile(text_of(1, 2).encode()), "other.md", owner=None, audience=EVERYONE)
        documents.read_document(other.document.pk)
        self.assertEqual(len(self.server.texts), 2)
