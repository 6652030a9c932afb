"""PUT stores a program's copy of a conversation, but never changes the site's own messages."""

import threading
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from django.db import connection, connections
from django.test import Client, TransactionTestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatsite.accounts.models import ApiKey
from history import merging, recording
from history.models import Conversation, Message, Source
from history.recording import AnswerOutcome
from history.serializers.request_serializers import Incoming
from history.tests.chat_history_case import LABEL, ChatHistoryCase
from ingestion.tests.factories import command_principal, make_user


def message(key, content="Hello", role="user", **values):
    """A body in the form of the real client."""
    return {"id": key, "role": role, "content": content, "timestamp": "10:15 AM"} | values


class SavingTests(ChatHistoryCase):
    def rows(self):
        return list(Message.objects.order_by("pk").values()), list(Conversation.objects.values())

    def test_messages_of_the_real_client_are_accepted_at_both_urls(self):
        for path in ("", "/", "/messages", "/messages/"):
            conversation = self.conversation()
            answer = message("a", "Hi", "assistant", agentIdentifier="Research")
            summary = self.put(conversation, message("1712"), answer, path=path)
            self.assertEqual((summary["messageCount"], summary["lastMessage"]), (2, "Hi"))
            question, answer = self.get(f"/{conversation.pk}/messages")
            self.assertEqual(
                (question["id"], question["messageId"], question["status"]), ("1712", "1712", "completed")
            )
            self.assertEqual((answer["agentName"], answer["contentType"]), ("Research", "markdown"))
            self.assertLess(abs(datetime.fromisoformat(answer["createdAt"]) - timezone.now()).seconds, 60)

    def test_saving_again_changes_nothing(self):
        conversation = self.conversation(title="")
        self.answered(conversation)
        sent = [*self.get(f"/{conversation.pk}/messages"), message("x"), message("y", "Hi", "assistant")]
        first = self.put(conversation, *sent)
        before = self.rows()
        self.assertEqual(self.put(conversation, *sent, path="/messages"), first)
        self.assertEqual(self.rows(), before)

    def test_a_conversation_that_was_read_can_be_saved_again(self):
        conversation = self.conversation()
        self.answered(conversation)
        self.put(
            conversation,
            message("x"),
            message("y", "Hi", "assistant", status="failed", error={"message": "No"}),
        )
        read = self.get(f"/{conversation.pk}/messages")
        before = self.rows()
        self.put(conversation, *read)
        self.assertEqual(self.get(f"/{conversation.pk}/messages"), read)
        self.assertEqual(self.rows(), before)

    def test_known_messages_are_replaced_and_others_appended_in_order(self):
        conversation = self.conversation()
        self.put(conversation, message("a", "One"), message("b", "Two", "assistant", status="processing"))
        self.put(
            conversation,
            message("d", "Four"),
            message("b", "Two and more", "assistant", status="completed"),
            message("c", "Three"),
        )
        self.assertEqual(
            self.said(conversation),
            [("user", "One"), ("assistant", "Two and more"), ("user", "Four"), ("user", "Three")],
        )
        self.assertEqual([hit["matches"][0]["messageId"] for hit in self.get("/search?q=more")], ["b"])

    def test_omitted_members_of_a_known_message_stay(self):
        conversation = self.conversation()
        self.put(
            conversation,
            message("a", agentName="Code", contentType="markdown", createdAt="2023-04-07T11:30:00.5+02:00"),
        )
        self.put(conversation, message("a", "Changed"))
        [read] = self.get(f"/{conversation.pk}/messages")
        self.assertEqual(
            (read["content"], read["agentName"], read["contentType"], read["createdAt"]),
            ("Changed", "Code", "markdown", "2023-04-07T09:30:00.500Z"),
        )

    def test_questions_and_answers_of_the_site_stay_unchanged(self):
        conversation = self.conversation()
        answer = self.answered(conversation)
        question = conversation.messages.get(position=0)
        before = self.rows()
        self.put(
            conversation,
            message(str(question.pk), "Something else"),
            message(str(answer.pk).upper(), "Forged", "user"),
            message(
                str(answer.pk), "Forged", "assistant", agentName="Boss", createdAt="2001-01-01T00:00:00Z"
            ),
        )
        self.assertEqual(self.rows(), before)

    def test_sources_and_errors_of_a_program_are_returned_unchanged_and_marked_as_imported(self):
        conversation = self.conversation()
        forged = {
            "id": "1-1",
            "title": "Law",
            "url": "https://elsewhere.example",
            "more": [1, None, {"a": 1.5}],
        }
        error = {"message": "Our own words", "code": "OURS"}
        said = message("a", f"Says [{LABEL}]", "assistant", sources=[forged], error=error, status="failed")
        for _ in range(2):
            self.put(conversation, said)
            row = Message.objects.get()
            self.assertEqual((row.imported, row.citations, row.sources.count()), (True, [], 0))
            [read] = self.get(f"/{conversation.pk}/messages")
            self.assertEqual((read["sources"], read["error"], read["status"]), ([forged], error, "failed"))
            self.assertEqual(read["fromClient"], ["sources", "error"])
        self.put(conversation, said | {"sources": [], "error": None, "status": "completed"})
        [read] = self.get(f"/{conversation.pk}/messages")
        self.assertEqual((read["sources"], read["error"], "fromClient" in read), ([], None, False))

    def test_an_imported_copy_of_a_source_follows_the_rights_of_its_document(self):
        conversation = self.conversation()
        self.answered(self.conversation())
        own = {
            "id": f"{self.document.public_id}-7", "title": "Leave guide",
            "url": "/content/guide.md#page=3", "snippet": "Five days",
        }  # fmt: skip
        other = {
            "id": f"{self.document.public_id}-7",
            "title": "Elsewhere",
            "url": "https://elsewhere.example",
        }
        self.put(conversation, message("a", "Changed", "assistant", sources=[own, other]))
        path = f"/{conversation.pk}/messages"
        self.assertEqual(self.get(path)[0]["sources"], [own, other])
        self.document.delete()
        self.assertEqual(self.get(path)[0]["sources"], [other])

    def test_sources_and_errors_that_cannot_be_stored_are_refused(self):
        conversation = self.conversation()
        deep = {}
        for _ in range(20):
            deep = {"a": deep}
        for wrong in (
            {"sources": [{"title": "a\x00b"}]},
            {"sources": [{"a\x00b": "title"}]},
            {"sources": [deep]},
            {"sources": [{"title": "x" * 100_001}]},
            {"sources": [{}] * 60_000},
            {"error": {"message": "No", "details": [deep]}},
        ):
            body = {"messages": [message("a", "x", "assistant", **wrong)]}
            response = self.call("PUT", f"/{conversation.pk}/messages", body)
            self.assertEqual(response.status_code, 400)
            self.assertIn(f"messages[0].{next(iter(wrong))}", response.json()["error"]["message"])
        self.assertFalse(Message.objects.exists())

    def test_the_chat_ui_finds_agents_and_times_again(self):
        """The front end reads `agentIdentifier` and `timestamp`, and shows the time unchanged."""
        conversation = self.conversation(mode="multiAgent")
        self.put(
            conversation,
            {"id": "q", "role": "user", "content": "Who?", "timestamp": "10:15 AM"},
            {
                "id": "a",
                "role": "assistant",
                "content": "I.",
                "agentName": "Research",
                "timestamp": "10:16 AM",
            },
            {"id": "b", "role": "assistant", "content": "I too.", "agentIdentifier": "Code"},
        )
        read = self.get(f"/{conversation.pk}/messages")
        self.assertEqual([each["timestamp"] for each in read[:2]], ["10:15 AM", "10:16 AM"])
        self.assertRegex(read[2]["timestamp"], r"^[01]\d:[0-5]\d [AP]M$")
        self.assertEqual([each.get("agentIdentifier") for each in read], [None, "Research", "Code"])
        self.assertEqual([each.get("agentName") for each in read], [None, "Research", "Code"])
        answer = self.answered(conversation, agent_name="Review")
        self.put(conversation, *({**each} for each in self.get(f"/{conversation.pk}/messages")))
        self.assertEqual(self.get(f"/{conversation.pk}/messages")[-1]["agentIdentifier"], answer.agent_name)

    def test_an_id_of_another_conversations_message_is_only_a_name(self):
        theirs = self.conversation(owner=self.other)
        elsewhere = self.conversation()
        ids = [str(recording.append(row, "user", "Untouched").pk) for row in (theirs, elsewhere)]
        self.put(elsewhere, message("own", "Untouched too"))
        conversation = self.conversation()
        self.put(conversation, *(message(key, "Mine") for key in [*ids, "own"]))
        self.assertEqual(self.said(conversation), [("user", "Mine")] * 3)
        self.assertEqual(self.said(theirs), [("user", "Untouched")])
        self.assertEqual(self.said(elsewhere), [("user", "Untouched"), ("user", "Untouched too")])
        self.assertEqual(
            [row["messageId"] for row in self.get(f"/{conversation.pk}/messages")], [*ids, "own"]
        )

    def test_a_question_asked_with_the_conversation_is_not_stored_twice(self):
        conversation = self.conversation()
        answer = self.answered(conversation, question="First?")
        self.put(conversation, message("q1", "First?"), message(str(answer.pk), answer.content, "assistant"))
        recording.append(conversation, "user", "Second?")
        recording.append(conversation, "assistant", state="queued")
        self.put(conversation, message("q1", "First?"), message("q2", "Second?"))
        self.assertEqual(Message.objects.count(), 4)
        self.assertEqual([row["id"] for row in self.get(f"/{conversation.pk}/messages")][::2], ["q1", "q2"])

    def test_an_answer_given_without_storing_the_conversation_brings_its_sources(self):
        hidden = recording.open_conversation(self.principal, listed=False)
        answer = self.answered(hidden)
        conversation = self.conversation()
        changed = message(str(answer.pk), answer.content + " And more.", "assistant")
        self.put(conversation, changed)
        self.assertEqual(self.get(f"/{conversation.pk}/messages")[0]["sources"], [])
        other = self.conversation()
        same = message(str(answer.pk), answer.content, "assistant")
        self.put(other, message("q", "May I?"), same)
        [_, kept] = self.get(f"/{other.pk}/messages")
        self.assertEqual((kept["id"], kept["sources"][0]["title"]), (str(answer.pk), "Leave guide"))
        self.assertEqual(len(self.get("/search?q=days")), 2)
        self.assertEqual([row["id"] for row in self.get("/search?q=guide")], [str(conversation.pk)])
        before = self.rows()
        self.put(other, message("q", "May I?"), same | {"content": "Forged"})
        self.assertEqual(self.rows(), before)
        self.assertEqual(Source.objects.filter(message=answer).count(), 1)

    def test_an_answer_saved_while_it_was_written_becomes_the_answer_when_it_is_complete(self):
        hidden = recording.open_conversation(self.principal, listed=False)
        answer = self.answered(hidden)
        conversation = self.conversation()
        whole = message(str(answer.pk), answer.content, "assistant")
        self.put(conversation, whole | {"content": answer.content[:5], "status": "processing"})
        self.put(conversation, whole)
        [kept] = self.get(f"/{conversation.pk}/messages")
        self.assertEqual(kept["sources"][0]["title"], "Leave guide")
        stored = Message.objects.get(conversation=conversation)
        self.assertEqual((stored.imported, stored.state), (False, answer.state))
        self.put(conversation, whole)
        self.assertEqual(stored.sources.count(), 1)

    def test_an_answer_to_another_person_brings_no_sources(self):
        hidden = recording.open_conversation(command_principal(self.other), listed=False)
        answer = self.answered(hidden)
        conversation = self.conversation()
        self.put(conversation, message(str(answer.pk), answer.content, "assistant"))
        self.assertEqual(self.get(f"/{conversation.pk}/messages")[0]["sources"], [])

    def test_an_untitled_conversation_is_called_by_its_first_question(self):
        named = self.call("POST", "", {"title": "New Chat"}).json()["id"]
        conversation = Conversation.objects.get(pk=named)
        summary = self.put(conversation, message("a", "How do I\nuse the API? " * 9))
        self.assertTrue(summary["title"].startswith("How do I use the API? How"), summary)
        self.assertLessEqual(len(summary["title"]), 60)
        renamed = self.call("PATCH", f"/{named}", {"title": "Mine"}).json()
        self.assertEqual(renamed["title"], "Mine")
        self.assertEqual(self.put(conversation, message("b"))["title"], "Mine")

    def test_the_time_is_that_of_the_newest_message_and_never_in_the_future(self):
        conversation = self.conversation()
        old = self.put(conversation, message("a", createdAt="2023-04-07T11:31:00.000Z"))
        self.assertEqual(old["lastUpdated"], "2023-04-07T11:31:00.000Z")
        ahead = self.put(conversation, message("b", createdAt="2999-01-01T00:00:00Z"))
        self.assertLessEqual(datetime.fromisoformat(ahead["lastUpdated"]), datetime.now(UTC))

    def test_an_answer_that_is_being_written_is_not_disturbed(self):
        conversation = self.conversation()
        answer = recording.append(conversation, "assistant", state="queued")
        self.put(conversation, message(str(answer.pk), "Guessed", "assistant"), message("x"))
        self.assertTrue(
            recording.close_answer(
                answer.conversation.owner_id, answer.pk, AnswerOutcome(Message.State.COMPLETE, "Real")
            )
        )
        self.assertEqual(self.said(conversation), [("assistant", "Real"), ("user", "Hello")])

    def test_an_oversized_request_is_refused_as_a_whole(self):
        conversation = self.conversation()
        self.put(conversation, message("kept"))
        before = self.rows()
        bodies = [
            [message(str(number), "") for number in range(1_001)],
            [message("a", "x" * 32_001)],
            [message("a", "x" * 200_001, "assistant")],
            [message("a" * 201)],
            [message("a"), message("b", agentName="x" * 101)],
        ]
        for messages in bodies:
            response = self.call("PUT", f"/{conversation.pk}", {"messages": messages})
            self.assertEqual(response.status_code, 400, response.content)
            self.assertEqual(self.rows(), before)

    def test_a_conversation_keeps_a_bounded_number_of_messages(self):
        conversation = self.conversation()
        self.put(conversation, message("1"), message("2"))
        with patch.object(merging, "MAX_MESSAGES", 2):
            self.put(conversation, message("2"))
            response = self.call("PUT", f"/{conversation.pk}", {"messages": [message("one more")]})
        self.assertEqual((response.status_code, response.json()["error"]["code"]), (400, "too_many_messages"))

    def test_a_conversation_keeps_a_bounded_amount_of_text(self):
        conversation = self.conversation()
        self.put(conversation, message("1", "é" * 400), message("2", sources=[{"title": "x" * 150}]))
        larger = [
            [message("1", "x" * 1_000)],
            [message("3", "x" * 500)],
            [message("3", sources=[{"title": "x" * 500}])],
            [message("2", error={"message": "x" * 500})],
            [message(str(number), "x" * 60) for number in range(3, 10)],
        ]
        with patch.object(merging, "MAX_BYTES", 1_200):
            for messages in larger:
                before = self.rows()
                response = self.call("PUT", f"/{conversation.pk}", {"messages": messages})
                error = response.json()["error"]
                self.assertEqual((response.status_code, error["code"]), (413, "too_large"), messages)
                self.assertEqual(self.rows(), before)
            self.put(conversation, message("1", "é" * 400), message("2", sources=[{"title": "x" * 150}]))
            self.put(conversation, message("1", "Shorter"), message("3", "x" * 700))

    def test_an_oversized_conversation_accepts_changes_that_do_not_enlarge_it(self):
        conversation = self.conversation(title="")
        answer = self.answered(conversation)
        question = conversation.messages.get(position=0)
        self.put(conversation, *(message(str(number), "x" * 1_000) for number in range(3)))
        with patch.object(merging, "MAX_BYTES", 2_000):
            asked = {"id": "named now", "role": "user", "content": question.content}
            told = {"id": str(answer.pk), "role": "assistant", "content": "Copied"}
            self.put(conversation, asked, told, message("0", "x" * 1_000))
            self.put(conversation, message("0", "Short"))
            larger = {"messages": [message("one more", "x" * 2_000)]}
            self.assertEqual(self.call("PUT", f"/{conversation.pk}", larger).status_code, 413)
            self.put(conversation, message("1", "Short"), message("one more", "Small"))
        question.refresh_from_db()
        answer.refresh_from_db()
        self.assertEqual(question.client_id, "named now")
        self.assertNotEqual(answer.content, "Copied")

    def test_texts_of_a_large_conversation_are_not_read_for_others(self):
        conversation = self.conversation()
        self.put(conversation, *(message(str(number), f"{number}" * 1_000) for number in range(3)))
        loaded = []

        def counted(row, item):
            loaded.append(item.key)
            return replace(row, item)

        replace = merging._replace
        with (
            patch.object(merging, "MAX_BYTES", 2_000),
            patch.object(merging, "_replace", counted),
            CaptureQueriesContext(connection) as captured,
        ):
            merging.merge(self.principal, conversation.pk, [Incoming("0", "user", "Short")])
        self.assertEqual(loaded, ["0"])
        read = [query["sql"] for query in captured if '"history_message"."content"' in query["sql"]]
        self.assertEqual(len([sql for sql in read if sql.startswith('SELECT "history_message"')]), 1, read)
        with patch.object(merging, "MAX_BYTES", 1_500), self.assertRaises(merging.TooLarge):
            both = [Incoming(key, "user", "Short") for key in ("1", "2")]
            merging.merge(self.principal, conversation.pk, both)

    @pytest.mark.slow
    def test_the_number_of_queries_does_not_grow_with_the_messages(self):
        counts = []
        for number in (3, 100):
            conversation = self.conversation()
            self.put(conversation, *(message(f"{index}", f"Text {index}") for index in range(number)))
            changed = [Incoming(f"{index}", "user", f"Other {index}") for index in range(2 * number)]
            with self.assertNumQueries(9) as captured:
                merging.merge(self.principal, conversation.pk, changed)
            counts.append(len(captured))
        self.assertEqual(counts[0], counts[1])


class TogetherTests(TransactionTestCase):
    def test_concurrent_equal_requests_are_stored_once(self):
        user = make_user("asker")
        conversation = recording.open_conversation(command_principal(user))
        key = ApiKey.objects.issue(user, "test")[1]
        statuses = []

        def save():
            try:
                response = Client().put(
                    f"/chat-history/{conversation.pk}/messages",
                    {"messages": [message("a"), message("b", "Hi", "assistant")]},
                    content_type="application/json",
                    headers={"Authorization": f"Bearer {key}"},
                )
                statuses.append(response.status_code)
            finally:
                connections.close_all()

        threads = [threading.Thread(target=save) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [200] * 6)
        self.assertEqual(Message.objects.count(), 2)
