"""The results of a search, by leg and in order; no question makes it fail."""

from unittest import mock

import pytest
from django.test import TestCase

from chatsite.accounts.models import User
from ingestion.access.lists import Audience
from ingestion.embedding import EmbeddingError
from ingestion.indexing.passages import NewPassage
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of

MODES = ("hybrid", "text", "vectors")
LEAVE = "Annual leave is 27 days a year for full-time office staff."
DOGS = "Dogs travel on the car deck and need a muzzle."
ROSTER = "The duty roster is put up 28 days before it begins."


class SearchTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.reader = User.objects.create_user("reader")
        cls.principal = principal_of(cls.reader)

    def texts(self, query, **options):
        return [passage.content for passage in search(self.principal, query, **options).passages]

    def test_the_passage_that_answers_comes_first_in_every_mode(self):
        make_document("handbook.txt", [DOGS, LEAVE, ROSTER])
        for mode in MODES:
            with self.subTest(mode=mode):
                self.assertEqual(self.texts("How many days of annual leave?", mode=mode)[0], LEAVE)

    def test_words_are_found_in_other_forms(self):
        make_document("handbook.txt", [DOGS, LEAVE])
        self.assertEqual(self.texts("travelling with a dog", mode="text"), [DOGS])

    def test_passages_are_found_by_meaning_without_a_common_word(self):
        make_document("handbook.txt", [DOGS, LEAVE])
        (first, *_) = search(self.principal, "How long can employees be on holiday?", mode="vectors").passages
        self.assertEqual((first.content, first.found_by, first.text_score), (LEAVE, "meaning", None))

    def test_each_passage_reports_how_it_was_found(self):
        make_document("handbook.txt", [LEAVE])
        by = {mode: search(self.principal, LEAVE, mode=mode).passages[0].found_by for mode in MODES}
        self.assertEqual(by, {"hybrid": "both", "text": "words", "vectors": "meaning"})

    def test_title_and_heading_are_searched(self):
        make_document("a.txt", ["It is granted on request."], title="Sabbatical")
        make_document("b.txt", [NewPassage("muzzle", None, "Muzzles", "They are sold on board.")])
        self.assertEqual(self.texts("sabbatical"), ["It is granted on request."])
        self.assertEqual(self.texts("muzzle"), ["They are sold on board."])

    def test_nothing_is_found_if_nothing_matches(self):
        make_document("handbook.txt", [DOGS, LEAVE, ROSTER])
        for question in ("Which quark has the greatest mass?", "xyzzy plugh", "Who painted the Mona Lisa?"):
            self.assertEqual(self.texts(question), [], question)

    def test_equal_texts_are_shown_once(self):
        for number in range(6):
            make_document(f"copy{number}.txt", [LEAVE, f"Note {number} on annual leave."])
        texts = self.texts("How many days of annual leave?", top=5)
        self.assertEqual(texts[0], LEAVE)
        self.assertEqual(len(texts), len(set(texts)))
        self.assertEqual(len(texts), 5)

    def test_equal_scores_keep_the_order_of_the_passages(self):
        for number in "abcdef":
            make_document(f"{number}.txt", [f"Annual leave {number * 3}."])
        runs = {tuple(self.texts("annual leave", mode="text")) for _ in range(3)}
        self.assertEqual(len(runs), 1)
        (texts,) = runs
        self.assertEqual(list(texts), sorted(texts))

    def test_categories_are_included_and_excluded(self):
        make_document("a.txt", [LEAVE], category="staff")
        make_document("b.txt", [LEAVE + " In Cork too."], category="ports")
        self.assertEqual(self.texts("annual leave", include_category="staff"), [LEAVE])
        self.assertEqual(self.texts("annual leave", exclude_category="ports"), [LEAVE])
        self.assertEqual(self.texts("annual leave", include_category="other"), [])

    def test_a_scope_finds_only_its_readable_documents(self):
        added = make_document("a.txt", [LEAVE], owner=self.reader, folder="staff/rules")
        make_document("b.txt", [LEAVE + " In Cork too."], category="ports", folder="staff2")
        nobody = Audience()
        closed = make_document("c.txt", [LEAVE + " Secret."], audience=nobody, folder="staff")
        for scope, texts in (
            ("own", [LEAVE]),
            ("folder:staff", [LEAVE]),
            ("folder:staff/rules", [LEAVE]),
            ("category:ports", [LEAVE + " In Cork too."]),
            (f"document:{added.public_id},{closed.public_id}", [LEAVE]),
            (f"document:{closed.public_id}", []),
            ("folder:sta", []),
            ("something", []),
        ):
            for mode in MODES:
                with self.subTest(scope, mode=mode):
                    self.assertEqual(self.texts("annual leave", scope=scope, mode=mode), texts)
        self.assertEqual(len(self.texts("annual leave", scope="all")), 2)

    def test_excluded_documents_are_not_found(self):
        handbook, note = (
            make_document("handbook.txt", [LEAVE]),
            make_document("note.txt", [f"My note: {LEAVE}"]),
        )
        make_document("dogs.txt", [DOGS])
        for mode in MODES:
            with self.subTest(mode=mode):
                question = "How many days of annual leave?"
                self.assertEqual(self.texts(question, mode=mode, without=[note.pk])[0], LEAVE)
                found = search(self.principal, question, mode=mode, without=[note.pk, handbook.pk]).passages
                self.assertLessEqual({each.content for each in found}, {DOGS})

    def test_a_minimum_score_excludes_weaker_passages(self):
        make_document("handbook.txt", [LEAVE, "Annual meeting.", ROSTER])
        found = search(self.principal, "How many days of annual leave?", minimum_score=0.8).passages
        self.assertEqual([passage.content for passage in found], [LEAVE])
        self.assertEqual(self.texts("annual leave", minimum_score=1.01), [])

    def test_scores_are_between_zero_and_one_in_descending_order(self):
        make_document("handbook.txt", [DOGS, LEAVE, ROSTER])
        for mode in MODES:
            scores = [
                passage.score for passage in search(self.principal, "days of leave", mode=mode).passages
            ]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertTrue(all(0 <= score <= 1 for score in scores))

    def test_a_german_document_is_found_by_german_word_forms(self):
        make_document("handbook.txt", [LEAVE])
        make_document("handbuch.txt", ["Die Häuser der Überfahrt haben grüne Türen."], language="german")
        self.assertEqual(self.texts("Welche Farbe hat die Tür des Hauses?"), self.texts("HÄUSER türen"))
        self.assertEqual(len(self.texts("Haus mit Tür")), 1)

    def test_a_german_question_finds_the_same_english_documents_as_its_translation(self):
        salary = NewPassage("9", 9, "Pay day", "Salaries arrive on the 25th of each month.")
        final = NewPassage("16", 16, "Leave and final pay", f"{LEAVE} The final salary is paid with it.")
        make_document(
            "handbook.txt", [DOGS, salary, final, ROSTER, NewPassage("7", 7, "Sick pay", "Full pay.")]
        )
        english = search(self.principal, "when get pay")
        german = search(self.principal, "Wann bekomme ich mein Gehalt?")
        self.assertEqual(german.passages[0], english.passages[0])
        self.assertEqual(german.query, "Wann bekomme ich mein Gehalt?")

    def test_polish_and_czech_documents_are_found_by_other_word_forms(self):
        polish = "Pracownikom przysługuje dwadzieścia sześć dni urlopu wypoczynkowego."
        czech = "Zaměstnanci mají nárok na pět týdnů dovolené."
        make_document("handbook.txt", [LEAVE])
        make_document("urlopy.txt", [polish, "Zebrania są w poniedziałek."], language="polish")
        make_document("dovolená.txt", [czech, "Porady jsou v pondělí."], language="czech")
        for mode in ("text", "hybrid"):
            self.assertEqual(self.texts("Jaki urlop ma pracownik?", mode=mode)[:1], [polish], mode)
            self.assertEqual(self.texts("Kolik dovolená zaměstnance?", mode=mode)[:1], [czech], mode)
        # Stop words of these languages find nothing.
        self.assertEqual(self.texts("się", mode="text"), [])

    def test_chinese_japanese_and_korean_are_found_by_pairs_of_characters(self):
        texts = ["员工每年有二十七天年假。", "犬は車両甲板で旅行します。", "근무표는 28일 전에 게시됩니다."]
        for number, text in enumerate(texts):
            make_document(f"{number}.txt", [text], language="simple")
        make_document("handbook.txt", [LEAVE])
        for question, text in zip(("每年年假多少天？", "犬の旅行", "근무표 게시"), texts, strict=True):
            self.assertEqual(self.texts(question, mode="text"), [text])
        self.assertEqual(self.texts("犬", mode="text"), [texts[1]])

    def test_in_an_unknown_language_words_are_searched_unchanged(self):
        make_document("a.txt", ["Zzyzx frobnicates widgets."], language="klingon")
        make_document("b.txt", [LEAVE], language="")
        self.assertEqual(self.texts("frobnicates"), ["Zzyzx frobnicates widgets."])
        self.assertEqual(self.texts("annual leave"), [LEAVE])

    def test_a_document_not_yet_read_is_not_found(self):
        document = make_document("a.txt", [LEAVE])
        document.version = 0
        document.save()
        self.assertEqual(self.texts("annual leave"), [])

    @pytest.mark.slow
    def test_no_query_makes_search_fail(self):
        make_document("handbook.txt", [LEAVE])
        for question in (
            "",
            "   ",
            "?!…",
            "the of and",
            "\0",
            "leave\0 annual\0",
            "\ud800 leave",
            "' OR 1=1; --",
            "leave & | ! <-> (:*",
            "%s %(user_id)s",
            "leave " * 5333,
            " ".join(f"word{number}" for number in range(4000)),
            "假" * 32_000,
            "a" * 32_000,
        ):
            for mode in MODES:
                with self.subTest(question=question[:20], mode=mode):
                    search(self.principal, question, mode=mode, include_category="\0", exclude_category="\0")

    def test_nothing_is_found_without_documents_or_with_a_limit_of_zero(self):
        self.assertEqual(self.texts("annual leave"), [])
        make_document("handbook.txt", [LEAVE])
        self.assertEqual(self.texts("annual leave", top=0), [])


class EmbeddingFailureTests(TestCase):
    def test_if_the_embedding_model_fails_the_search_uses_only_words(self):
        principal = principal_of(User.objects.create_user("reader"))
        make_document("handbook.txt", [DOGS, LEAVE])

        fault = EmbeddingError("The embedding service does not answer.", temporary=True)
        for mode in ("hybrid", "vectors"):
            with (
                self.subTest(mode=mode),
                mock.patch("ingestion.search.retrieval.embed_question", side_effect=fault),
                self.assertLogs("ingestion.search.retrieval", "WARNING"),
            ):
                found = search(principal, "How many days of annual leave?", mode=mode)
                self.assertEqual(
                    [(item.content, item.found_by) for item in found.passages], [(LEAVE, "words")]
                )
