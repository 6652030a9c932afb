"""POST /api/search: passages for programs, under the rights of their caller."""

import io
import runpy
import sys
from contextlib import redirect_stdout
from unittest import mock
from urllib.error import HTTPError

from django.conf import settings
from django.test import TestCase

from chat.tests.conversations import answered
from chatsite.accounts.models import ApiKey, WebhookEndpoint
from history.models import Feedback, Share
from ingestion.tests.factories import make_document, make_user

TEXTS = (
    "Employees may carry over five days of leave until 31 March.",
    "Whoever is ill tells the office by nine o'clock.",
    "Trains are booked in second class.",
)


class SearchApiCase(TestCase):
    def setUp(self):
        self.user = make_user("ada", groups=["Board"])
        self.document = make_document("guide.md", TEXTS, everyone=True, folder="rules/leave", category="hr")
        make_document("board.md", ["The board may carry over nine days of leave."], users=[make_user("eve")])
        self.secret = ApiKey.objects.issue(self.user, "test", scopes=["search"])[1]

    def search(self, query="How many days of leave can I carry over?", secret=None, **members):
        headers = {"Authorization": f"Bearer {secret or self.secret}"}
        body = {"query": query, **members}
        return self.client.post("/api/search", body, "application/json", headers=headers)

    def found(self, *args, **members):
        answer = self.search(*args, **members)
        self.assertEqual(answer.status_code, 200, answer.content)
        return answer.json()

    def names(self, *args, **members):
        return {hit["label"] for hit in self.found(*args, **members)["results"]}


class SearchApiTests(SearchApiCase):
    def test_a_passage_has_its_place_score_and_marks(self):
        answer = self.found()
        hit = answer["results"][0]
        self.assertEqual(answer["mode"], "hybrid")
        self.assertEqual((hit["document_id"], hit["label"]), (str(self.document.public_id), "guide.md"))
        self.assertEqual((hit["folder"], hit["category"], hit["content"]), ("rules/leave", "hr", TEXTS[0]))
        self.assertTrue(0 < hit["score"] <= 1)
        marked = [hit["content"][match["start"] : match["end"]] for match in hit["matches"]]
        self.assertLessEqual({"carry", "days", "leave"}, set(marked))
        self.assertTrue(hit["url"].endswith(f"/content/{self.document.public_id}/guide.md"), hit["url"])
        self.assertIsNone(hit["explanation"])

    def test_nobody_finds_unreadable_documents(self):
        self.assertEqual(self.names(limit=50), {"guide.md"})
        self.document.delete()
        self.assertEqual(self.found(limit=50)["results"], [])

    def test_a_document_whose_access_is_removed_is_no_longer_found(self):
        own = make_document("own.md", [TEXTS[0]], users=[self.user])
        self.assertIn("own.md", self.names(scope=f"document:{own.public_id}"))
        type(own).objects.filter(pk=own.pk).update(access_list=make_document("x.md").access_list)
        self.assertEqual(self.names(scope=f"document:{own.public_id}"), set())

    def test_neighbours_come_from_the_same_document_in_order(self):
        hit = self.found("when to tell the office of an illness", neighbours=2)["results"][0]
        self.assertEqual(hit["content"], TEXTS[1])
        self.assertEqual([each["content"] for each in hit["before"]], [TEXTS[0]])
        self.assertEqual([each["content"] for each in hit["after"]], [TEXTS[2]])

    def test_a_scope_narrows_what_is_searched(self):
        self.assertEqual(self.names(scope="folder:rules"), {"guide.md"})
        self.assertEqual(self.names(scope="category:hr"), {"guide.md"})
        for scope in ("folder:rule", "own", "category:it"):
            self.assertEqual(self.names(scope=scope), set(), scope)
        self.assertEqual(self.names(exclude_category="hr"), set())

    def test_the_response_has_the_mode_and_how_each_passage_was_found(self):
        answer = self.found(mode="text", explain=True)
        self.assertEqual(answer["mode"], "text")
        told = answer["results"][0]["explanation"]
        self.assertEqual((told["found_by"], told["vector_score"]), ("words", None))
        self.assertGreater(told["text_score"], 0)

    def test_an_invalid_member_is_named(self):
        wrong = {
            "query": "",
            "limit": 51,
            "mode": "best",
            "scope": "document:1",
            "minimum_score": 2,
            "neighbours": -1,
            "explain": "perhaps",
        }
        for member, value in wrong.items():
            answer = self.search(**{member: value})
            self.assertEqual(answer.status_code, 400, member)
            self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
            self.assertEqual([each["pointer"] for each in answer.json()["errors"]], [f"/{member}"])
        for member, value in (
            ("explain", 0),
            ("minimum_score", False),
            ("limit", "5"),
            ("limit", True),
            ("query", 5),
        ):
            answer = self.search(**{member: value})
            self.assertEqual((answer.status_code, member, value), (400, member, value))
        self.assertEqual(self.search(limit=5.0).status_code, 200)
        headers = {"Authorization": f"Bearer {self.secret}"}
        for body in (b"", b"[]", b"null", b"{", b'{"query": "\\u0000"}'):
            answer = self.client.post("/api/search", body, "application/json", headers=headers)
            self.assertEqual(answer.status_code, 400, body)

    def test_a_key_without_the_scope_gets_nothing(self):
        secret = ApiKey.objects.issue(self.user, "chat", scopes=["chat", "documents:read"])[1]
        answers = [self.search(query, secret).content for query in ("leave", "")]
        self.assertEqual(self.search(secret=secret).status_code, 403)
        self.assertEqual(answers[0], answers[1])


class UnknownMemberTests(SearchApiCase):
    def test_an_unknown_member_is_named_and_nothing_is_done(self):
        key = ApiKey.objects.issue(
            self.user, "all", scopes=["chat", "search", "documents:write", "webhooks"]
        )[1]
        conversation, answer = answered(self.user, self.document)
        for method, path, body in (
            ("post", "/api/search", {"query": "leave"}),
            ("post", "/api/shares", {"conversation_id": str(conversation.pk), "everyone": True}),
            ("put", f"/api/messages/{answer.pk}/feedback", {"rating": "good"}),
            ("post", "/api/webhooks", {"url": "https://hooks.example.org/", "events": ["document.ready"]}),
            ("patch", f"/api/documents/{self.document.public_id}", {"category": "x"}),
        ):
            send, headers = getattr(self.client, method), {"Authorization": f"Bearer {key}"}
            refused = send(path, body | {"days": 7}, "application/json", headers=headers)
            with self.subTest(path):
                self.assertEqual(refused.status_code, 400, refused.content)
                self.assertEqual(refused.json()["errors"][0]["pointer"], "/days")
        self.assertFalse(
            Share.objects.exists() or Feedback.objects.exists() or WebhookEndpoint.objects.exists()
        )


class ExampleTests(SearchApiCase):
    """Run the program in docs/integrations unchanged; its requests go to Django's test client."""

    def send(self, request, timeout):
        headers = dict(request.header_items())
        answer = self.client.post(
            request.selector, request.data, headers.pop("Content-type"), headers=headers
        )
        if answer.status_code != 200:
            raise HTTPError(request.full_url, answer.status_code, "", {}, io.BytesIO(answer.content))
        return io.BytesIO(answer.content)

    def run_example(self, *words):
        program = settings.BASE_DIR / "docs" / "integrations" / "search.py"
        environment = {"SITE": "http://testserver", "KEY": self.secret}
        out = io.StringIO()
        with (
            mock.patch.dict("os.environ", environment),
            mock.patch.object(sys, "argv", [str(program), *words]),
            mock.patch("urllib.request.urlopen", self.send),
            redirect_stdout(out),
        ):
            runpy.run_path(str(program), run_name="__main__")
        return out.getvalue()

    def test_the_example_prints_the_passages(self):
        self.assertIn("guide.md\n      " + TEXTS[0], self.run_example("How many days of leave carry over?"))

    def test_the_example_exits_with_the_reason_for_a_refusal(self):
        with self.assertRaisesMessage(SystemExit, "Bad Request: "):
            self.run_example("")
