"""Changing the embedding model while the site is in use: documents can be found by meaning at any time."""

import io
import threading
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, connection
from django.test import SimpleTestCase, TransactionTestCase, override_settings

from chatsite.accounts.models import User
from ingestion import documents
from ingestion.embedding import EmbeddingError, active_space, pending_change
from ingestion.indexing import reembedding
from ingestion.indexing.passages import NewPassage
from ingestion.indexing.reembedding import Progress
from ingestion.indexing.replacing import (
    prepare,
    write_passages,
)
from ingestion.management.commands.reembed import ProgressDisplay
from ingestion.models import EmbeddingSpace, Passage, PreparedVector, Vector
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of
from ingestion.tests.embedding_server import Server, by_words

FERRY = "The ferry to the island leaves at seven."
FORMER = "wordllama-l2-supercat-256 (256)"


class ReembedCase(TransactionTestCase):
    """A site with one document, embedded by the model that comes with it."""

    def setUp(self):
        quick = override_settings(EMBEDDING_QUESTION_SECONDS=0.2)
        quick.enable()
        self.addCleanup(quick.disable)
        self.drop_indexes()  # of other tests that committed: only their spaces were removed
        self.addCleanup(self.drop_indexes)
        for name in ("PAUSE", "RETRY_DELAYS"):
            value = 0.05 if name == "PAUSE" else (0.01, 0.01)
            patch = mock.patch.object(reembedding, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.reader = principal_of(User.objects.create(username="reader"))
        self.document = make_document("ferry.md", [FERRY])

    def drop_indexes(self):
        with connection.cursor() as cursor:
            for name in self.indexes():
                cursor.execute(f"DROP INDEX {name}")

    def indexes(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT indexrelid::regclass::text FROM pg_index"
                " WHERE indexrelid::regclass::text LIKE 'vector_space_%' AND indisvalid"
            )
            return [name for (name,) in cursor.fetchall()]

    def serve(self, dimensions=8):
        server = Server(by_words(dimensions))
        self.addCleanup(server.stop)
        return server

    def found(self):
        found = search(self.reader, "ferry island", mode="vectors")
        return [passage.content for passage in found.passages][:1] if found.mode == "vectors" else []

    def reembed(self):
        told = io.StringIO()
        with mock.patch("sys.stderr", told):
            call_command("reembed", stdout=told)
        return told.getvalue()

    def stopped(self):
        with self.assertRaises(CommandError) as caught:
            self.reembed()
        return str(caught.exception)

    def assert_complete(self, name):
        """Assert that every passage has its vectors in this space, and that no other space has any."""
        (space,) = EmbeddingSpace.objects.all()
        self.assertEqual((space.name, space.active), (name, True))
        embedded = Vector.objects.values_list("passage", flat=True).distinct()
        self.assertEqual(set(embedded), set(Passage.objects.values_list("pk", flat=True)))
        self.assertEqual(self.indexes(), [f"vector_space_{space.pk}"])
        self.assertEqual(PreparedVector.objects.count(), 0)


@pytest.mark.slow
class ReembedTests(ReembedCase):
    def test_search_uses_the_former_model_until_the_new_one_is_complete(self):
        server = self.serve()
        with server.settings(dimensions=8):
            self.assertEqual(self.found(), [FERRY])
            self.assertEqual((server.asked, str(active_space())), ([], FORMER))
            self.assertIn(f"embedded with {FORMER}, but the settings say model (8)", pending_change())
            self.assertIn("The documents are embedded with model (8): 1 passages.", self.reembed())
            self.assertEqual((self.found(), pending_change()), ([FERRY], ""))
            self.assertEqual(server.texts, [f"{FERRY}", "ferry island"])
            self.assert_complete("model")
            self.assertIn("There is nothing to do", self.reembed())
        self.assertIn("settings say wordllama", pending_change())
        self.reembed()
        self.assert_complete("wordllama-l2-supercat-256")
        self.assertEqual(self.found(), [FERRY])

    def test_vectors_of_every_common_size_are_indexed_and_found(self):
        for dimensions in (256, 384, 768, 1024, 1536, 3072):
            with self.subTest(dimensions=dimensions), self.serve(dimensions).settings(dimensions=dimensions):
                self.reembed()
                self.assert_complete("model")
                self.assertEqual(self.found(), [FERRY])

    def test_documents_are_found_throughout(self):
        make_document("other.md", [f"Something else, number {number}." for number in range(700)])
        server, over, failures, searches = self.serve(64), threading.Event(), [], []

        def look():
            while not over.is_set():
                searches.append(str(active_space()))
                if self.found() != [FERRY]:
                    failures.append(searches[-1])
            connection.close()

        with server.settings(dimensions=64):
            thread = threading.Thread(target=look)
            thread.start()
            try:
                self.reembed()
            finally:
                over.set()
                thread.join()
        self.assertEqual((failures, set(searches)), ([], {FORMER, "model (64)"}))

    def test_documents_added_changed_and_deleted_meanwhile_end_up_correct(self):
        changed = make_document("changed.md", ["Old words."])
        deleted = make_document("deleted.md", ["Words that go."])
        make_document("more.md", [f"Number {number}." for number in range(300)])
        server, answer, calls = self.serve(), by_words(8), iter(range(1_000_000))

        def meddle(texts):
            if next(calls) == 1:
                passages = [NewPassage("", None, "", "New words.")]
                write_passages(changed, passages, prepare(changed, passages, ""))
                documents.delete_document(deleted)
                make_document("added.md", ["Words that come."])
                connection.close()
            return answer(texts)

        server.reply = meddle
        with server.settings(dimensions=8):
            self.reembed()
        self.assert_complete("model")
        contents = set(Passage.objects.exclude(document__name="more.md").values_list("content", flat=True))
        self.assertEqual(contents, {FERRY, "New words.", "Words that come."})

    def test_passages_embedded_before_a_failure_are_not_embedded_again(self):
        make_document("more.md", [f"Number {number}." for number in range(900)])
        server, answer = self.serve(), by_words(8)
        server.reply = lambda texts: answer(texts) if len(server.asked) < 4 else (401, "sk-secret is wrong")
        with server.settings(dimensions=8):
            message = self.stopped()
            self.assertIn("refuses the request (401). 200 of 901 passages", message)
            self.assertIn(f"Search continues to use {FORMER}. Run “manage.py reembed” again", message)
            self.assertNotIn("sk-secret", message)
            self.assertEqual(self.found(), [FERRY])
            kept = set(server.texts[:200])
            server.reply, server.asked = answer, []
            self.reembed()
        self.assertEqual(len(server.texts), 701)
        self.assertFalse(kept & set(server.texts))
        self.assert_complete("model")

    def test_the_command_waits_for_a_busy_server(self):
        server, answer = self.serve(), by_words(8)
        busy = (429, "{}", {"Retry-After": "0.3"})
        server.reply = lambda texts: busy if len(server.asked) == 1 else answer(texts)
        with server.settings(dimensions=8), mock.patch("ingestion.indexing.reembedding.time.sleep") as sleep:
            told = self.reembed()
        self.assertIn(mock.call(0.3), sleep.mock_calls)
        self.assertRegex(told, r"The embedding service .*\. Retrying in 0 s …")
        self.assert_complete("model")

    def test_ctrl_c_prints_what_is_kept(self):
        with (
            self.serve().settings(dimensions=8),
            mock.patch.object(reembedding, "_write", side_effect=KeyboardInterrupt),
        ):
            message = self.stopped()
        self.assertTrue(message.startswith("Stopped. 0 of 1 passages are embedded with model (8) and kept."))

    def test_an_index_left_unfinished_by_a_killed_command_is_rebuilt(self):
        with self.serve().settings(dimensions=8):
            space = reembedding.configured_space()
            make_document("more.md", ["More."])
            with connection.cursor() as cursor:
                # A concurrent build that fails leaves an invalid index; zero vectors cannot be indexed.
                cursor.execute(
                    "INSERT INTO ingestion_vector (space_id, document_id, passage_id, vector)"
                    " SELECT %s, document_id, id, '[1,2]'::halfvec FROM ingestion_passage",
                    [space.pk],
                )
                with self.assertRaises(DataError):
                    reembedding._build_index(space)
                self.assertNotIn(f"vector_space_{space.pk}", self.indexes())
                cursor.execute("DELETE FROM ingestion_vector WHERE space_id = %s", [space.pk])
            self.reembed()
            self.assert_complete("model")

    def test_a_second_command_says_that_another_one_is_running(self):
        with self.serve().settings(dimensions=8), reembedding._reembedding_lock():
            messages = []
            thread = threading.Thread(target=lambda: (messages.append(self.stopped()), connection.close()))
            thread.start()
            thread.join()
        self.assertEqual(messages, ["Another “manage.py reembed” is already running."])

    def test_a_document_that_was_read_for_the_former_model_is_embedded_again_by_the_new_one(self):
        passages = [NewPassage("", None, "", "New words.")]
        prepared = prepare(self.document, passages, "")
        server = self.serve()
        with server.settings(dimensions=8):
            self.reembed()
            with mock.patch.object(documents.reading, "prepare", side_effect=[prepared, prepared, prepared]):
                with self.assertRaises(EmbeddingError) as caught:
                    self.swap(passages)
                self.assertTrue(caught.exception.temporary)
            self.swap(passages)
            self.assert_complete("model")
            self.assertEqual(Passage.objects.get().content, "New words.")

    def swap(self, passages):
        with (
            mock.patch.object(documents.reading.process, "read") as read,
            mock.patch.object(documents.reading, "passages_of", return_value=passages),
            mock.patch.object(documents.reading.files, "local_copy"),
        ):
            read.return_value = documents.reading.process.Reading("Ferry", "english", None, ())
            documents.reading.read(self.document, None)


class DisplayTests(SimpleTestCase):
    def shown(self, terminal):
        stream, times = io.StringIO(), iter([0.0, 1.0, 1.05, 10.0])
        stream.isatty = lambda: terminal
        display = ProgressDisplay(stream, lambda: next(times) + 100)
        for done in (0, 100, 105, 1_000):
            display.show(Progress("Embedding", done, 2_000))
        display.clear()
        return stream.getvalue()

    def test_a_terminal_shows_one_line_that_changes(self):
        lines = self.shown(terminal=True).split("\r")
        self.assertEqual(lines[0], "")
        self.assertIn("Embedding 100/2,000, 100 a second, 0:19 left", lines[2])
        self.assertIn("███████████████░░░░░░░░░░░░░░░ Embedding 1,000/2,000", lines[3])
        self.assertEqual(len(lines), 5)

    def test_without_a_terminal_a_line_is_written_every_few_seconds(self):
        self.assertEqual(
            self.shown(terminal=False),
            "Embedding 0/2,000\nEmbedding 1,000/2,000, 100 a second, 0:10 left\n",
        )
