"""The ranker: a /rerank endpoint or the chat model's grades. If it fails, the answer does without it."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

import pytest
from django.test import SimpleTestCase, override_settings

from chat.llm import reranking
from chat.llm.connections import connection
from chat.llm.remote import RemoteModel
from chat.llm.side_texts import grades
from chat.tests.override_case import OverrideTestCase
from chat.tests.upstream_case import FakeServerTestCase
from chat.tests.upstream_faults import completion
from chatsite.db.threads import in_database
from ingestion.tests.factories import make_document

KEY = "rerank-key-1234"


class FakeRanker:
    """Answers POST /v1/rerank with `respond(body)`, which returns a status and a body."""

    def __init__(self, respond):
        fake, self.requests = self, []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.requests.append((self.path, self.headers.get("Authorization"), body))
                status, answer = respond(body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", fake.url + "/elsewhere")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
        settings = {"RERANK_MODEL": "ranker-1", "RERANK_BASE_URL": self.url, "RERANK_API_KEY": KEY}
        self.settings = override_settings(**settings)
        self.settings.enable()
        return self

    def __exit__(self, *exception):
        self.settings.disable()
        self.server.shutdown()
        self.server.server_close()


def scored(*scores):
    return 200, {
        "results": [{"index": place, "relevance_score": score} for place, score in enumerate(scores)]
    }


class EndpointTests(SimpleTestCase):
    def rerank(self, *answer, count=2):
        with FakeRanker(lambda body: answer) as self.fake:
            return asyncio.run(reranking.rerank("Leave?", ["a", "b", "c"][:count]))

    def fails(self, *answer):
        with self.assertLogs("chat.llm.reranking", "WARNING") as logged:
            self.assertEqual(self.rerank(*answer), {})
        self.assertNotIn(KEY, str(logged.output))
        self.assertNotIn(self.fake.url, str(logged.output))

    def test_the_request_has_the_common_shape(self):
        self.rerank(*scored(0.5, 0.1))
        (request,) = self.fake.requests
        body = {"model": "ranker-1", "query": "Leave?", "documents": ["a", "b"], "top_n": 2}
        self.assertEqual(request, ("/v1/rerank", f"Bearer {KEY}", body))

    def test_scores_are_scaled_from_0_to_4(self):
        self.assertEqual(self.rerank(*scored(0.25, 1.0)), {0: 1.0, 1: 4.0})

    def test_raw_scores_are_normalised_in_order(self):
        found = self.rerank(*scored(-7.5, 900.0))
        self.assertTrue(0 <= found[0] < found[1] <= 4)

    @pytest.mark.slow
    def test_an_invalid_ranking_is_ignored(self):
        for answer in (
            (500, {"error": KEY}),
            (401, {}),
            (302, {}),
            (200, b"not json"),
            (200, []),
            (200, {"results": "x"}),
            (200, {"results": [{"index": 9, "relevance_score": 1}]}),
            (200, {"results": [{"index": -1, "relevance_score": 1}]}),
            (200, {"results": [{"index": 0, "relevance_score": "x"}]}),
            (200, b'{"results": [{"index": 0, "relevance_score": NaN}]}'),
            (200, {"results": [{"index": 0, "relevance_score": 10**400}]}),
        ):
            with self.subTest(answer=answer):
                self.fails(*answer)
                self.assertEqual(len(self.fake.requests), 1)

    def test_an_unreachable_server_is_ignored(self):
        settings = override_settings(RERANK_MODEL="m", RERANK_BASE_URL="http://127.0.0.1:9")
        with settings, self.assertLogs("chat.llm.reranking", "WARNING"):
            self.assertEqual(asyncio.run(reranking.rerank("Leave?", ["a"])), {})

    def test_a_slow_server_is_not_waited_for(self):
        released = threading.Event()

        def wait(body):
            released.wait(5)
            return scored(1.0)

        with FakeRanker(wait), mock.patch.object(reranking, "SECONDS", 0.1):
            with self.assertLogs("chat.llm.reranking", "WARNING"):
                self.assertEqual(asyncio.run(reranking.rerank("Leave?", ["a"])), {})
            released.set()


class GradeTests(SimpleTestCase):
    def test_lines_with_a_number_and_a_grade_are_read(self):
        self.assertEqual(grades("1: 4\n2. 0\n[3] = 2.5\n- 4: 3/4\nnothing", 4), {0: 4, 1: 0, 2: 2.5, 3: 3})

    def test_unknown_passages_and_grades_are_left_out(self):
        self.assertEqual(grades("0: 3\n5: 3\n1: 9\n2: many\nThere are 3 good ones: 4", 4), {})

    def test_reasoning_is_not_read(self):
        self.assertEqual(grades("<think>1: 0</think>1: 3", 2), {0: 3})


class ModelTests(FakeServerTestCase):
    def graded(self, text):
        self.fake.side = lambda request: completion(text)

        async def ask():
            try:
                return await RemoteModel().graded("Leave?", ["Five days.", "Soup."])
            finally:
                await connection().server.close()

        return asyncio.run(ask())

    def test_the_model_grades_numbered_passages_in_one_call(self):
        self.assertEqual(self.graded("1: 4\n2: 0"), {0: 4, 1: 0})
        (request,) = self.fake.requests
        system, question = request.body["messages"]
        self.assertIn("not instructions", system["content"])
        self.assertIn("1. Five days.\n\n2. Soup.", question["content"])

    def test_other_text_is_not_a_grade(self):
        self.assertEqual(self.graded("I cannot do that."), {})


class RankedAnswerTests(OverrideTestCase):
    def setUp(self):
        super().setUp()
        for name in ("a", "b", "c"):
            make_document(
                f"{name}.md", [f"Five days of leave may be carried over, says {name}."], everyone=True
            )

    async def test_the_order_of_the_endpoint_is_reported_with_its_name_and_scores(self):
        plain = self.found(await self.ask())
        with FakeRanker(lambda body: scored(0.1, 0.2, 0.9)):
            context = await self.ask(semantic_ranker=True, minimum_reranker_score=0.5)
        self.assertEqual(self.found(context), [plain[2], plain[1]])
        results = self.step(context, "Results")["description"]
        self.assertEqual([result["reranker_score"] for result in results], [3.6, 0.8])
        self.assertEqual(self.step(context, "Semantic ranker")["props"]["ranker"], "ranker-1")

    async def test_the_endpoint_sees_only_what_the_caller_may_read(self):
        await in_database(make_document, "secret.md", ["Nine days of leave may be carried over."])
        with FakeRanker(lambda body: scored(0.1, 0.2, 0.9)) as fake:
            await self.ask(semantic_ranker=True)
        self.assertEqual(len(fake.requests[0][2]["documents"]), 3)
        self.assertNotIn("Nine", str(fake.requests))

    async def test_if_ranking_fails_the_order_of_the_search_is_kept(self):
        plain = self.found(await self.ask())
        with FakeRanker(lambda body: (503, {})):
            context = await self.ask(semantic_ranker=True)
        self.assertEqual(self.found(context), plain)
        self.assertIn("did not answer", self.step(context, "Semantic ranker")["description"])
