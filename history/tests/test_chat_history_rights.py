"""/chat-history shows only one's own conversations: those of others look like unknown ids."""

from uuid import uuid4

from django.test import Client

from history import recording
from history.models import Conversation, Message
from history.tests.chat_history_case import LABEL, ChatHistoryCase
from ingestion.access.lists import (
    Audience,
    set_audience,
)


class RightsTests(ChatHistoryCase):
    def setUp(self):
        super().setUp()
        self.mine = self.conversation()
        self.answer = self.answered(self.mine)

    def requests(self, identifier):
        message = {"messageId": "x", "role": "user", "content": "Forged"}
        for path in ("", "/messages"):
            yield "PUT", f"/{identifier}{path}", {"messages": [message]}
            yield "GET", f"/{identifier}{path}", None
        yield "PATCH", f"/{identifier}", {"title": "Forged"}
        yield "DELETE", f"/{identifier}", None
        yield "POST", f"/{identifier}/restore", None
        yield "GET", f"/{identifier}/export", None

    def test_another_person_finds_and_changes_nothing(self):
        before = list(Conversation.objects.values()), self.said(self.mine)
        for foreign, unknown, odd in zip(
            self.requests(self.mine.pk), self.requests(uuid4()), self.requests("chat-123"), strict=True
        ):
            answers = [self.call(*request, key=self.other_key) for request in (foreign, unknown, odd)]
            self.assertEqual({answer.status_code for answer in answers}, {404}, foreign)
            self.assertEqual(len({answer.content for answer in answers}), 1, foreign)
            self.assertEqual(answers[0].json()["error"]["code"], "not_found")
        self.assertEqual(self.get(key=self.other_key), [])
        self.assertEqual(self.get("/search?q=leave", key=self.other_key), [])
        self.assertEqual((list(Conversation.objects.values()), self.said(self.mine)), before)

    def test_callers_without_a_valid_key_get_401_in_json(self):
        for method, path, _ in self.requests(self.mine.pk):
            for headers in ({}, {"Authorization": "Bearer chs_wrong"}):
                response = Client().generic(method, f"/chat-history{path}", headers=headers)
                self.assertEqual(response.status_code, 401, path)
                self.assertEqual(list(response.json()["error"]), ["message", "code"])
                self.assertEqual(response.headers["WWW-Authenticate"], "Bearer")

    def test_a_cookie_needs_a_csrf_token_to_change_anything(self):
        client = Client(enforce_csrf_checks=True)
        client.force_login(self.user)
        self.assertEqual(client.get("/chat-history").status_code, 200)
        for method, path in (("POST", ""), ("DELETE", f"/{self.mine.pk}"), ("PUT", f"/{self.mine.pk}")):
            response = client.generic(method, f"/chat-history{path}", b"{}", content_type="application/json")
            self.assertEqual(response.status_code, 403)
            self.assertEqual(list(response.json()["error"]), ["message", "code"])
        self.assertEqual(Conversation.objects.owned_by(self.principal).count(), 1)

    def test_a_source_that_may_no_longer_be_opened_is_not_named(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        sent = self.get(f"/{self.mine.pk}/messages")[1]
        self.assertEqual((sent["content"], sent["sources"]), ("Five days.", []))
        paths = ("", "/search?q=days", f"/{self.mine.pk}/export", f"/{self.mine.pk}/export?format=json")
        for path in paths:
            self.assertNotIn(LABEL.encode(), self.call("GET", path).content, path)
        self.assertEqual(self.get("/search?q=guide"), [], "not found by its name either")

    def test_a_deleted_conversation_is_gone_and_its_owner_can_restore_it(self):
        self.call("DELETE", f"/{self.mine.pk}")
        for path in ("", "/messages", "/export"):
            self.assertEqual(self.call("GET", f"/{self.mine.pk}{path}").status_code, 404)
        self.assertEqual(self.get("/search?q=days"), [])
        stranger = self.call("POST", f"/{self.mine.pk}/restore", key=self.other_key)
        self.assertEqual(stranger.status_code, 404)
        restored = self.call("POST", f"/{self.mine.pk}/restore/")
        self.assertEqual((restored.status_code, restored.json()["id"]), (200, str(self.mine.pk)))
        self.assertEqual(self.call("POST", f"/{self.mine.pk}/restore").status_code, 404)

    def test_conversations_stored_elsewhere_are_not_shown(self):
        hidden = recording.open_conversation(self.principal, listed=False)
        recording.append(hidden, Message.Role.USER, "Stateless days")
        self.assertEqual([row["id"] for row in self.get()], [str(self.mine.pk)])
        self.assertEqual(self.get("/search?q=stateless"), [])
        self.assertEqual(self.call("GET", f"/{hidden.pk}/messages").status_code, 404)

    def test_responses_are_not_cached(self):
        for path in ("", f"/{self.mine.pk}/export", f"/{uuid4()}"):
            self.assertIn("no-store", self.call("GET", path).headers["Cache-Control"])

    def test_head_and_options(self):
        head = self.call("HEAD", f"/{self.mine.pk}/messages")
        self.assertEqual((head.status_code, head.content), (200, b""))
        options = self.call("OPTIONS", f"/{self.mine.pk}")
        self.assertEqual((options.status_code, options.content), (204, b""))
        self.assertEqual(
            set(options.headers["Allow"].split(", ")), {"GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
        )
        refused = self.call("POST", f"/{self.mine.pk}")
        self.assertEqual((refused.status_code, refused.json()["error"]["code"]), (405, "method_not_allowed"))
