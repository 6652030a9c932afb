"""Invalid input gets a 4xx that names the member, and nothing is stored."""

import pytest

from history import recording
from history.models import Conversation, Message
from history.tests.chat_history_case import ChatHistoryCase

GOOD = {
    "messageId": "b",
    "id": "b",
    "conversationId": "c",
    "status": "completed",
    "role": "assistant",
    "content": "Text",
    "contentType": "text",
    "agentName": "A",
    "agentIdentifier": "A",
    "sources": [],
    "error": None,
    "createdAt": "2023-04-07T11:30:00.000Z",
    "timestamp": "10:15 AM",
}
ODD = (True, 0, 1.5, 10**40, [], {}, [[]], {"a": None}, "\x00", "x\x00y")
REQUIRED = {"role", "content"}
TEXTS = {"messageId", "id", "conversationId", "agentName", "agentIdentifier", "timestamp"}


@pytest.mark.slow
class BadInputTests(ChatHistoryCase):
    def setUp(self):
        super().setUp()
        self.mine = self.conversation()
        recording.append(self.mine, "user", "Kept")
        self.before = self.everything()

    def everything(self):
        return list(Conversation.objects.values()), list(Message.objects.values())

    def refused(self, method, path, body, *words, status=400, **options):
        response = self.call(method, path, body, **options)
        self.assertEqual(
            response.status_code, status, (body if len(str(body)) < 300 else "…", response.content)
        )
        error = response.json()["error"]
        self.assertEqual(list(error), ["message", "code"])
        for word in words:
            self.assertIn(word, error["message"])
        self.assertEqual(self.everything(), self.before)

    def test_a_wrong_type_in_any_member_of_a_message_is_refused(self):
        for member in GOOD:
            for value in ODD:
                if (member, value) in (("sources", []),):
                    continue
                if member == "error" and isinstance(value, dict):
                    continue
                messages = [{"id": "a", "role": "user", "content": "First"}, GOOD | {member: value}]
                self.refused("PUT", f"/{self.mine.pk}", {"messages": messages}, f"messages[1].{member}")

    def test_an_unknown_word_is_refused(self):
        for member, value in {
            "role": "developer",
            "status": "done",
            "contentType": "html",
            "createdAt": "10:15 AM",
        }.items():
            self.refused(
                "PUT", f"/{self.mine.pk}", {"messages": [GOOD | {member: value}]}, f"messages[0].{member}"
            )
        for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2023-13-01", "", "1" * 41):
            self.refused("PUT", f"/{self.mine.pk}", {"messages": [GOOD | {"createdAt": moment}]}, "createdAt")
        for error in ({"message": 1}, {"code": []}, {"message": "\x00"}):
            self.refused(
                "PUT", f"/{self.mine.pk}", {"messages": [GOOD | {"error": error}]}, "messages[0].error."
            )
        for source in ("x", None):
            body = {"messages": [GOOD | {"sources": [source]}]}
            self.refused("PUT", f"/{self.mine.pk}", body, "sources[0]")
        body = {"messages": [GOOD | {"sources": [{}, {}, *[1] * 100_000]}]}
        self.refused("PUT", f"/{self.mine.pk}", body, "sources[2]")

    def test_a_missing_member_is_refused(self):
        for member in REQUIRED:
            for message in (
                {**GOOD, member: None},
                {key: value for key, value in GOOD.items() if key != member},
            ):
                self.refused("PUT", f"/{self.mine.pk}", {"messages": [message]}, f"messages[0].{member}")
        nameless = {key: value for key, value in GOOD.items() if key not in ("id", "messageId")}
        for names in ({}, {"id": ""}, {"id": None, "messageId": None}):
            self.refused("PUT", f"/{self.mine.pk}", {"messages": [nameless | names]}, "messages[0].messageId")

    def test_duplicate_message_ids_are_refused(self):
        self.refused("PUT", f"/{self.mine.pk}", {"messages": [GOOD, GOOD]}, "messages[1].messageId")

    def test_bodies_that_are_not_a_conversation_are_refused(self):
        for path in (f"/{self.mine.pk}", f"/{self.mine.pk}/messages"):
            for body in ([], "x", 1, True, None, {}, {"messages": None}, {"messages": {}}, {"messages": "x"}):
                self.refused("PUT", path, body)
            for item in ODD:
                self.refused("PUT", path, {"messages": [item]}, "messages[0]")

    def test_invalid_titles_and_modes_are_refused(self):
        for value in (*ODD, "x" * 201):
            self.refused("POST", "", {"title": value}, "title")
            self.refused("PATCH", f"/{self.mine.pk}", {"title": value}, "title")
        for value in ("", "  ", None):
            self.refused("PATCH", f"/{self.mine.pk}", {"title": value}, "title")
        for value in (*ODD, "", "both"):
            self.refused("POST", "", {"mode": value}, "mode")
        for body in ([], "x", 1):
            self.refused("POST", "", body)
            self.refused("PATCH", f"/{self.mine.pk}", body)

    def test_invalid_json_is_refused(self):
        for body in (
            b"{",
            b"\xff",
            b"[" * 100_000,
            b'{"title": NaN}',
            b'{"title": "\\ud800"}',
            b'{"a": 1} x',
            b"\x00",
        ):
            for method, path in (("POST", ""), ("PATCH", f"/{self.mine.pk}"), ("PUT", f"/{self.mine.pk}")):
                self.refused(method, path, body)

    def test_other_media_types_are_refused(self):
        for kind in (
            "text/plain",
            "multipart/form-data; boundary=x",
            "application/x-www-form-urlencoded",
            "x",
        ):
            self.refused("POST", "", b"title=x", status=415, content_type=kind)

    def test_unknown_members_are_ignored(self):
        response = self.call(
            "PUT", f"/{self.mine.pk}", {"messages": [GOOD | {"x": [1]}], "mode": 7, "title": []}
        )
        self.assertEqual(response.status_code, 200)

    def test_an_unknown_export_format_is_refused(self):
        for kind in ("pdf", "", "JSON", "%00"):
            self.refused("GET", f"/{self.mine.pk}/export?format={kind}", None, "format")
