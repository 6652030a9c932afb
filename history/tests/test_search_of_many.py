"""Search in more conversations than are scanned directly finds the same as a comparison of every text."""

from importlib import import_module
from unittest.mock import patch

import pytest
from django.apps import apps
from django.db import connection

from history import message_search, recording
from history.models import Conversation, Message
from history.tests.chat_history_case import ChatHistoryCase
from ingestion.search.tokens import plain_words
from ingestion.tests.factories import command_principal

TITLES = (
    "",
    "Carrying over leave",
    "Crêpes & tea",
    "Lantern_one",
    "A lantern",
    "!",
    "Fire-side: lanterns",
    "Ember",
)
TEXTS = (
    "May I take five days?",
    "The lantern is out.",
    "Leave the LANTERNS on",
    "embers, and five lamps",
    "?",
)
QUERIES = (
    "lantern",
    "lanterns",
    "five",
    "fi",
    "leave",
    "lantern out",
    "ember",
    "crêpes",
    "tea",
    "a",
    "one",
    "zeppelin",
)


def has(text, query):
    """Whether each word of the query is a word of the text or, if longer than two letters, begins one."""
    words = plain_words(text).split()
    return all(
        any(word == wanted or (len(wanted) > 2 and word.startswith(wanted)) for word in words)
        for wanted in plain_words(query).split()
    )


@pytest.mark.slow
class ManyConversationsTests(ChatHistoryCase):
    def setUp(self):
        super().setUp()
        for name, value in {"FIRST_SCAN": 5, "MIN_FOUND": 2, "SECOND_SCAN": 10}.items():
            self.enterContext(patch.object(message_search, name, value))
        for number in range(40):
            owner = (self.user, self.other)[number % 3 == 0]
            conversation = recording.open_conversation(
                command_principal(owner), title=TITLES[number * 7 % len(TITLES)]
            )
            for step in range(number % 3):
                text = TEXTS[(number * 3 + step) % len(TEXTS)]
                recording.append(conversation, ("user", "assistant")[step], text)

    def found(self, query, owner=None, limit=3):
        """Everything that is found, page by page."""
        ids, below = [], None
        while True:
            rows, below = message_search.page(command_principal(owner or self.user), query, limit, below)
            self.assertLessEqual(len(rows), limit)
            ids += [row.pk for row in rows]
            if below is None:
                return ids

    def expected(self, query, owner=None):
        mine = Conversation.objects.owned_by(command_principal(owner or self.user))
        return [
            row.pk
            for row in mine.order_by("-updated_at", "-id")
            if has(row.title, query) or any(has(said.content, query) for said in row.messages.all())
        ]

    def check(self):
        for owner in (self.user, self.other):
            for query in QUERIES:
                self.assertEqual(self.found(query, owner), self.expected(query, owner), query)

    def test_all_conversations_with_the_words_are_found_newest_first(self):
        self.assertGreater(len(self.expected("lantern")), 10)
        self.assertEqual(self.expected("zeppelin"), [])
        self.check()

    def test_deleted_conversations_and_those_stored_elsewhere_are_not_found(self):
        for number, conversation in enumerate(Conversation.objects.filter(owner=self.user)):
            if number % 3 == 0:
                recording.delete(self.principal, conversation.pk)
        Conversation.objects.filter(title="Ember").update(listed=False)
        self.check()

    def test_titles_without_their_words_are_read(self):
        Conversation.objects.update(search=None)
        for query in ("tea", "carrying", "fire side"):
            self.assertEqual(self.found(query), self.expected(query), query)

    def test_the_words_of_earlier_titles_are_filled_in(self):
        before = dict(Conversation.objects.values_list("pk", "search"))
        Conversation.objects.update(search=None)
        migration = import_module("history.migrations.0006_conversation_search")
        with patch.object(migration, "BATCH", 7), connection.schema_editor() as editor:
            migration.fill(apps, editor)
        titled = Conversation.objects.filter(title__regex="[[:alnum:]]")
        self.assertEqual(dict(titled.values_list("pk", "search")), {row.pk: before[row.pk] for row in titled})

    def test_a_renamed_conversation_is_found_only_by_its_new_title(self):
        oldest = Conversation.objects.filter(owner=self.user).earliest("updated_at")
        Message.objects.filter(conversation=oldest).delete()
        recording.rename(self.principal, oldest.pk, "Periscope")
        self.assertEqual(self.found("periscope"), [oldest.pk])
        recording.rename(self.principal, oldest.pk, "Submarine")
        self.assertEqual((self.found("periscope"), self.found("submarine")), ([], [oldest.pk]))

    def test_a_title_of_the_site_is_found_by_its_words(self):
        oldest = Conversation.objects.filter(owner=self.user).earliest("updated_at")
        recording.set_title(self.user.pk, oldest.pk, "Periscope")
        self.assertEqual(self.found("peri"), [oldest.pk])

    def test_another_person_finds_nothing(self):
        recording.append(recording.open_conversation(self.principal, title="Periscope"), "user", "sextant")
        for number in range(6):
            recording.append(recording.open_conversation(self.principal), "user", f"newer {number}")
        self.assertEqual(len(self.found("periscope") + self.found("sextant")), 2)
        for query in ("periscope", "sextant", f"owner:{self.user.pk}"):
            self.assertEqual(self.found(query, self.other), [], query)

    def test_the_newest_conversations_are_scanned_without_the_index(self):
        with (
            patch.object(message_search, "SECOND_SCAN", 100),
            patch.object(message_search, "_indexed", side_effect=AssertionError),
        ):
            self.check()

    def test_the_number_of_queries_is_constant(self):
        for _ in range(2):
            # Newest conversations; their messages; number of the rest; older ones.
            with self.assertNumQueries(4):
                message_search.page(self.principal, "zeppelin", 50)
            with self.assertNumQueries(5):  # newest conversations and their messages, twice; older ones
                message_search.page(self.principal, "lantern", 50)
            for number in range(20):
                recording.append(recording.open_conversation(self.principal), "user", f"lantern {number}")
