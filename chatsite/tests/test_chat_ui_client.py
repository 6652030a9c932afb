"""What the published ChatUI sends, recorded in a browser: cookies at one origin, no token, its own names."""

import json

from django.test import Client, TransactionTestCase, override_settings

from history.models import Conversation
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import make_document, make_user

BROWSER = {
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
    "Accept": "*/*",
}
QUESTIONS = ("How many days of leave may employees carry over?", "And how many days of leave next year?")


@override_settings(LOGIN_REQUIRED=False, QUOTING_WORDS_PER_SECOND=10_000)
class ChatUiClient(TransactionTestCase):
    def setUp(self):
        set_audience(make_document("open.md"), Audience(guests=True))

    def call(self, method, path, body=None):
        data = "" if body is None else json.dumps(body)
        answer = self.client.generic(method, path, data, "application/json", headers=BROWSER)
        self.assertEqual(answer.status_code // 100, 2, answer.content)
        return answer

    def talk(self, mode, ask):
        """Its two questions, and what it reads after a reload."""
        self.assertEqual(self.call("GET", f"/chat-history?mode={mode}").json(), [])
        chat = self.call("POST", "/chat-history", {"mode": mode, "title": "New Chat"}).json()["id"]
        shown = []
        for number, question in enumerate(QUESTIONS):
            shown.append({"id": f"q{number}", "content": question, "role": "user", "timestamp": "10:15 AM"})
            for told in ask([{"role": each["role"], "content": each["content"]} for each in shown]):
                answer = {
                    "id": told["Metadata"]["Id"],
                    "content": "\n".join(item["Text"] for item in told["Items"]),
                    "role": "assistant",
                    "timestamp": "10:16 AM",
                }
                shown.append(answer | ({"agentName": told["AuthorName"]} if "AuthorName" in told else {}))
            self.call("PUT", f"/chat-history/{chat}", {"messages": shown})
        [listed] = self.call("GET", f"/chat-history?mode={mode}").json()
        self.assertEqual((listed["id"], listed["messageCount"]), (chat, len(shown)))
        read = self.call("GET", f"/chat-history/{chat}/messages").json()
        members = ("id", "content", "role")
        self.assertEqual(
            [[row[m] for m in members] for row in read], [[row[m] for m in members] for row in shown]
        )
        self.assertEqual(
            [row.get("agentIdentifier") for row in read], [row.get("agentName") for row in shown]
        )
        self.assertTrue(all(row["timestamp"] for row in read))
        self.assertEqual(self.call("DELETE", f"/chat-history/{chat}?mode={mode}").json(), {"success": True})
        return read

    def whole(self, messages):
        return self.call("POST", "/api/minimal/chat", {"messages": messages}).json()

    def team(self, messages):
        return self.call("POST", "/api/minimal/multi-agent-chat/batch", {"messages": messages}).json()

    def test_standard_chat_as_a_guest_and_signed_in(self):
        for user in (None, make_user("ann")):
            self.client = Client(enforce_csrf_checks=True)
            if user:
                self.client.force_login(user)
            with self.subTest(user=user):
                read = self.talk("standard", self.whole)
                self.assertEqual(len(read), 4)
        self.assertEqual(Conversation.objects.filter(deleted_at=None, listed=True).count(), 0)

    def test_multi_agent_chat_as_a_guest_and_signed_in(self):
        for user in (None, make_user("ann")):
            self.client = Client(enforce_csrf_checks=True)
            if user:
                self.client.force_login(user)
            with self.subTest(user=user):
                read = self.talk("multiAgent", self.team)
                agents = [row["agentIdentifier"] for row in read if row["role"] == "assistant"]
                self.assertGreater(len(set(agents)), 1)
