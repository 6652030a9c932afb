"""Row-level security: PostgreSQL itself hides documents and passages from people who may not read them."""

import random
from contextlib import suppress

import pytest
from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.db import ProgrammingError, connection, transaction
from django.test import TestCase
from django.utils import timezone

from chat.models import VerifiedAnswer, VerifiedCitation
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.threads import (
    reading_as,
    reading_everything,
)
from history.models import Conversation, Message, Source
from ingestion import documents
from ingestion.access.lists import (
    Audience,
    access_list_for,
    audience_of,
    set_audience,
)
from ingestion.documents import upsert
from ingestion.models import Document, Passage, SourceFile
from ingestion.search.retrieval import readable_among, search
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin

TABLES = (
    "chat_verifiedcitation",
    "history_source",
    "ingestion_document",
    "ingestion_formerversion",
    "ingestion_passage",
)
# The rule, formulated independently of the function that everything else uses.
READABLE = """
    SELECT document.id
    FROM ingestion_document AS document
    WHERE EXISTS (
        SELECT FROM ingestion_accessentry AS entry
        JOIN accounts_user AS reader ON reader.id = %(user_id)s AND reader.is_active
        WHERE entry.access_list_id = document.access_list_id AND (
            entry.user_id = reader.id
            OR entry.group_id IN (SELECT group_id FROM accounts_user_groups WHERE user_id = reader.id)
            OR entry.guests
            OR (entry.user_id IS NULL AND entry.group_id IS NULL AND reader.guest_until IS NULL)
        )
    )
"""
WORLDS = 3


def rows(query, parameters=()):
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall()


class NobodyReadsNothing(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.owner, cls.stranger = make_user("owner"), make_user("stranger")
        cls.document = make_document(owner=cls.owner)

    def readers(self):
        """Readers without rights: nobody, a stranger, and invalid names."""
        return [
            None,
            self.stranger.pk,
            "",
            "0",
            "-1",
            "x",
            "Everything",
            "7; SELECT 1",
            "9" * 30,
            " 1",
            "1\n",
        ]

    def test_the_role_of_the_application_is_bound_though_it_owns_the_tables(self):
        found = rows(
            "SELECT relname, relrowsecurity, relforcerowsecurity, pg_get_userbyid(relowner) = current_user"
            " FROM pg_class WHERE relname = ANY(%s) ORDER BY relname",
            [list(TABLES)],
        )
        self.assertEqual(found, [(table, True, True, True) for table in TABLES])
        role = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        self.assertEqual(rows(role), [(False,)])

    def test_queries_without_a_predicate_find_nothing(self):
        for reader in self.readers():
            with self.subTest(reader=reader), reading_as(reader):
                self.assertEqual(list(Document.objects.all()), [])
                self.assertEqual(list(Passage.objects.all()), [])
                self.assertEqual(Document.objects.count() + Passage.objects.count(), 0)
                self.assertIsNone(Document.objects.filter(pk=self.document.pk).first())
                self.assertEqual(list(Passage.objects.filter(document=self.document).iterator()), [])
                for table in TABLES:
                    self.assertEqual(rows(f"SELECT * FROM {table}"), [])
                    self.assertEqual(rows(f"SELECT count(*), max(id) FROM {table}"), [(0, None)])

    def test_joins_from_unprotected_tables_find_no_text(self):
        with reading_as(self.stranger.pk):
            self.assertEqual(
                rows("SELECT content FROM ingestion_vector JOIN ingestion_passage USING (document_id)"), []
            )

    def test_a_copy_of_the_table_is_empty(self):
        Document.objects.count()  # sets the session's reader to everything
        with (
            reading_as(None),
            connection.cursor() as cursor,
            cursor.copy("COPY ingestion_passage TO STDOUT") as copy,
        ):
            self.assertEqual(list(copy), [])

    def test_readers_without_rights_change_and_delete_nothing(self):
        with reading_as(None):
            self.assertEqual(Document.objects.update(title="Mine"), 0)
            self.assertEqual(Passage.objects.update(content="Mine"), 0)
            self.assertEqual(Document.objects.filter(pk=self.document.pk).delete()[0], 0)
            for table in TABLES:
                with connection.cursor() as cursor:
                    cursor.execute(f"DELETE FROM {table}")
                    self.assertEqual(cursor.rowcount, 0)
        self.assertEqual(Document.objects.get().title, self.document.title)
        self.assertEqual(Passage.objects.count(), 1)

    def test_readers_without_rights_add_nothing(self):
        passage = (
            "INSERT INTO ingestion_passage (document_id, position, anchor, heading, content)"
            " VALUES (%s, 9, '', '', '') RETURNING id"
        )
        with reading_as(self.stranger.pk):
            with self.assertRaises(ProgrammingError), transaction.atomic():
                rows(passage, [self.document.pk])
            with self.assertRaises(ProgrammingError), transaction.atomic():
                Document.objects.create(owner=self.stranger, access_list=self.document.access_list, size=1)

    def test_a_search_with_the_wrong_caller_finds_nothing(self):
        mistaken = Principal(self.owner.pk, "command")
        self.assertEqual(len(search(mistaken, "leave").passages), 1)
        with reading_as(self.stranger.pk):
            self.assertEqual(search(mistaken, "leave").passages, ())

    def test_passages_are_found_by_index_and_access_lists_computed_once(self):
        with reading_as(self.owner.pk):
            rows("SELECT set_config('enable_seqscan', 'off', true)")
            lines = rows("EXPLAIN SELECT content FROM ingestion_passage WHERE id = ANY('{1,2}')")
        plan = "\n".join(line for (line,) in lines)
        self.assertIn("Index Cond: (id = ANY ('{1,2}'::bigint[]))", plan)
        self.assertIn("Index Cond: (id = ingestion_passage.document_id)", plan)
        self.assertRegex(plan, r"access_list_id = \(hashed SubPlan \d+\)\.col1")
        self.assertRegex(plan, r"\(InitPlan \d+\)\.col1 = 'everything'")
        self.assertNotIn("ingestion_readable_entries", plan)  # the function is inlined into the plan

    def test_foreign_keys_are_checked_without_row_level_security(self):
        # Otherwise rows that refer to a document could not be written without reading it, or deleted with it.
        with reading_as(self.stranger.pk):
            SourceFile.objects.create(
                document_id=self.document.pk, source="s", path="p", size=1, modified_ns=0, sha256=""
            )
            connection.check_constraints()

    def test_copies_of_passages_in_answers_are_bound_too(self):
        conversation = Conversation.objects.create(owner=self.stranger)
        message = Message.objects.create(conversation=conversation, position=0, role="assistant")
        copy = {
            "message": message, "document_id": self.document.pk, "document_version": 1, "passage_id": 1,
            "score": 1, "content": "Secret.", "captions": [{"text": "Secret."}],
        }  # fmt: skip
        Source.objects.create(rank=1, **copy)
        for reader in self.readers():
            with reading_as(reader):
                self.assertEqual(rows("SELECT content, captions, title, label FROM history_source"), [])
        with reading_as(self.owner.pk):
            self.assertEqual(rows("SELECT content FROM history_source"), [("Secret.",)])
        with reading_as(self.stranger.pk), self.assertRaises(ProgrammingError), transaction.atomic():
            Source.objects.create(rank=2, **copy)

    def test_words_that_verified_answers_copy_are_bound_too(self):
        answer = VerifiedAnswer.objects.create(
            text="Yes.", owner=self.owner, valid_until=timezone.localdate(), citation_count=1
        )
        copy = {"answer": answer, "document": self.document, "position": 0, "digest": "", "sha256": ""}
        VerifiedCitation.objects.create(words="Secret.", **copy)
        for reader in self.readers():
            with reading_as(reader):
                self.assertEqual(rows("SELECT words FROM chat_verifiedcitation"), [])
                self.assertEqual(VerifiedCitation.objects.update(words="Mine."), 0)
        with reading_as(self.owner.pk):
            self.assertEqual(rows("SELECT words FROM chat_verifiedcitation"), [("Secret.",)])
        with reading_as(self.stranger.pk), self.assertRaises(ProgrammingError), transaction.atomic():
            VerifiedCitation.objects.create(words="Guess.", **copy)


@pytest.mark.slow
class ReadersReadTheirOwn(TestCase):
    """With random rights, row-level security and the predicate agree for every kind of account."""

    def make_world(self, chance):
        groups = [Group.objects.create(name=f"g{chance.random()}") for _ in range(3)]
        people = [
            make_user(
                is_active=chance.random() < 0.8,
                guest_until=timezone.now() if chance.random() < 0.2 else None,
                is_superuser=chance.random() < 0.2,
            )
            for _ in range(8)
        ]
        for person in people:
            person.groups.set(chance.sample(groups, chance.randint(0, 2)))
        for _ in range(25):
            guests = chance.random() < 0.1
            audience = Audience(
                everyone=guests or chance.random() < 0.1,
                guests=guests,
                user_ids=frozenset(person.pk for person in chance.sample(people, chance.randint(0, 2))),
                group_ids=frozenset(group.pk for group in chance.sample(groups, chance.randint(0, 1))),
            )
            owner = chance.choice([None, *people])
            document = Document.objects.create(
                owner=owner, access_list=access_list_for(audience, owner and owner.pk), size=1, version=1
            )
            Passage.objects.create(document=document, position=0, content="Text.")
        return people

    def assert_same(self, person):
        principal = Principal(person.pk, "command")
        expected = {pk for (pk,) in rows(READABLE, {"user_id": person.pk})}
        visible = Document.objects.visible_to(principal)
        self.assertEqual(set(visible.values_list("pk", flat=True)), expected)
        with reading_everything():
            every = Document.objects.values_list("pk", flat=True)
        self.assertEqual(readable_among(principal, every), expected)
        with reading_as(person.pk):
            self.assertEqual(set(Document.objects.values_list("pk", flat=True)), expected)
            self.assertEqual(set(Passage.objects.values_list("document", flat=True)), expected)
        return len(expected)

    def test_exactly(self):
        seen = 0
        for seed in range(WORLDS):
            chance = random.Random(seed)
            people = self.make_world(chance)
            for person in people:
                seen += self.assert_same(person)
                person.groups.clear()
                self.assert_same(person)
                User.objects.filter(pk=person.pk).update(is_active=False)
                with reading_as(person.pk):
                    self.assertEqual((Document.objects.count(), Passage.objects.count()), (0, 0))
            with reading_everything():
                self.assertEqual(Document.objects.count(), 25 * (seed + 1))
        self.assertGreater(seen, 50)


class OwnersKeepTheirOwn(MediaMixin, TestCase):
    """People change their documents with their own rights."""

    def setUp(self):
        super().setUp()
        self.owner, self.other = make_user("owner"), make_user("other")

    def put(self, text):
        with reading_as(self.owner.pk):
            return upsert(ContentFile(text.encode()), "a.md", owner=self.owner, audience=Audience())

    def test_adding_replacing_and_deleting(self):
        added = self.put("One.")
        documents.read_document(added.document.pk)
        replaced = self.put("Two.")
        self.assertEqual((added.outcome, replaced.outcome), ("added", "replaced"))
        self.assertEqual(replaced.document, added.document)
        with reading_as(self.other.pk):
            documents.delete_document(added.document)
        self.assertEqual(Document.objects.count(), 1)
        with reading_as(self.owner.pk):
            documents.retry(added.document)
            documents.delete_document(added.document)
        self.assertEqual((Document.objects.count(), Passage.objects.count()), (0, 0))

    def test_changing_who_may_read(self):
        document = self.put("One.").document
        for audience in (Audience(everyone=True), Audience(user_ids=frozenset({self.other.pk})), Audience()):
            with reading_as(self.owner.pk):
                set_audience(document, audience)
                self.assertEqual(audience_of(Document.objects.get()), audience)

    def test_a_manager_may_remove_their_own_access(self):
        document = self.put("One.").document
        set_audience(document, Audience(user_ids=frozenset({self.other.pk})))
        with reading_as(self.other.pk):
            set_audience(document, Audience())
            self.assertEqual(Document.objects.count(), 0)

    def test_a_manager_who_requests_a_new_reading_gives_it_the_usual_position(self):
        shared, others = (
            self.put("One.").document,
            self.add("b.md", owner=self.owner, audience=Audience(), read=False),
        )
        set_audience(shared, Audience(user_ids=frozenset({self.other.pk})))
        with reading_as(self.other.pk):
            documents.retry(shared)
        shared.refresh_from_db()
        self.assertGreater(shared.queue_position, others.queue_position)

    def test_a_statement_that_hides_a_document_from_its_own_reader_is_refused(self):
        document = self.put("One.").document
        lonely = access_list_for(Audience(), self.other.pk)
        with reading_as(self.owner.pk), suppress(ProgrammingError), transaction.atomic():
            Document.objects.filter(pk=document.pk).update(access_list=lonely)
        self.assertEqual(Document.objects.get().access_list, document.access_list)
