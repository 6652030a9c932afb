"""Every example of the document's section "History API", as an exchange: same members, nesting and types."""

import re
from datetime import UTC, datetime
from uuid import UUID

from history import recording
from history.models import Conversation, Message
from history.tests.chat_history_case import LABEL, ChatHistoryCase

MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LISTED = {
    "id": "chat-123",
    "title": "API Discussion",
    "lastMessage": "Here's the API endpoint...",
    "lastUpdated": "2023-04-05T14:48:00.000Z",
    "messageCount": 12,
}
SENT = [
    {
        "messageId": "msg-125",
        "conversationId": "chat-123",
        "status": "completed",
        "role": "user",
        "content": "Can you explain how to use the API?",
        "contentType": "text",
        "sources": [],
        "error": None,
        "createdAt": "2023-04-07T11:30:00.000Z",
    },
    {
        "messageId": "msg-126",
        "conversationId": "chat-123",
        "status": "completed",
        "role": "assistant",
        "content": "Sure, the API has two main endpoints...",
        "contentType": "text",
        "agentName": "Technical",
        "sources": [],
        "error": None,
        "createdAt": "2023-04-07T11:31:00.000Z",
    },
]


class DocumentTests(ChatHistoryCase):
    def test_get_chat_histories(self):
        standard, team = self.conversation(), self.conversation("Project Planning", mode="multiAgent")
        Conversation.objects.filter(pk=standard.pk).update(
            updated_at=datetime(2023, 4, 5, 14, 48, tzinfo=UTC)
        )
        recording.append(team, "user", "Let's start with the architecture...")
        listed = self.get("?mode=standard")
        self.assertEqual(
            listed,
            [LISTED | {"id": str(standard.pk), "lastMessage": "", "messageCount": 0}],
        )
        self.assertEqual([list(item) for item in listed], [list(LISTED)])
        [planned] = self.get("?mode=multiAgent")
        self.assertEqual(planned["lastMessage"], "Let's start with the architecture...")
        self.assertEqual((planned["title"], planned["messageCount"]), ("Project Planning", 1))
        self.assertEqual([row["id"] for row in self.get()], [str(team.pk), str(standard.pk)])

    def test_create_new_chat(self):
        response = self.call("POST", "", {"mode": "standard", "title": "New Chat"})
        body = response.json()
        self.assertEqual(
            (response.status_code, list(body)), (201, ["id", "title", "lastUpdated", "messageCount"])
        )
        self.assertEqual((body["title"], body["messageCount"]), ("New Chat", 0))
        self.assertRegex(body["lastUpdated"], MILLISECONDS)
        self.assertEqual(response.headers["Location"], f"/chat-history/{UUID(body['id'])}")
        self.assertEqual(Conversation.objects.get().owner, self.user)

    def test_update_chat_and_get_chat_messages(self):
        conversation = self.conversation()
        for _ in range(12):
            recording.append(conversation, "user", "Earlier")
        Message.objects.update(created_at=datetime(2023, 4, 7, 10, tzinfo=UTC))
        answer = self.call("PUT", f"/{conversation.pk}/messages", {"messages": SENT}).json()
        expected = {
            "id": str(conversation.pk),
            "title": "API Discussion",
            "lastMessage": "Sure, the API has two main endpoints...",
            "lastUpdated": "2023-04-07T11:31:00.000Z",
            "messageCount": 14,
        }
        self.assertEqual((answer, list(answer)), (expected, list(expected)))
        kept = self.get(f"/{conversation.pk}/messages")[12:]
        beyond = [{"timestamp": "11:30 AM"}, {"timestamp": "11:31 AM", "agentIdentifier": "Technical"}]
        self.assertEqual(
            kept,
            [
                item | more | {"id": item["messageId"], "conversationId": str(conversation.pk)}
                for item, more in zip(SENT, beyond, strict=True)
            ],
        )

    def test_delete_chat(self):
        for query in ("", "?mode=standard"):
            conversation = self.conversation()
            response = self.call("DELETE", f"/{conversation.pk}{query}")
            self.assertEqual((response.status_code, response.json()), (200, {"success": True}))
            self.assertEqual(self.get(), [])

    def test_an_answer_of_the_site_has_its_sources(self):
        conversation = self.conversation()
        answer = self.answered(conversation)
        question, sent = self.get(f"/{conversation.pk}/messages/")
        self.assertNotIn("agentName", sent)
        self.assertEqual((question["contentType"], question["sources"]), ("text", []))
        self.assertEqual((sent["messageId"], sent["id"]), (str(answer.pk),) * 2)
        link = f"[{LABEL}]({sent['sources'][0]['url']})"
        self.assertEqual((sent["content"], sent["contentType"]), (f"Five days {link}.", "markdown"))
        [source] = sent["sources"]
        self.assertEqual(source["id"], f"{self.document.public_id}-7")
        address = f"/content/{self.document.public_id}/guide.md#page=3"
        self.assertEqual((source["title"], source["url"]), ("Leave guide", address))
        self.assertIn("five days of leave", source["snippet"])

    def test_states_are_those_of_the_document(self):
        conversation = self.conversation()
        for state in Message.State.values:
            recording.append(conversation, "assistant", "Text", state=state)
        sent = self.get(f"/{conversation.pk}/messages")
        failed = ["interrupted", "failed", "blocked"]
        for state, message in zip(Message.State.values, sent, strict=True):
            status = (
                "processing" if state in Message.UNFINISHED else "failed" if state in failed else "completed"
            )
            self.assertEqual(message["status"], status, state)
            self.assertEqual(message["error"] is not None, state in failed)
            if message["error"]:
                self.assertEqual(list(message["error"]), ["message", "code"])
                self.assertTrue(message["error"]["message"])
