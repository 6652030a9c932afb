"""Exporting and erasing a person: all of that person's data, and nobody else's."""

import json
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from zipfile import ZipFile

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test import Client, TestCase, TransactionTestCase, override_settings
from django.utils import timezone, translation

from chat.evaluation.models import ProofQuestion, ProofRun
from chat.models import (
    DismissedQuestion,
    JournalEntry,
    MessageAllowance,
    Run,
    Usage,
)
from chat.persons import erasure
from chat.persons.erasure import ErasureRefused, count_data, delete_own, erase, erase_returned
from chat.tests.conversations import answered
from chat.tests.engine.test_verified_answers import make_verified
from chat.unanswered.models import UnansweredQuestion
from chatsite.accounts.audit import chain, record
from chatsite.accounts.holds import OnHold
from chatsite.accounts.models import (
    ApiKey,
    AuditEntry,
    ExternalIdentity,
    Look,
    ManagedMembership,
    User,
    WebhookDelivery,
    WebhookEndpoint,
)
from history.models import Feedback, Message, Project, Share, Source
from ingestion.access.lists import Audience, access_list_for, change_rights
from ingestion.bulk.models import BulkChange, BulkItem
from ingestion.documents import upsert
from ingestion.models import (
    CitedName,
    Document,
    ExternalId,
    FormerVersion,
)
from ingestion.storage.files import StorageFault
from ingestion.tests.factories import command_principal, make_document, make_user

CANARY = "zzqkanarx"
TEXT_COLUMNS = """
SELECT table_name
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
AND data_type IN ('text', 'character varying', 'json', 'jsonb', 'tsvector', 'ARRAY', 'USER-DEFINED')
"""
# Tables without personal text. Add a new table either here or to `person_with_everything`.
WITHOUT_WORDS = {
    "chat_sitetexts": "texts of the site, and the number of who wrote them while they have an account",
    "chat_startingquestion": "texts of the site",
    "accounts_auditdelivery": "numbers",
    "accounts_device": "names of products; end with their sessions",
    "accounts_auditseal": "digests; of an erased person's entries without their salt",
    "accounts_formeridentity": "MD5 only",
    "accounts_groupmapping": "of groups",
    "accounts_guestrate": "hashes of addresses",
    "accounts_signinattempt": "digests, for an hour",
    "auth_group": "of groups",
    "auth_permission": "of the program",
    "chat_agent": "of the site",
    "chat_dayfigures": "numbers",
    "chat_proofresult": "digests and numbers",
    "django_content_type": "of the program",
    "django_migrations": "of the program",
    "django_session": "signed and encoded; the person's are deleted (tested below)",
    "ingestion_accesslist": "digest of numbers",
    "ingestion_dumpguard": "of the program",
    "ingestion_embeddingspace": "of the site",
    "ingestion_houseword": "of the site",
    "ingestion_preparedvector": "vectors; go with their document",
    "ingestion_sourcefile": "mirrored folders, which have no owner",
    "ingestion_vector": "vectors; go with their document",
    "procrastinate_events": "states of jobs",
    "procrastinate_jobs": "numbers, and generated names of files",
    "procrastinate_periodic_defers": "of the program",
}


def dump():
    """{table: its rows as text}"""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        rows = {}
        for table in tables:
            cursor.execute(f'SELECT content::text FROM "{table}" AS content')
            rows[table] = sorted(row for (row,) in cursor.fetchall())
    return rows


def tables_with(text, dumped):
    return {table for table, rows in dumped.items() if any(text in row.casefold() for row in rows)}


def person_with_everything():
    """An account with a row in every table that may hold a person's words, each with the canary."""
    person = make_user(f"{CANARY}.user", first_name=CANARY.title(), last_name="Miller")
    own = make_document(
        f"{CANARY}-notes.md", (f"Employees may carry over five days of leave, says {CANARY}.",), owner=person
    )
    upsert(
        ContentFile(f"{CANARY} writes".encode()),
        f"{CANARY}.txt",
        owner=person,
        audience=Audience(everyone=False),
    )
    conversation, answer = answered(
        person, own, question=f"Who is {CANARY}?", text=f"{CANARY} [guide.md#leave]", title=CANARY
    )
    rows_of_conversation(person, conversation, answer)
    key = rows_of_account(person)
    rows_of_documents(person, own)
    rows_of_proof(person, own)
    LogEntry.objects.create(
        user=make_user("clerk"),
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(person.pk),
        object_repr=person.username,
        action_flag=CHANGE,
        change_message=CANARY,
    )
    record(AuditEntry.Action.SEARCH_AS, actor=person, person=person, subject=f"Where is {CANARY}?")
    return person, key


def rows_of_conversation(person, conversation, answer):
    conversation.project = Project.objects.create(owner=person, name=CANARY, instructions=CANARY)
    conversation.save()
    Source.objects.filter(message=answer).update(content=CANARY)
    Feedback.objects.create(message=answer, rating="bad", comment=CANARY)
    Share.objects.create(
        conversation=conversation,
        up_to=1,
        access_list=access_list_for(Audience(everyone=True), person.pk),
        digest=CANARY,
    )
    run = Run.objects.create(
        owner=person,
        conversation=conversation,
        question=conversation.messages.get(position=0),
        answer=answer,
        options={"prompt": CANARY},
        body_digest="d",
        finished_at=timezone.now(),
    )
    UnansweredQuestion.objects.create(
        message=run.question, conversation=conversation, owner=person, asked_at=timezone.now(),
        reasons=["bad"], digest=CANARY, answers=[], shown=[], cited=[],
    )  # fmt: skip
    JournalEntry.objects.create(run=run, first=1, last=1, events=[CANARY])
    Look.objects.create(person=person, conversation=conversation.pk, reason=CANARY)
    other = make_user()
    Look.objects.create(reader=person, person=other, conversation=conversation.pk, reason=CANARY)


def rows_of_account(person):
    """Create what belongs to the account itself, and return its API key."""
    key, _ = ApiKey.objects.issue(person, f"key of {CANARY}")
    group = Group.objects.create(name="Crew")
    person.groups.add(group)
    identity = ExternalIdentity.objects.create(user=person, issuer="https://id", subject=CANARY)
    ManagedMembership.objects.create(identity=identity, group=group, values=[CANARY])
    MessageAllowance.objects.create(user=person, messages=5)
    Usage.objects.create(owner=person, day=timezone.localdate(), messages=2)
    hook = WebhookEndpoint.objects.create(
        owner=person, name=CANARY, url="https://a.test", events=["answer.feedback"]
    )
    WebhookDelivery.objects.create(endpoint=hook, event="document.ready", data={"external_id": CANARY})
    return key


def rows_of_documents(person, own):
    ExternalId.objects.create(owner=person, external_id=CANARY, document=own)
    FormerVersion.objects.create(
        document=own, access_list=own.access_list, since=1, version=1, content=CANARY, size=9
    )
    CitedName.objects.create(reader=person, name=own.public_id, document=own.public_id)
    change = BulkChange.objects.create(actor=person, kind="category", wanted={"category": CANARY})
    BulkItem.objects.create(change=change, document=own, before=CANARY)
    verified = make_verified(own, text=f"{CANARY} [1]", question=f"What says {CANARY}?", owner=person)
    verified.citations.update(words=CANARY)


def rows_of_proof(person, own):
    """Create evaluation questions and runs, and a dismissed question."""
    group = person.groups.get()
    proven = ProofQuestion.objects.create(text=f"Who says {CANARY}?", wants_nothing=True, added_by=person)
    ProofRun.objects.create(started_by=person, group=group, note=CANARY, ended_at=timezone.now())
    ProofQuestion.objects.create(text=f"Who {CANARY}?", document=own, asker=person)
    LogEntry.objects.create(
        user=make_user("secretary"), content_type=ContentType.objects.get_for_model(ProofQuestion),
        object_id=str(proven.pk), object_repr=CANARY, action_flag=CHANGE,
    )  # fmt: skip
    DismissedQuestion.objects.create(
        digest="d", reason=CANARY, dismissed_by=person, dismissed_at=timezone.now()
    )


@pytest.mark.slow
class ErasingTests(TestCase):
    def setUp(self):
        self.root = User.objects.create_superuser("root")
        self.other = make_user("olga")
        self.shared = make_document("guide.md", everyone=True, owner=self.other)
        answered(self.other, self.shared)

    def test_a_dump_has_nothing_of_an_erased_person_and_everything_of_others(self):
        person, *_ = person_with_everything()
        browser = Client()
        browser.force_login(person)
        stored = Document.objects.get(name=f"{CANARY}.txt").file.name
        Message.objects.filter(conversation__owner=self.other, position=1).update(
            verified={"by": person.display_name(), "until": "2030-01-01", "person": person.pk},
            thoughts=[
                {
                    "title": "Verified answer",
                    "description": f"Verified by {person.display_name()} until 1 January 2030",
                    "props": {"by": person.display_name(), "until": "2030-01-01"},
                }
            ],
        )
        change_rights(self.root, self.shared, Audience(user_ids=frozenset({person.pk})))
        predecessor = make_user("predecessor")
        make_document("rules.md", owner=predecessor, everyone=True)
        erase(predecessor, actor=self.root, documents_to=person)
        BulkChange.objects.create(actor=self.root, kind="category", reason=f"{person.username} stopped it.")
        with connection.cursor() as cursor:
            cursor.execute(TEXT_COLUMNS)
            with_text = {name for (name,) in cursor.fetchall()}
        before = dump()
        self.assertEqual(
            with_text - tables_with(CANARY, before) - WITHOUT_WORDS.keys(),
            set(),
            "Say in erase() what goes of these tables, and put a row with the canary into them here.",
        )
        with self.captureOnCommitCallbacks(execute=True):
            erase(person, actor=self.root, delete_documents=True)
        after = dump()
        self.assertEqual(tables_with(CANARY, after), set())
        self.assertFalse(default_storage.exists(stored))
        self.assertEqual(browser.get("/documents/").status_code, 302)
        self.assertTrue(User.objects.filter(pk=self.other.pk).exists())
        for table in ("history_source", "history_conversation", "ingestion_passage", "accounts_user"):
            kept = [row for row in before[table] if CANARY not in row.casefold()]
            self.assertEqual([row for row in kept if row not in after[table]], [], table)

    def test_the_audit_log_keeps_a_number_in_place_of_the_name(self):
        person, *_ = person_with_everything()
        number = person.pk
        erase(person, actor=self.root, delete_documents=True)
        searched = AuditEntry.objects.get(action="search_as")
        self.assertEqual(
            (searched.actor, searched.person, searched.subject), (f"person {number}",) * 2 + ("",)
        )
        erased = AuditEntry.objects.get(action="person_erased")
        self.assertEqual(erased.actor, "root")
        self.assertIn(f"person {number}: 1 conversation with 2 messages, 2 documents", erased.subject)

    def test_djangos_log_forgets_rows_that_were_deleted_before_their_person(self):
        person = make_user("annabell")
        self.client.force_login(self.root)
        page = "/admin/chat/messageallowance/"
        for user in (person, self.other):
            self.client.post(f"{page}add/", {"user": user.pk, "group": "", "messages": 3})
        allowance = MessageAllowance.objects.get(user=person)
        self.client.post(f"{page}{allowance.pk}/delete/", {"post": "yes"})
        erase(person, actor=self.root)
        names = LogEntry.objects.values_list("object_repr", flat=True)
        self.assertCountEqual(names, ["erased", "erased", "olga: 3"])

    def test_erasing_a_person_changes_no_text_that_their_name_happens_to_match(self):
        name = f"{self.shared.name} ({self.shared.public_id}): olga"
        person = make_user("everyone", first_name=name, last_name="→ Everyone who signs in")
        change_rights(self.root, self.shared, Audience(everyone=True))
        record(AuditEntry.Action.RIGHTS_CHANGED, actor=self.root, subject=person.get_full_name())
        record(AuditEntry.Action.MEMBERS_CHANGED, actor=self.root, subject="project 1: everyone → nobody")
        chain.seal_new()
        before = list(AuditEntry.objects.order_by("pk").values())
        erase(person, actor=self.root)
        self.assertEqual(list(AuditEntry.objects.order_by("pk").values())[: len(before)], before)
        self.assertEqual(chain.verify().anonymized, [])

    def test_only_the_name_is_removed_from_an_audit_entry(self):
        anna, bert = make_user("anna"), make_user("bert")
        Document.objects.filter(pk=self.shared.pk).update(name="anna.md")
        self.shared.refresh_from_db()
        change_rights(self.root, self.shared, Audience(user_ids=frozenset({anna.pk, bert.pk})))
        change_rights(self.root, self.shared, Audience(user_ids=frozenset({anna.pk})))
        chain.seal_new()
        erase(anna, actor=self.root)
        erase(bert, actor=self.root)
        entries = AuditEntry.objects.filter(action="rights_changed").order_by("pk")
        what = f"anna.md ({self.shared.public_id}): "
        then = f"Private document {self.shared.pk} ({self.shared.public_id}): "
        both = f"person {anna.pk}, person {bert.pk}, olga"
        self.assertEqual(
            [entry.subject for entry in entries],
            [f"{what}Everyone who signs in → {both}", f"{then}{both} → person {anna.pk}, olga"],
        )
        self.assertEqual(chain.verify().anonymized, [entry.pk for entry in entries])

    def test_erasing_a_person_leaves_other_names_in_verified_answers(self):
        author = make_user("writer", first_name="Ann", last_name="Lee")
        given = Message.objects.filter(conversation__owner=self.other, position=1)
        given.update(verified={"by": "Ann Lee", "until": "2030-01-01", "person": author.pk})
        erase(make_user("someone", first_name="Ann", last_name="Lee"), actor=self.root)
        self.assertEqual(given.get().verified["by"], "Ann Lee")
        erase(author, actor=self.root)
        self.assertEqual(given.get().verified["by"], "a former colleague")

    def test_the_audit_log_stays_immutable_otherwise(self):
        record(AuditEntry.Action.SEARCH_AS, actor=self.root, subject="leave")
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('chatsite.erasing', 'on', true)")
            for change in ("UPDATE accounts_auditentry SET actor_id = 1", "DELETE FROM accounts_auditentry"):
                with self.assertRaises(IntegrityError), transaction.atomic():
                    cursor.execute(change)

    def test_shared_documents_are_transferred_or_deleted_as_decided(self):
        person = make_user("anna")
        private = make_document("diary.md", owner=person)
        public = make_document("rules.md", owner=person, everyone=True)
        with self.assertRaisesMessage(ErasureRefused, "Others use what this person owns (documents: 1,"):
            erase(person, actor=None)
        person.refresh_from_db()
        self.assertTrue(person.is_active)
        erase(person, actor=None, documents_to=self.other)
        self.assertFalse(Document.objects.filter(pk=private.pk).exists())
        public.refresh_from_db()
        self.assertEqual(public.owner, self.other)
        self.assertTrue(Document.objects.visible_to(command_principal(self.other)).filter(pk=public.pk))

    def test_nobody_receives_documents_that_the_eraser_cannot_read(self):
        staff = make_user("staff", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="delete_user"))
        anna = make_user("anna")
        document = make_document("salaries.md", owner=anna, users=[self.other])
        for successor in (staff, make_user("accomplice")):
            with self.assertRaisesMessage(
                ErasureRefused, f"{successor.username} cannot read 1 of these documents"
            ):
                erase(anna, actor=staff, documents_to=successor)
        anna.refresh_from_db()
        self.assertTrue(anna.is_active)
        erase(anna, actor=staff, documents_to=self.other)
        document.refresh_from_db()
        self.assertEqual(document.owner, self.other)
        bert = make_user("bert")
        make_document("pay.md", owner=bert, users=[self.other])
        staff.user_permissions.add(Permission.objects.get(codename="change_document"))
        erase(bert, actor=User.objects.get(pk=staff.pk), documents_to=staff)
        self.assertTrue(Document.objects.filter(name="pay.md", owner=staff).exists())

    def test_a_legal_hold_is_refused_with_a_message(self):
        person = make_user("anna", legal_hold="case 17/2026")
        with self.assertRaisesMessage(ErasureRefused, "under a legal hold and stays as it is: case 17/2026"):
            erase(person, actor=None)
        person.refresh_from_db()
        self.assertTrue(person.is_active)

    def test_a_hold_that_began_meanwhile_is_explained_in_the_language_of_the_page(self):
        person = make_user("anna", legal_hold="case 17/2026")
        with translation.override("de"), self.assertRaisesMessage(ErasureRefused, "inzwischen"):
            erasure._delete_account(person, count_data(person), None, None)

    def test_a_hold_that_begins_while_documents_are_deleted_is_explained(self):
        person = make_user("anna")
        make_document("notes.md", owner=person)
        with (
            patch.object(erasure, "_delete_documents", side_effect=OnHold),
            self.assertRaisesMessage(ErasureRefused, "meanwhile been put under a legal hold"),
        ):
            erase(person, actor=None)
        self.assertTrue(User.objects.filter(pk=person.pk).exists())

    def test_a_running_answer_is_stopped_first(self):
        person, *_ = person_with_everything()
        Run.objects.update(finished_at=None)
        with (
            patch("chat.persons.erasure.STOP_SECONDS", 0),
            self.assertRaisesMessage(ErasureRefused, "still being written"),
        ):
            erase(person, actor=None, delete_documents=True)
        self.assertTrue(Run.objects.get().stop_requested)
        person.refresh_from_db()
        self.assertFalse(person.is_active)
        self.assertEqual(count_data(person).messages, 2)


class DeadlockTests(TransactionTestCase):
    def test_deletions_are_repeated_after_a_deadlock_with_a_question(self):
        person = make_user("anna")
        root = User.objects.create_superuser("root")
        for delete in (lambda: delete_own(person, documents=True), lambda: erase(person, actor=root)):
            answered(person, make_document("diary.md", owner=person))
            calls = []

            def rows_deleted(owner, *, calls=calls, original=erasure._delete_conversations):
                original(owner)
                calls.append(owner)
                if len(calls) == 1:
                    with connection.cursor() as cursor:
                        cursor.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$")

            with (
                TemporaryDirectory() as folder,
                override_settings(ERASED_LIST=Path(folder) / "erased"),
                patch.object(erasure, "_delete_conversations", rows_deleted),
            ):
                delete()
            self.assertEqual(len(calls), 2)
            self.assertFalse(Message.objects.exists())
        self.assertFalse(User.objects.filter(pk=person.pk).exists())
        self.assertEqual(AuditEntry.objects.filter(action="person_erased").count(), 1)


@pytest.mark.slow
class RestoredTests(TestCase):
    """Restoring an older backup brings back people who were erased after it was made."""

    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "lists", "erased.jsonl")
        self.enterContext(override_settings(ERASED_LIST=self.path))
        self.successor = make_user("olga")
        self.person, _ = person_with_everything()
        self.row = User.objects.filter(pk=self.person.pk).values().get()
        with self.captureOnCommitCallbacks(execute=True):
            erase(self.person, actor=None, documents_to=self.successor)

    def brought_back(self, **changes):
        return User.objects.create(**{**self.row, **changes})

    def test_restored_people_are_erased_again_and_the_successor_gets_the_documents(self):
        back = self.brought_back()
        public = make_document("rules.md", owner=back, everyone=True)
        (line,) = erase_returned()
        self.assertEqual(line, f"Person {back.pk} was erased again, because a backup had restored them.")
        self.assertFalse(User.objects.filter(pk=back.pk).exists())
        public.refresh_from_db()
        self.assertEqual(public.owner, self.successor)
        self.assertEqual(erase_returned(), [])

    def test_the_list_of_erased_people_has_no_names_and_is_private(self):
        self.assertNotIn(CANARY, self.path.read_text().casefold())
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)

    def test_an_entry_that_cannot_be_written_is_logged(self):
        entry = erasure.ErasedAccount(7, "2026-01-01T00:00:00+00:00", None)
        folder = self.path.parent / "occupied"
        folder.mkdir()
        with self.settings(ERASED_LIST=folder), self.assertLogs("chat.persons.erasure", "ERROR") as logged:
            entry.note()
        self.assertIn('{"number": 7,', logged.output[0])

    def test_another_account_with_the_same_id_is_left_alone(self):
        other = self.brought_back(date_joined=timezone.now())
        self.assertEqual(erase_returned(), [])
        self.assertTrue(User.objects.filter(pk=other.pk).exists())

    def test_a_truncated_line_hides_no_other_line(self):
        self.path.write_text(self.path.read_text() + '{"number": 7, "jo')
        self.brought_back()
        with self.assertLogs("chat.persons.erasure", "WARNING"):
            self.assertEqual(len(erase_returned()), 1)

    def test_a_legal_hold_is_reported(self):
        self.brought_back(legal_hold="case 17/2026")
        self.assertIn("cannot be erased again: This account is under a legal hold", erase_returned()[0])


class CommandTests(TestCase):
    def test_without_yes_the_command_lists_what_would_be_erased(self):
        make_user("anna")
        said = StringIO()
        call_command("erase_person", "anna", stdout=said)
        self.assertIn("Would erase: 0 conversations with 0 messages", said.getvalue())
        call_command("erase_person", "anna", "--yes", stdout=said)
        self.assertFalse(User.objects.filter(username="anna").exists())
        self.assertEqual(AuditEntry.objects.get().action, "person_erased")

    def test_unknown_names_are_refused(self):
        for arguments in (["erase_person", "nobody"], ["export_person", "nobody", "x.zip"]):
            with self.assertRaisesMessage(CommandError, "There is no account named “nobody”."):
                call_command(*arguments)

    def test_an_export_has_all_data_of_the_person_and_no_secret(self):
        person, key = person_with_everything()
        with TemporaryDirectory() as folder:
            path = Path(folder, "person.zip")
            call_command("export_person", person.username, str(path), stdout=StringIO())
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            with self.assertRaisesMessage(CommandError, "exist"):
                call_command("export_person", person.username, str(path))
            with ZipFile(path) as archive:
                content = {name: archive.read(name).decode() for name in archive.namelist()}
            document = Document.objects.filter(owner=person).exclude(file="").first()
            Path(document.file.path).write_bytes(b"cut")
            call_command("export_person", person.username, f"{path}2", stdout=StringIO())
            with ZipFile(f"{path}2") as archive:
                damaged = set(archive.namelist()) - content.keys()
        name = f"documents/{document.public_id}/{document.name}"
        self.assertEqual(damaged, {f"{name}.damaged.txt"})
        self.assertEqual(json.loads(content["profile.json"])["groups"], ["Crew"])
        self.assertEqual(json.loads(content["feedback.json"])[0]["comment"], CANARY)
        self.assertIn(f"## Who is {CANARY}?", content["conversations/00001.md"])
        self.assertEqual(len(json.loads(content["conversations/00001.json"])["messages"]), 2)
        self.assertIn(f"{CANARY} writes", content.values())
        self.assertIn(f"Where is {CANARY}?", content["audit.json"])
        self.assertNotIn(key.digest, "".join(content.values()))
        self.assertTrue(AuditEntry.objects.filter(action="person_exported", person_id=person.pk).exists())


class UnremovedFilesTests(TransactionTestCase):
    def test_files_that_the_storage_does_not_remove_are_announced(self):
        person, other, root = make_user("anna"), make_user("bert"), User.objects.create_superuser("root")
        for owner in (person, other, root):
            make_document("diary.md", owner=owner)
            make_document("notes.md", owner=owner)
        said = "2 files could not be removed, because the storage failed."
        with (
            patch("ingestion.storage.files.remove", side_effect=StorageFault),
            self.assertLogs("django.db.backends.base", "ERROR"),
        ):
            output = StringIO()
            call_command("erase_person", "anna", "--yes", stdout=output)
            self.assertIn(said, output.getvalue())
            self.client.force_login(root)
            posted = {"documents": "delete", "confirmed": "on"}
            page = self.client.post(f"/admin/accounts/user/{other.pk}/delete/", posted, follow=True)
            self.assertContains(page, said)
            posted = {"delete": "1", "confirmed": "yes", "documents": "yes"}
            self.assertContains(self.client.post("/settings/data/", posted, follow=True), said)
        self.assertFalse(Document.objects.exists())
