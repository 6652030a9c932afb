"""A faulty embedding server: the state and reason of documents, and the time that questions wait."""

import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from unittest import mock

import pytest
from django.test import SimpleTestCase, TestCase, override_settings

from chatsite.accounts.models import User
from chatsite.tests.limits import MARGIN_SECONDS
from ingestion import (
    documents,
    tasks,
)
from ingestion.embedding import EmbeddingError, breaker, embed_question, embedder
from ingestion.models import Document, PreparedVector
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of
from ingestion.tests.embedding_server import Server, by_words
from ingestion.tests.media import MediaMixin

SECRET = "sk-secret"
HTML = "<html><body>Something went wrong</body></html>"


def body(*items):
    return f'{{"data": [{", ".join(items)}]}}'


def item(index, numbers="1, 0, 0"):
    return f'{{"index": {index}, "embedding": [{numbers}]}}'


# The server's answer to two texts, whether to try again later, and the message for people.
FAULTS = {
    "a key that is refused": (
        (401, f'{{"error": "wrong key {SECRET}"}}'),
        False,
        "refuses the request (401)",
    ),
    "an unknown model": ((404, "{}"), False, "refuses the request (404)"),
    "a redirect": ((307, "", {"Location": "http://127.0.0.1:9/"}), False, "refuses the request (307)"),
    "too many requests": ((429, "{}"), True, "does not answer (429)"),
    "an error with a page": ((500, HTML), True, "does not answer (500)"),
    "a page instead of vectors": ((200, HTML), True, "did not return vectors"),
    "broken JSON": ((200, body(item(0))[:-9]), True, "did not return vectors"),
    "deep JSON": ((200, "[" * 200_000), True, "did not return vectors"),
    "no list": ((200, '{"data": 3}'), True, "did not return vectors"),
    "an error in place of vectors": ((200, f'{{"error": "{SECRET}"}}'), True, "did not return vectors"),
    "NaN": ((200, body(item(0), item(1, "NaN, 0, 0"))), True, "did not return vectors"),
    "infinity": ((200, body(item(0), item(1, "1e39, 0, 0"))), True, "did not return vectors"),
    "a number without end": (
        (200, body(item(0), item(1, "1" * 5_000 + ", 0, 0"))),
        True,
        "did not return vectors",
    ),
    "words for numbers": ((200, body(item(0), item(1, '"a", 0, 0'))), True, "did not return vectors"),
    "the same place twice": ((200, body(item(0), item(0))), True, "did not return vectors"),
    "vectors of several sizes": ((200, body(item(0), item(1, "1, 0"))), True, "did not return vectors"),
    "too few numbers": ((200, body(item(0, "1, 0"), item(1, "1, 0"))), False, "that do not have 3 numbers"),
    "too many numbers": (
        (200, body(item(0, "1,0,0,0"), item(1, "1,0,0,0"))),
        False,
        "that do not have 3 numbers",
    ),
    "fewer vectors than texts": ((200, body(item(0))), False, "that do not have 3 numbers"),
    "no vectors": ((200, body()), True, "did not return vectors"),
    "a body without end": ((200, " " * 20_000_000), True, "did not return vectors"),
}


class FaultCase(MediaMixin):
    def serve(self, reply):
        server = Server(reply)
        self.addCleanup(server.stop)
        return server


@pytest.mark.slow
class EndpointFaultTests(FaultCase, SimpleTestCase):
    def failure(self, seconds=5.0):
        with self.assertRaises(EmbeddingError) as caught:
            embedder().embed(["a", "b"], seconds)
        self.assertNotIn(SECRET, repr(caught.exception.__cause__) + str(caught.exception))
        self.assertNotIn("127.0.0.1", str(caught.exception))
        return caught.exception

    def test_each_fault_has_its_message_and_says_whether_a_retry_may_help(self):
        for name, (answer, temporary, words) in FAULTS.items():
            server = self.serve(lambda texts, answer=answer: answer)
            with self.subTest(name), server.settings():
                error = self.failure()
                self.assertIn(words, str(error))
                self.assertEqual(error.temporary, temporary)
                self.assertLessEqual(len(server.asked), 2)

    def test_vectors_that_arrive_out_of_order_are_sorted(self):
        with self.serve(lambda texts: (200, body(item(1, "0, 1, 0"), item(0)))).settings():
            self.assertEqual(embedder().embed(["a", "b"]).tolist(), [[1, 0, 0], [0, 1, 0]])

    def test_a_model_with_longer_vectors_is_asked_for_shorter_ones(self):
        short, long = by_words(3), by_words(8)
        server = self.serve(lambda texts: short(texts) if "dimensions" in server.asked[-1] else long(texts))
        with server.settings():
            self.assertEqual(embedder().embed(["a"]).shape, (1, 3))
            self.assertEqual(embedder().embed(["b"]).shape, (1, 3))
        self.assertEqual([one.get("dimensions") for one in server.asked], [None, 3, 3])

    def test_every_form_of_retry_after_is_understood(self):
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
        for given, least, most in (("7", 7, 7), (date, 50, 60), ("-3", 0, 0), ("soon", 0, 0), ("inf", 0, 0)):
            server = self.serve(lambda texts, given=given: (429, "{}", {"Retry-After": given}))
            with self.subTest(given), server.settings():
                waited = self.failure().retry_after or 0
                self.assertTrue(least <= waited <= most, waited)

    def test_an_unreachable_server_is_a_temporary_fault(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = closed.getsockname()
        with override_settings(EMBEDDING_MODEL="model", OPENAI_BASE_URL=f"http://127.0.0.1:{address[1]}/v1"):
            error = self.failure()
        self.assertEqual((str(error), error.temporary), ("The embedding service does not answer.", True))

    @override_settings(EMBEDDING_MODEL="model", OPENAI_BASE_URL="", OPENAI_API_KEY="")
    def test_a_former_model_without_a_server_in_the_settings_is_not_requested_from_openai(self):
        with mock.patch("ingestion.embedding.endpoint.model_server") as stream:
            error = self.failure()
        self.assertEqual(
            (str(error), error.temporary), ("The settings no longer name an embedding service.", True)
        )
        stream.assert_not_called()

    def test_a_silent_or_dripping_server_is_given_up_at_the_time_limit(self):
        for name, data in {"silent": b"", "drip": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"}.items():
            with self.subTest(name), dripping(data) as url, override_settings(
                EMBEDDING_MODEL=name, EMBEDDING_DIMENSIONS=3, OPENAI_BASE_URL=url
            ):  # fmt: skip
                before = time.monotonic()
                error = self.failure(0.5)
                self.assertLess(time.monotonic() - before, 1.5 + MARGIN_SECONDS)
                self.assertEqual(
                    (str(error), error.temporary), ("The embedding service took too long to answer.", True)
                )


class dripping:
    """A server that sends `data` and then a space every 50 ms."""

    def __init__(self, data):
        self.data, self.over = data, threading.Event()

    def __enter__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()
        return f"http://127.0.0.1:{self.server.getsockname()[1]}/v1"

    def serve(self):
        connection, _ = self.server.accept()
        with connection:
            try:
                connection.sendall(self.data)
                while not self.over.wait(0.05):
                    connection.sendall(b" " if self.data else b"")
            except OSError:
                pass

    def __exit__(self, *exception):
        self.over.set()
        self.server.close()


class QuestionTests(FaultCase, TestCase):
    def setUp(self):
        super().setUp()
        self.reader = principal_of(User.objects.create(username="reader"))

    def test_a_question_that_cannot_be_embedded_is_searched_by_its_words_at_once(self):
        server = self.serve(by_words(8))
        with server.settings(dimensions=8, EMBEDDING_QUESTION_SECONDS=0.3):
            make_document("ferry.md", ["The ferry leaves at seven."])
            server.reply = lambda texts: time.sleep(2) or (401, SECRET)
            asked = len(server.asked)
            before = time.monotonic()
            for _ in range(6):
                with self.assertLogs("ingestion.search.retrieval", "WARNING") as logs:
                    found = search(self.reader, "When does the ferry leave?")
                self.assertEqual((len(found.passages), found.mode), (1, "text"))
                self.assertNotIn(SECRET, "".join(logs.output))
            self.assertLess(time.monotonic() - before, 3 + MARGIN_SECONDS, "three wait, the others do not")
            self.assertEqual(len(server.asked) - asked, breaker.FAILURES)

    def test_after_a_pause_one_question_probes_whether_the_model_is_back(self):
        model = embedder()
        fault = EmbeddingError("away", temporary=True)
        state = breaker.new_breaker()
        with (
            mock.patch.dict(breaker._breakers, {model: state}),
            mock.patch("chatsite.http.outgoing.circuit_breaker.time.monotonic", side_effect=lambda: self.now),
        ):
            self.now = 1_000.0
            with mock.patch.object(model, "embed", side_effect=fault) as embed:
                for _ in range(5):
                    with self.assertRaises(EmbeddingError):
                        embed_question(model, ["a"])
                self.assertEqual(embed.call_count, 3)
                self.now += 31
                for _ in range(5):
                    with self.assertRaises(EmbeddingError):
                        embed_question(model, ["a"])
                self.assertEqual(embed.call_count, 4)
            self.now += 31
            for _ in range(5):
                self.assertEqual(embed_question(model, ["a"]).shape, (1, 256))

    def test_texts_of_one_person_that_the_model_refuses_do_not_take_its_vectors_from_others(self):
        server, other = self.serve(by_words(8)), principal_of(User.objects.create(username="other"))
        with server.settings(dimensions=8):
            make_document("ferry.md", ["The ferry leaves at seven."])
            vectors = server.reply
            server.reply = lambda texts: (500, "{}") if "poison" in texts[0] else vectors(texts)
            asked = len(server.asked)
            for _ in range(2 * breaker.FAILURES):
                with self.assertLogs("ingestion.search.retrieval", "WARNING"):
                    search(self.reader, "Does the ferry carry poison?")
            self.assertEqual(len(server.asked) - asked, breaker.FAILURES)
            found = search(other, "When does the ferry leave?")
            self.assertEqual((len(server.asked) - asked, found.mode), (breaker.FAILURES + 1, "hybrid"))

    def test_a_server_that_asks_for_a_pause_gets_no_requests_meanwhile(self):
        server = self.serve(lambda texts: (429, "{}", {"Retry-After": "60"}))
        with server.settings():
            for _ in range(3):
                with self.assertRaises(EmbeddingError):
                    embed_question(embedder(), ["a"])
        self.assertEqual(len(server.asked), 1)


class DocumentTests(FaultCase, TestCase):
    def state(self, document):
        document.refresh_from_db()
        return document.status, document.version

    def test_a_temporary_fault_is_retried_later_and_embeds_no_text_twice(self):
        answer = by_words(8)
        server = self.serve(lambda texts: answer(texts) if len(server.asked) < 3 else busy)
        busy = (429, SECRET, {"Retry-After": "70"})
        with server.settings(dimensions=8):
            document = self.add(data="\n\n".join(f"# {n}\n\nText {n}." for n in range(400)), read=False)
            with self.assertRaises(documents.TemporaryFailure) as caught:
                documents.read_document(document.pk)
            self.assertEqual(self.state(document), ("waiting", 0))
            self.assertEqual(document.reason, "The embedding service does not answer (429).")
            self.assertEqual(caught.exception.retry_after, 70)
            self.assertEqual(PreparedVector.objects.count(), 256)
            server.reply = answer
            documents.read_document(document.pk)
        self.assertEqual(self.state(document), ("ready", 1))
        texts = [text for one in server.asked[:2] + server.asked[3:] for text in one["input"]]
        self.assertEqual((len(texts), len(set(texts))), (400, 400))
        self.assertEqual(PreparedVector.objects.count(), 0)

    def test_a_permanent_fault_becomes_the_documents_reason(self):
        with self.serve(lambda texts: (401, SECRET)).settings():
            document = self.add()
        self.assertEqual(document.reason, "The embedding service refuses the request (401).")
        self.assertEqual(self.state(document), ("failed", 0))

    def test_prepared_vectors_of_a_failed_document_are_kept_for_a_day(self):
        answer = by_words(8)
        server = self.serve(lambda texts: answer(texts) if len(server.asked) < 2 else (401, SECRET))
        with server.settings(dimensions=8):
            document = self.add(data="\n\n".join(f"# {n}\n\nText {n}." for n in range(200)))
        tasks.remove_orphans(0)
        self.assertEqual((self.state(document), PreparedVector.objects.count()), (("failed", 0), 128))
        Document.objects.update(changed_at=datetime.now(UTC) - timedelta(days=2))
        tasks.remove_orphans(0)
        self.assertEqual(PreparedVector.objects.count(), 0)

    def test_the_worker_waits_for_as_long_as_the_server_asks(self):
        job = mock.Mock(attempts=0)
        for asked, least, most in ((None, 14, 16), (1.0, 14, 16), (70.0, 69, 71), (1e9, 3_599, 3_601)):
            fault = documents.TemporaryFailure("away", asked)
            decision = tasks.READ_RETRIES.get_retry_decision(exception=fault, job=job)
            seconds = (decision.retry_at - datetime.now(UTC)).total_seconds()
            self.assertTrue(least <= seconds <= most, (asked, seconds))
