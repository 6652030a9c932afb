"""The base of tests of /chat-history: two people, a document, and a client with a key."""

import json

from django.test import Client, TestCase
from django.utils import timezone

from chatsite.accounts.models import ApiKey
from history import recording
from history.models import Message, Source
from ingestion.tests.factories import command_principal, make_document, make_user

LABEL = "guide.md#leave"
WORDS = "Employees may carry over five days of leave until 31 March."


class ChatHistoryCase(TestCase):
    def setUp(self):
        self.user, self.other = make_user("asker"), make_user("other")
        self.principal = command_principal(self.user)
        self.key = ApiKey.objects.issue(self.user, "test")[1]
        self.other_key = ApiKey.objects.issue(self.other, "test")[1]
        ApiKey.objects.update(last_used_at=timezone.now())  # as after a key's first request

    def call(self, method, path, body=None, *, key=None, **headers):
        """The response to a request with JSON; `body` may be bytes."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return Client(raise_request_exception=True).generic(
            method,
            f"/chat-history{path}",
            data,
            content_type=headers.pop("content_type", "application/json"),
            headers={"Authorization": f"Bearer {key or self.key}"} | headers,
        )

    def get(self, path="", **options):
        response = self.call("GET", path, **options)
        self.assertEqual(response.status_code, 200, response.content)
        return response.json()

    def put(self, conversation, *messages, path=""):
        response = self.call("PUT", f"/{conversation.pk}{path}", {"messages": list(messages)})
        self.assertEqual(response.status_code, 200, response.content)
        return response.json()

    def conversation(self, title="API Discussion", owner=None, mode="standard", **values):
        principal = command_principal(owner) if owner else self.principal
        conversation = recording.open_conversation(principal, mode, **values)
        if title:
            recording.rename(principal, conversation.pk, title)
        return conversation

    def answered(
        self, conversation, question="May I carry leave over?", text=f"Five days [{LABEL}].", **values
    ):
        """Store a question and an answer of the site with one source."""
        recording.append(conversation, Message.Role.USER, question)
        answer = recording.append(
            conversation, Message.Role.ASSISTANT, text, **({"citations": [LABEL]} | values)
        )
        self.document = make_document("guide.md", title="Leave guide", everyone=True)
        Source.objects.create(
            message=answer,
            document=self.document,
            document_version=1,
            passage_id=7,
            rank=1,
            label=LABEL,
            title="Leave guide",
            page=3,
            content=WORDS,
            score=0.9,
            found_by="both",
        )
        return answer

    def said(self, conversation):
        """(role, text) of each stored message, in order."""
        return list(conversation.messages.order_by("position").values_list("role", "content"))
