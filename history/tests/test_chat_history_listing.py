"""Lists: newest first, in pages, with the same few queries for any number of conversations."""

import re
from datetime import timedelta
from itertools import chain

import pytest
from django.core import signing
from django.utils import timezone

from history import conversation_lists, recording
from history.models import Conversation, Message
from history.recording import AnswerOutcome
from history.tests.chat_history_case import LABEL, ChatHistoryCase

NEXT = re.compile(r'<(/chat-history[^>]*)>; rel="next"')


@pytest.mark.slow
class ListingTests(ChatHistoryCase):
    def fill(self, number, messages=2):
        """Two conversations share each moment, so that time alone does not order them."""
        now = timezone.now()
        rows = Conversation.objects.bulk_create(
            Conversation(
                owner=self.user, title=f"Row {index}", updated_at=now - timedelta(minutes=index // 2)
            )
            for index in range(number)
        )
        Message.objects.bulk_create(
            Message(conversation=row, position=place, role="user", content=f"Message {place}")
            for row in rows
            for place in range(messages)
        )
        return rows

    def pages(self, path):
        """The ids on each page, following the links."""
        pages = []
        while path is not None:
            response = self.call("GET", path)
            self.assertEqual(response.status_code, 200, response.content)
            pages.append([row["id"] for row in response.json()])
            link = NEXT.fullmatch(response.headers.get("Link", ""))
            path = link[1].removeprefix("/chat-history") if link else None
        return pages

    def test_pages_have_every_conversation_once_newest_first(self):
        self.fill(11)
        expected = [str(row.pk) for row in Conversation.objects.order_by("-updated_at", "-id")]
        for limit in (1, 3, 10, 11):
            pages = self.pages(f"?limit={limit}&mode=standard")
            self.assertEqual(list(chain(*pages)), expected)
            self.assertEqual([len(page) for page in pages[:-1]], [limit] * (len(pages) - 1))

    def test_pages_stay_correct_while_a_new_conversation_arrives(self):
        self.fill(4)
        first = self.call("GET", "?limit=2")
        self.conversation("New")
        rest = self.pages(NEXT.fullmatch(first.headers["Link"])[1].removeprefix("/chat-history"))
        self.assertEqual(len(list(chain(*rest))), 2)
        self.assertFalse({row["id"] for row in first.json()} & set(chain(*rest)))

    def test_the_last_page_has_no_link(self):
        self.fill(2)
        self.assertNotIn("Link", self.call("GET", "?limit=2").headers)

    def test_the_number_of_queries_is_constant(self):
        for number, messages in ((10, 2), (90, 30)):
            Conversation.objects.all().delete()
            self.fill(number, messages)
            with self.assertNumQueries(4):  # the key, the page, its figures, its last messages
                rows = self.get()
            self.assertEqual((len(rows), rows[0]["messageCount"]), (number, messages))
            self.assertEqual(rows[0]["lastMessage"], f"Message {messages - 1}")

    def test_messages_need_the_same_queries_for_any_number(self):
        conversation = self.conversation()
        self.answered(conversation)
        for _ in range(2):
            # The key, the conversation, the cited documents, its messages, their sources.
            with self.assertNumQueries(5):
                self.get(f"/{conversation.pk}/messages")
            for number in range(20):
                recording.append(conversation, "user", f"More {number}")

    def test_the_last_message_is_one_line_that_names_no_source(self):
        conversation = self.conversation()
        self.answered(conversation, text=f"Five\n\ndays [{LABEL}].")
        self.assertEqual(self.get()[0]["lastMessage"], "Five days.")
        recording.append(conversation, "user", "word " * 100)
        self.assertLessEqual(len(self.get()[0]["lastMessage"]), 200)

    def test_while_an_answer_is_written_the_question_is_the_last_message(self):
        conversation = self.conversation()
        recording.append(conversation, "user", "When?")
        answer = recording.append(conversation, "assistant", state="queued")
        self.assertEqual((self.get()[0]["lastMessage"], self.get()[0]["messageCount"]), ("When?", 2))
        recording.close_answer(
            answer.conversation.owner_id, answer.pk, AnswerOutcome(Message.State.COMPLETE, "Then.")
        )
        self.assertEqual(self.get()[0]["lastMessage"], "Then.")

    def test_an_empty_cursor_is_the_first_page(self):
        self.fill(2)
        self.assertEqual(self.call("GET", "?limit=1&cursor=").json(), self.call("GET", "?limit=1").json())

    def test_a_foreign_cursor_is_refused(self):
        self.fill(3)
        good = NEXT.fullmatch(self.call("GET", "?limit=1").headers["Link"])[1].partition("cursor=")[2]
        forged = signing.dumps(["2026-01-01T00:00:00+00:00", "0"], salt="another")
        for cursor in (
            "x",
            "é",
            "%00",
            f"{good}x",
            f"x{good}",
            good[:-1],
            good.replace("%3A", ""),
            forged,
            "a:b:c",
        ):
            for path in ("", "/search"):
                response = self.call("GET", f"{path}?q=row&cursor={cursor}")
                self.assertEqual(response.status_code, 400, cursor)
                self.assertIn("cursor", response.json()["error"]["message"])

    def test_an_invalid_limit_or_mode_is_refused_by_name(self):
        for query in ("limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "limit=1e2", "limit=٣",
                      f"limit={10**4000}", "mode=", "mode=both", "mode=STANDARD", "mode=%00"):  # fmt: skip
            response = self.call("GET", f"?{query}")
            self.assertEqual(response.status_code, 400, query)
            self.assertIn(query.partition("=")[0], response.json()["error"]["message"])
        conversation = self.conversation()
        self.assertEqual(self.call("DELETE", f"/{conversation.pk}?mode=both").status_code, 400)
        self.assertEqual(len(self.get()), 1)

    def test_a_cursor_returns_to_its_position(self):
        place = conversation_lists.Place(timezone.now(), self.conversation().pk)
        self.assertEqual(conversation_lists.place_of(conversation_lists.cursor(place)), place)
