"""Vectors: of the built-in model, and of an OpenAI-compatible server that may answer anything."""

import threading
from unittest import mock

import numpy as np
import pytest
from django.db import connection
from django.test import SimpleTestCase, TestCase, override_settings

from ingestion.embedding import EmbeddingError, active_space, embedder, is_english_only, model_languages
from ingestion.embedding.built_in import WordLlamaEmbedder
from ingestion.models import EmbeddingSpace
from ingestion.tests.embedding_server import Server


class BuiltInTests(SimpleTestCase):
    def test_vectors_have_length_one_and_empty_texts_have_the_zero_vector(self):
        vectors = embedder().embed(["a ferry to the island", "", "a boat to the isle"])
        self.assertEqual((vectors.shape, vectors.dtype), ((3, 256), np.float32))
        self.assertAlmostEqual(float(np.linalg.norm(vectors[0])), 1, places=5)
        self.assertTrue(np.isfinite(vectors).all())
        self.assertEqual(embedder().embed([]).shape, (0, 256))

    def test_texts_of_similar_meaning_are_nearer(self):
        ferry, boat, tax = embedder().embed(
            ["a ferry to the island", "a boat to the isle", "income tax return"]
        )
        self.assertGreater(ferry @ boat, ferry @ tax)

    def test_a_vector_is_the_average_of_the_vectors_of_its_tokens(self):
        model = WordLlamaEmbedder()
        texts = ["a", "tax " * 5_000, *(f"Leave number {number}, naïve 東京 🦊" for number in range(20))]
        averages = np.stack(
            [
                model._table[model._tokenizer.encode(text, add_special_tokens=False).ids]
                .astype(np.float64)
                .mean(axis=0)
                for text in texts
            ]
        )
        averages /= np.linalg.norm(averages, axis=1, keepdims=True)
        np.testing.assert_allclose(model.embed(texts), averages, atol=1e-6)

    @pytest.mark.slow
    def test_a_repeated_token_is_looked_up_once(self):
        model, looked_up = WordLlamaEmbedder(), []
        table = model._table

        class Counted:
            def __len__(self):
                return len(table)

            def __getitem__(self, rows):
                looked_up.append(len(rows))
                return table[rows]

        model._table = Counted()
        model.embed(["leave " * 10_000] * 20)
        self.assertEqual(len(looked_up), 20)
        self.assertLessEqual(max(looked_up), 4)

    def test_many_threads_get_the_same_vectors(self):
        texts = [f"text {'long ' * number}" for number in range(40)]
        alone, found = embedder().embed(texts), []
        threads = [threading.Thread(target=lambda: found.append(embedder().embed(texts))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all(np.array_equal(alone, vectors) for vectors in found))


@pytest.mark.slow
class EndpointTests(SimpleTestCase):
    def embed(self, reply, texts, dimensions=3):
        self.server = Server(reply)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        with override_settings(
            EMBEDDING_MODEL="model",
            EMBEDDING_DIMENSIONS=dimensions,
            OPENAI_BASE_URL=self.server.url,
            OPENAI_API_KEY="k",
        ):
            return embedder().embed(texts)

    def failure(self, reply, temporary):
        with self.assertRaises(EmbeddingError) as caught:
            self.embed(reply, ["a", "b"])
        self.assertEqual(caught.exception.temporary, temporary)
        self.assertNotIn("127.0.0.1", str(caught.exception))
        self.assertEqual(len(self.server.asked), 1, "it is not asked again in silence")
        return str(caught.exception)

    def test_texts_are_sent_in_batches_and_come_back_in_order(self):
        vectors = self.embed(
            lambda texts: [[float(text), 0, 0.5] for text in texts], [str(n) for n in range(1, 301)]
        )
        self.assertEqual([len(body["input"]) for body in self.server.asked], [128, 128, 44])
        expected = np.array([[n, 0, 0.5] for n in range(1, 301)], dtype=np.float32)
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        self.assertTrue(np.allclose(vectors, expected))

    def test_empty_texts_are_not_sent(self):
        vectors = self.embed(lambda texts: [[1.0, 0, 0] for _ in texts], ["", "a", "  "])
        self.assertEqual(self.server.asked[0]["input"], ["a"])
        self.assertEqual(vectors.tolist(), [[0, 0, 0], [1, 0, 0], [0, 0, 0]])

    def test_wrong_answers_are_recognised(self):
        size = "The embedding service returned vectors that do not have 3 numbers."
        self.assertEqual(self.failure(lambda texts: [[1.0, 2.0]] * 2, False), size)
        self.assertEqual(self.failure(lambda texts: [[1.0, 2.0, 3.0]], False), size)
        self.assertIn("did not return vectors", self.failure(lambda texts: [[float("nan"), 0, 0]] * 2, True))
        self.assertIn("did not return vectors", self.failure(lambda texts: [["a", "b", "c"]] * 2, True))
        self.assertIn("did not return vectors", self.failure(lambda texts: (200, "<html>"), True))
        self.assertIn("refuses", self.failure(lambda texts: (401, '{"error": "key"}'), False))
        self.assertIn("does not answer (429)", self.failure(lambda texts: (429, "{}"), True))
        self.assertIn("does not answer", self.failure(lambda texts: (503, "{}"), True))


class SpaceTests(TestCase):
    def test_the_space_is_made_once_and_has_an_index(self):
        space = active_space()
        self.assertEqual((space, space.dimensions), (active_space(), 256))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indexdef FROM pg_indexes WHERE indexname = %s", [f"vector_space_{space.pk}"]
            )
            self.assertIn("hnsw", cursor.fetchone()[0])

    def test_another_model_gets_a_space_of_its_own_which_becomes_active(self):
        first = active_space()
        with override_settings(EMBEDDING_MODEL="other", EMBEDDING_DIMENSIONS=8):
            second = active_space()
            self.assertNotEqual(first, second)
            self.assertEqual(list(EmbeddingSpace.objects.filter(active=True)), [second])
        self.assertEqual(active_space(), first)


class LanguageTests(SimpleTestCase):
    """Whether German questions are translated into English for a model."""

    def english_only(self, name, german):
        """The result for a model that distinguishes English sentences, and gives `german` for German ones."""
        model = mock.Mock()
        model.embed.side_effect = [german, np.eye(4)] if isinstance(german, np.ndarray) else german
        model_languages._understands_german.cache_clear()
        self.addCleanup(model_languages._understands_german.cache_clear)
        with mock.patch.object(model_languages, "embedder", return_value=model):
            return is_english_only(name, 4)

    def test_a_folders_model_is_asked_in_english_only_if_it_does_not_know_german(self):
        self.assertFalse(self.english_only("folder:one", np.eye(4) * 0.9))
        self.assertTrue(self.english_only("folder:two", np.eye(4)[::-1]))
        self.assertTrue(self.english_only("folder:three", np.full((4, 4), 0.7)))

    def test_the_built_in_model_is_english_and_a_servers_model_gets_no_translation(self):
        self.assertTrue(is_english_only(embedder().name, 256))
        self.assertFalse(self.english_only("text-embedding-3-small", np.zeros((4, 4))))

    def test_a_failing_model_gets_the_question_in_its_own_language(self):
        self.assertFalse(self.english_only("folder:four", [EmbeddingError("Gone.", temporary=False)]))
