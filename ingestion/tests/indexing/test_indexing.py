"""Writing passages, and the words and pieces made of them."""

import threading
import time
from unittest import mock

from django.core.files.base import ContentFile
from django.db import connection
from django.test import SimpleTestCase, TestCase

from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.embedding import EmbeddingError
from ingestion.indexing import reading, replacing
from ingestion.indexing.passages import (
    NewPassage,
    pieces_of,
)
from ingestion.indexing.replacing import (
    digest_of,
    prepare,
    write_passages,
)
from ingestion.models import Passage, PassageWords, PreparedVector, Vector
from ingestion.parsing.process import Interrupted, Interruption
from ingestion.search.tokens import (
    plain_words,
    search_text,
    units,
)
from ingestion.tests.documents import make_document
from ingestion.tests.media import MediaMixin


class WordsTests(SimpleTestCase):
    def test_only_a_part_of_a_text_with_a_very_long_normal_form_is_indexed(self):
        self.assertEqual(plain_words("ﷺ"), "صلى الله عليه وسلم")
        self.assertLessEqual(len(plain_words("ﷺ" * 31_900)), 65_000)

    def test_words_are_lower_case_without_accents(self):
        self.assertEqual(plain_words("Form PF-70, “Übung” (a/b)\0x"), "form pf 70 übung a b x")

    def test_combining_characters_stay_in_their_words(self):
        self.assertEqual(plain_words("हिन्दी भाषा"), "हिन्दी भाषा")

    def test_unspaced_scripts_become_pairs(self):
        self.assertEqual(search_text("年假abc多少", stored=False), "年假 abc 多少")
        self.assertEqual(search_text("年假期", stored=False), "年假 假期")
        self.assertEqual(search_text("年假期"), "年假 假期 年 假 期")
        self.assertEqual(search_text("年", stored=False), "年")

    def test_a_space_within_chinese_does_not_end_a_word(self):
        self.assertEqual(search_text("年 假\nabc 日"), "年假 年 假 abc 日")
        self.assertEqual(search_text("年 假", stored=False), "年 假")
        self.assertEqual(search_text("연차 휴가"), "연차 연 차 휴가 휴 가")

    def test_abbreviations_are_also_indexed_without_their_dots(self):
        self.assertEqual(search_text("The U.N. in 3.5.2"), "the un u n in 3 5 2")
        self.assertEqual(search_text("The U.N.", stored=False), "the u n")
        self.assertEqual(units("U.N. Secretary"), ["un", "u", "n", "secretary"])


class PiecesTests(SimpleTestCase):
    def pieces(self, content, title=""):
        return pieces_of(NewPassage("", None, "Leave", content), title)

    def test_each_piece_begins_with_title_and_heading(self):
        pieces = self.pieces("word " * 200, "Handbook")
        self.assertEqual(len(pieces), 4)
        for piece in pieces:
            self.assertTrue(piece.startswith("Handbook. Leave\nword"))
            self.assertLessEqual(len(piece), 280)

    def test_pieces_are_as_few_as_possible_and_equally_long(self):
        text = " ".join(f"word{number}" for number in range(100))
        for most, count in ((250, 1), (480, 2), (510, 3)):
            pieces = pieces_of(NewPassage("", None, "", text[:most].strip()))
            self.assertEqual(len(pieces), count)
            self.assertLess(max(map(len, pieces)) - min(map(len, pieces)), 30)

    def test_no_word_is_lost_or_cut(self):
        words = [f"word{number}" for number in range(300)]
        pieces = pieces_of(NewPassage("", None, "", " ".join(words)))
        self.assertEqual(" ".join(pieces).split(), words)

    def test_text_without_spaces_is_cut_without_loss(self):
        self.assertEqual("".join(pieces_of(NewPassage("", None, "", "假" * 1001))), "假" * 1001)

    def test_an_empty_passage_is_one_piece(self):
        self.assertEqual(pieces_of(NewPassage("", None, "", "  ")), [""])


class WritePassagesTests(TestCase):
    def test_writing_again_replaces_the_former_passages(self):
        document = make_document("a.txt", ["One.", "Two."])
        text = " ".join(f"Number {number}." for number in range(30))
        passages = [NewPassage("x", 2, "H", text)]
        write_passages(document, passages, prepare(document, passages, "T"))
        (passage,) = Passage.objects.filter(document=document)
        self.assertEqual(
            (passage.position, passage.anchor, passage.page, passage.heading, passage.content),
            (0, "x", 2, "H", text),
        )
        vectors = Vector.objects.filter(document=document, passage=passage).count()
        self.assertEqual(vectors, len(pieces_of(passages[0], "T")))
        self.assertEqual((Vector.objects.count(), PreparedVector.objects.count()), (vectors, 0))

    def test_passages_keep_their_order_words_and_vectors(self):
        with mock.patch.object(replacing, "WRITE_BATCH", 7):
            document = make_document("a.txt", [f"Number {number}." for number in range(30)])
        passages = list(Passage.objects.filter(document=document))
        self.assertEqual([passage.content for passage in passages], [f"Number {n}." for n in range(30)])
        self.assertEqual([passage.position for passage in passages], list(range(30)))
        words = dict(PassageWords.objects.values_list("passage", "search"))
        digests = dict(Vector.objects.values_list("passage", "digest"))
        for number, passage in enumerate(passages):
            self.assertIn(f"'{number}'", words[passage.pk])
            self.assertEqual(digests[passage.pk], digest_of(f"Number {number}."))

    def test_passages_that_were_not_prepared_are_refused(self):
        document = make_document("a.txt", ["One."])
        passage = NewPassage("", None, "", "x")
        with self.assertRaises(ValueError):
            write_passages(document, [passage], prepare(document, [], ""))
        prepared = prepare(document, [passage], "")
        PreparedVector.objects.all().delete()  # as after a crash of PostgreSQL
        with self.assertRaises(EmbeddingError) as caught:
            write_passages(document, [passage], prepared)
        self.assertTrue(caught.exception.temporary)


class InterruptedWritingTests(MediaMixin, TestCase):
    def test_interrupted_writing_leaves_the_document_unchanged(self):
        text = ContentFile(b"# Leave\n\nFive days.")
        document = documents.upsert(text, "leave.md", owner=None, audience=Audience(everyone=True)).document
        interruption = Interruption()

        def write(*arguments):
            threading.Timer(0.2, interruption.request).start()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(%s)", [HANG_SECONDS])

        begun = time.monotonic()
        with mock.patch.object(reading, "write_passages", write), self.assertRaises(Interrupted):
            reading.read(document, None, None, interruption)
        self.assertLess(time.monotonic() - begun, MARGIN_SECONDS * 3)
        document.refresh_from_db()
        self.assertEqual((document.version, document.passages.count()), (0, 0))
