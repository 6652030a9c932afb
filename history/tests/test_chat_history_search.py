"""Search in one's own conversations: whole words, beginnings of words, all scripts, and the places found."""

from importlib import import_module

import pytest
from django.db import connection

from history import recording
from history.models import Message
from history.recording import AnswerOutcome
from history.tests.chat_history_case import ChatHistoryCase


class SearchTests(ChatHistoryCase):
    def setUp(self):
        super().setUp()
        self.leave = self.conversation("Carrying over leave")
        recording.append(self.leave, "user", "May I take five days into April?")
        answer = recording.append(self.leave, "assistant", state="queued")
        recording.close_answer(
            answer.conversation.owner_id,
            answer.pk,
            AnswerOutcome(Message.State.COMPLETE, "Yes: until 31 March, five days."),
        )
        self.canteen = self.conversation("Canteen")
        recording.append(
            self.canteen,
            "user",
            "What is for lunch on Friday? " + "No fish. " * 40 + "Crêpes, 年次休暇 perhaps?",
        )

    def found(self, query, key=None):
        rows = self.get(f"/search?q={query}", key=key)
        return [{self.leave.pk: "leave", self.canteen.pk: "canteen"}[self.uuid(row)] for row in rows]

    def uuid(self, row):
        return type(self.leave.pk)(row["id"])

    def test_titles_questions_and_answers_are_found_by_all_their_words(self):
        for query, expected in {
            "carrying": ["leave"],
            "OVER leave": ["leave"],
            "five days": ["leave"],
            "days five": ["leave"],
            "march yes": ["leave"],
            "march april": ["leave"],  # of two messages
            "april lunch": [],  # of two conversations
            "carrying april": [],  # of the title and a message
            "canteen": ["canteen"],
            "fri": ["canteen"],
            "ri": [],
            "31": ["leave"],
            "3": [],
            "cr%C3%AApes": ["canteen"],
            "%E4%BC%91%E6%9A%87": ["canteen"],
            "%E5%B9%B4": ["canteen"],
            "%E6%9A%87%E4%BC%91": [],
            "C_rrying": [],
            "%25": [],
            "'": [],
            "' %26 !": [],
            "owner:1": [],
            f"owner:{self.user.pk}": [],
            "%F0%9F%98%80": [],
            "a" * 500: [],
        }.items():
            self.assertEqual(self.found(query), expected, query)

    def test_snippets_give_the_positions_of_the_words(self):
        [row] = self.get("/search/?q=days five")
        self.assertEqual((row["title"], row["messageCount"]), ("Carrying over leave", 2))
        question, answer = row["matches"]
        self.assertEqual((question["role"], answer["role"]), ("user", "assistant"))
        [[start, end]] = question["highlights"]
        self.assertEqual(question["snippet"][start:end], "five days")
        self.assertEqual(question["messageId"], str(self.leave.messages.get(position=0).pk))

    def test_words_of_two_messages_are_shown_in_both(self):
        matches = self.get("/search?q=march april")[0]["matches"]
        self.assertEqual([each["role"] for each in matches], ["user", "assistant"])
        marked = [each["snippet"][start:end] for each in matches for start, end in each["highlights"]]
        self.assertEqual(marked, ["April", "March"])

    def test_a_message_with_all_words_hides_those_with_some(self):
        recording.append(self.canteen, "user", "Is there lunch?")
        recording.append(self.canteen, "user", "Is there lunch on Monday?")
        [match] = self.get("/search?q=lunch monday")[0]["matches"]
        self.assertEqual(match["snippet"], "Is there lunch on Monday?")

    def test_a_snippet_is_short_and_its_positions_refer_to_it(self):
        [match] = self.get("/search?q=perhaps cr%C3%AApes")[0]["matches"]
        self.assertTrue(match["snippet"].startswith("… "))
        self.assertLess(len(match["snippet"]), 250)
        words = [match["snippet"][start:end] for start, end in match["highlights"]]
        self.assertEqual(words, ["Crêpes", "perhaps"])

    def test_markup_is_text(self):
        conversation = self.conversation("x")
        recording.append(conversation, "user", "<script>alert(1)</script> needle")
        [row] = self.get("/search?q=needle")
        self.assertEqual(row["matches"][0]["snippet"], "<script>alert(1)</script> needle")

    def test_a_title_alone_has_no_matches(self):
        self.assertEqual(self.get("/search?q=canteen")[0]["matches"], [])

    def test_others_find_nothing(self):
        for query in ("five days", "carrying", f"owner:{self.user.pk}"):
            self.assertEqual(self.get(f"/search?q={query}", key=self.other_key), [])

    def test_a_search_requires_words(self):
        for query in ("", "?q=", "?q=%20", "?q=%00"):
            response = self.call("GET", f"/search{query}")
            self.assertEqual(response.status_code, 400)
            self.assertIn("“q”", response.json()["error"]["message"])

    def test_results_come_in_pages_newest_first(self):
        for number in range(5):
            conversation = self.conversation(f"Needle {number}")
            recording.append(conversation, "user", f"needle {number}")
        first = self.call("GET", "/search?q=needle&limit=3")
        self.assertEqual([row["title"][-1] for row in first.json()], ["4", "3", "2"])
        link = first.headers["Link"]
        second = self.call("GET", link[link.index("/search") : link.index(">")])
        self.assertEqual([row["title"][-1] for row in second.json()], ["1", "0"])
        self.assertNotIn("Link", second.headers)

    @pytest.mark.slow
    def test_the_number_of_queries_is_constant(self):
        for _ in range(2):
            with self.assertNumQueries(
                6
            ):  # the key, newest titles and messages, hits, figures, last messages
                self.get("/search?q=five&limit=50")
            for number in range(12):
                conversation = self.conversation(f"Row {number}")
                for _ in range(4):
                    recording.append(conversation, "user", "five")
        self.assertEqual({len(row["matches"]) for row in self.get("/search?q=five")[:12]}, {3})

    def test_replaced_text_is_not_found(self):
        self.call(
            "PUT", f"/{self.canteen.pk}", {"messages": [{"id": "a", "role": "user", "content": "before"}]}
        )
        self.assertEqual(self.found("before"), ["canteen"])
        self.call(
            "PUT", f"/{self.canteen.pk}", {"messages": [{"id": "a", "role": "user", "content": "after"}]}
        )
        self.assertEqual((self.found("before"), self.found("after")), ([], ["canteen"]))

    def test_text_older_than_the_index_is_found(self):
        Message.objects.update(search=None)
        self.assertEqual(self.found("five"), [])
        with connection.cursor() as cursor:
            cursor.execute(import_module("history.migrations.0004_chat_history").FILL)
        self.assertEqual((self.found("five days"), self.found("fri")), (["leave"], ["canteen"]))
        self.assertEqual(self.found("five", key=self.other_key), [])

    def test_hostile_text_is_stored_and_found(self):
        conversation = self.conversation("Hostile")
        for text in (
            "x" * 100_000 + " end",
            "'\\' \\\\ ':* & | ! ()",
            "\u0301 \u200b \ufffe \U0010fffd",
            " ".join(chr(0x20000 + n) for n in range(20_000)),
        ):
            recording.append(conversation, "assistant", text)
        self.assertEqual(self.get("/search?q=" + "x" * 150)[0]["title"], "Hostile")
