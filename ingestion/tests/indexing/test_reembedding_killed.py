"""`manage.py reembed` in a process that is killed at random moments and started again."""

import os
import random
import subprocess
import sys
import time

import pytest
from django.conf import settings
from django.db import connection
from psycopg.conninfo import make_conninfo

from chatsite.tests.limits import LONG_SECONDS
from ingestion.indexing.reembedding import PASSAGE_BATCH
from ingestion.models import EmbeddingSpace, Vector
from ingestion.tests.documents import make_document
from ingestion.tests.embedding_server import by_words
from ingestion.tests.indexing.test_reembedding import ReembedCase

ROUNDS = int(os.environ.get("CHATSITE_TEST_ROUNDS", "1"))
PASSAGES = 1_000

# Starts other processes, and takes minutes.
pytestmark = [pytest.mark.server, pytest.mark.timeout(LONG_SECONDS)]


class KilledTests(ReembedCase):
    def start(self, server):
        known = connection.get_connection_params()
        names = ("host", "port", "user", "password", "passfile", "dbname")
        environment = {
            "DATABASE_URL": make_conninfo(**{name: known[name] for name in names if known.get(name)}),
            "OPENAI_BASE_URL": server.url,
            "CHAT_MODEL": "any",
            "EMBEDDING_MODEL": "model",
            "EMBEDDING_DIMENSIONS": "64",
            "CHATSITE_EMBEDDING_QUESTION_SECONDS": "0.2",
        }
        return subprocess.Popen(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "reembed"],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def kill_somewhere(self, server, chance):
        """Kill the command after a random number of answers, or at a random moment after the last."""
        target = len(server.asked) + chance.randrange(1, 2 + PASSAGES // PASSAGE_BATCH)
        process = self.start(server)
        while process.poll() is None and len(server.asked) < target:
            if len(server.texts) >= PASSAGES:
                time.sleep(chance.uniform(0.5, 3))
                break
            time.sleep(0.005)
        process.kill()
        process.communicate()

    def test_a_killed_command_loses_nothing_and_repeats_little(self):
        make_document("more.md", [f"Number {number}." for number in range(PASSAGES)])
        server, answer = self.serve(64), by_words(64)

        def slowly(texts):
            time.sleep(0.01)
            return answer(texts)

        server.reply = slowly
        seed = random.randrange(1_000_000)
        chance = random.Random(seed)
        with self.subTest(seed=seed), server.settings(dimensions=64):
            for _ in range(ROUNDS):
                self.kill_somewhere(server, chance)
                self.assertTrue(self.found(), "it is found between two tries")
            embedded = [text for text in server.texts if text != "ferry island"]
            self.assertLessEqual(len(embedded), PASSAGES + 1 + ROUNDS * PASSAGE_BATCH)
            server.reply = answer
            process = self.start(server)
            output = process.communicate()[0].decode()
            self.assertEqual(process.returncode, 0, output)
            self.assert_complete("model")
            self.assertEqual(Vector.objects.count(), PASSAGES + 1)
            self.assertEqual(EmbeddingSpace.objects.count(), 1)
