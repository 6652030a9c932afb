"""How well the words of texts match a question, and the effect on their order."""

from unittest.mock import patch

import numpy as np
from django.test import SimpleTestCase, TestCase

from chatsite.accounts.models import User
from ingestion.embedding.word_vectors import generation, word_numbers, word_vectors
from ingestion.search.ranking import rerank
from ingestion.search.ranking.rerank import rerank_scores
from ingestion.search.retrieval import search
from ingestion.search.tokens import units
from ingestion.tests.documents import make_document, principal_of


class ClosenessTests(SimpleTestCase):
    def better(self, question, first, second):
        """Whether the first of two texts is closer, by words and by neighbouring words."""
        near = rerank_scores(units(question), [first, second])
        return near.words[0] > near.words[1], near.neighbours[0] > near.neighbours[1]

    def test_the_word_itself_is_closer_than_another(self):
        self.assertTrue(self.better("salary", "The salary is paid monthly.", "The ferry is late today.")[0])

    def test_a_word_with_a_similar_meaning_is_closer_than_another(self):
        self.assertTrue(self.better("finance", "They funded it.", "They painted it.")[0])

    def test_adjacent_words_of_the_question_count_if_they_are_adjacent(self):
        together = "The port office opens early, and the ferry leaves late in summer."
        apart = (
            "The office opens early, and in a summer with calm seas the ferry leaves the other old port late."
        )
        self.assertTrue(self.better("port office", together, apart)[1])

    def test_the_distinct_numbers_of_words_are_those_that_sorting_finds(self):
        numbers = np.random.default_rng(5).integers(0, 900, 4_000).astype(np.int32)
        known, places = rerank.distinct(numbers)
        expected, positions = np.unique(numbers, return_inverse=True)
        self.assertEqual(known.tolist(), expected.tolist())
        self.assertEqual(places.tolist(), positions.reshape(-1).tolist())

    def test_unspaced_scripts_are_compared_by_characters(self):
        self.assertEqual(units("NASUWT是什么?"), ["nasuwt", "是", "什", "么"])
        self.assertTrue(self.better("年假多少天", "年假二十七天。", "渡轮晚点了。")[0])

    def test_a_word_of_documents_counts_nearly_as_much_as_the_everyday_word(self):
        texts = ["Ask the boss.", "Ask the supervisor.", "Ask the cook."]
        plain = rerank_scores(["boss"], texts).words
        listed = rerank_scores(["boss"], texts, {"boss": ("line manager", "supervisor")}).words
        self.assertGreater(listed[1], plain[1])
        self.assertTrue(listed[0] > listed[1] > listed[2])

    def test_phrases_match_phrases_if_their_words_are_in_order(self):
        texts = ["Leave of a year is granted annually.", "Annual leave is granted.", "The cook granted it."]
        plain = rerank_scores(["days", "off"], texts).words
        listed = rerank_scores(["days", "off"], texts, {"days off": ("annual leave",)}).words
        self.assertGreater(listed[1] - plain[1], 0.1)
        self.assertAlmostEqual(float(listed[0] - plain[0]), 0, places=5)
        self.assertAlmostEqual(float(listed[2] - plain[2]), 0, places=5)

    def test_empty_questions_and_texts_cause_no_errors(self):
        for asked, texts in (([], ["Dogs."]), (["dogs"], []), (["dogs"], ["", "?!"])):
            with self.subTest(asked=asked, texts=texts):
                near = rerank_scores(asked, texts)
                self.assertEqual((len(near.words), float(near.words.sum())), (len(texts), 0.0))

    def test_the_vector_of_a_word_is_stable(self):
        first = word_vectors(["ferry", "dog", "ferry"])
        self.assertEqual(first.shape, (3, 256))
        self.assertEqual(first.tolist(), word_vectors(["ferry", "dog", "ferry"]).tolist())
        self.assertEqual(len(word_vectors([])), 0)

    def test_scores_do_not_change_when_the_numbering_of_words_restarts(self):
        texts = ["The ferry leaves the port late.", "The office opens early.", "Salaries are paid monthly."]
        everyday = {"boat": ["ferry"]}
        asked = units("when does the boat leave")
        expected = rerank_scores(asked, texts, everyday)
        begun = generation()
        with patch("ingestion.embedding.word_vectors.MAX_CACHED", 30):
            for number in range(6):
                word_numbers([f"word{number}-{place}" for place in range(9)])
                scores = rerank_scores(asked, texts, everyday)
                np.testing.assert_allclose(scores.words, expected.words, rtol=1e-5)
                np.testing.assert_allclose(scores.neighbours, expected.neighbours, rtol=1e-5)
        self.assertGreater(generation(), begun + 1)


class OrderTests(TestCase):
    def test_a_passage_with_the_words_next_to_each_other_comes_first(self):
        apart = (
            "The harbour master signs. Any card that is lost is reported, and the report goes to the master."
        )
        together = (
            "Report a lost card to the office of the harbour, where the master signs for a new one today."
        )
        make_document("cards.txt", [apart, together])
        passages = search(principal_of(User.objects.create_user("reader")), "lost card").passages
        self.assertEqual([passage.content for passage in passages], [together, apart])
        self.assertTrue(all(0 <= passage.score <= 1 for passage in passages))
