"""One file is one document: concurrent uploads, versions, changes of audience, and the migration."""

import importlib
import tempfile
import threading
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client, TestCase, TransactionTestCase

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from history.models import Conversation, Message, Source
from ingestion import documents
from ingestion.access.lists import Audience, access_list_for, audience_of, change_rights, set_audience
from ingestion.models import CitedName, Document, FormerId, Passage
from ingestion.parsing.sections import Unreadable
from ingestion.queue.fair_queue import last_queued_file
from ingestion.tests.lifecycle.test_worker import forget_all_jobs
from ingestion.tests.media import EVERYONE, MediaMixin

migration = importlib.import_module("ingestion.migrations.0011_document_identity")


def at_once(calls):
    """Run the calls in a thread each, released together; return their results, or what they raised."""
    barrier = threading.Barrier(len(calls))
    results = [None] * len(calls)

    def run(place, call):
        try:
            barrier.wait(30)
            results[place] = call()
        except Exception as error:
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.slow
class AtOnceTests(MediaMixin, TransactionTestCase):
    def setUp(self):
        super().setUp()
        forget_all_jobs()
        self.addCleanup(forget_all_jobs)
        self.ann = User.objects.create_user("ann", password="words")

    def upsert(self, data, owner=None, audience=EVERYONE):
        return documents.upsert(ContentFile(data), "plan.md", owner=owner, audience=audience)

    def test_one_file_sent_twenty_times_at_once_is_one_document(self):
        for owner in (None, self.ann):
            results = at_once([lambda owner=owner: self.upsert(b"# Plan", owner)] * 20)
            outcomes = [each if isinstance(each, Exception) else each.outcome for each in results]
            self.assertEqual(Document.objects.filter(owner=owner).count(), 1, outcomes)
            self.assertEqual(outcomes.count("added"), 1)
            self.assertLessEqual(set(outcomes), {"added", "replaced", "unchanged"})

    def test_ten_versions_at_once_are_one_document_with_the_version_that_was_queued_last(self):
        results = at_once([lambda n=n: (n, self.upsert(b"# Version %d" % n, self.ann)) for n in range(10)])
        document = Document.objects.get()
        self.assertEqual({put.document.pk for _, put in results}, {document.pk})
        for _, put in sorted(results, key=lambda result: result[1].document.queue_position):
            documents.read_document(document.pk, put.replacement)
            last = put
        document.refresh_from_db()
        self.assertEqual(document.status, "ready")
        if last.replacement:
            self.assertEqual(document.sha256, last.replacement["sha256"])
        self.assertEqual(Passage.objects.values("document").distinct().count(), 1)

    def test_the_upload_form_sent_ten_times_at_once_is_one_document(self):
        def send():
            client = Client()
            client.force_login(User.objects.get(username="ann"))
            file = SimpleUploadedFile("plan.md", b"# Plan")
            return client.post(
                "/documents/add/", {"who": "me", "file": file}, headers={"Accept": "application/json"}
            ).status_code

        self.assertEqual(at_once([send] * 10), [201] * 10)
        self.assertEqual(Document.objects.get().owner, self.ann)

    def test_the_admin_form_sent_five_times_at_once_is_one_document(self):
        User.objects.create_superuser("root", password="words")

        def send():
            client = Client()
            client.force_login(User.objects.get(username="root"))
            file = SimpleUploadedFile("plan.md", b"# Plan")
            return client.post("/admin/ingestion/document/add/", {"upload": file}).status_code

        self.assertEqual(at_once([send] * 5), [302] * 5)
        self.assertEqual(Document.objects.count(), 1)

    def test_two_ingest_commands_at_once_make_one_document(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "plan.md").write_text("# Plan")
            with mock.patch("ingestion.management.commands.ingest.demand_migrations"):
                call = partial(call_command, "ingest", folder, "--everyone", stdout=mock.Mock())
                results = at_once([call] * 3)
        self.assertEqual(results, [None] * 3)
        self.assertEqual(Document.objects.get().status, "ready")


class IdentityTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.ann, self.bob = (User.objects.create_user(name) for name in ("ann", "bob"))

    def upsert(self, data, audience, **more):
        return documents.upsert(ContentFile(data), "plan.md", owner=self.ann, audience=audience, **more)

    def may_read(self, user):
        return Document.objects.visible_to(Principal(user.pk, "command")).exists()

    def test_the_constraint_refuses_a_second_row(self):
        first = self.upsert(b"# Plan", EVERYONE).document
        with self.assertRaises(IntegrityError), transaction.atomic():
            Document.objects.create(
                origin=first.origin, access_list=first.access_list, name=first.name, size=1
            )

    def test_another_owner_folder_or_name_is_another_document(self):
        self.upsert(b"# Plan", EVERYONE)
        self.assertEqual(self.upsert(b"# Plan", EVERYONE, folder="else").outcome, "added")
        bobs = documents.upsert(ContentFile(b"# Plan"), "plan.md", owner=self.bob, audience=EVERYONE)
        self.assertEqual((bobs.outcome, Document.objects.count()), ("added", 3))

    def hand_over(self, document):
        documents.transfer_ownership(document, self.bob)
        document.refresh_from_db()
        return document

    @pytest.mark.slow
    def test_a_former_owner_does_not_replace_a_transferred_document(self):
        for external_id in ("", "wiki:plan"):
            for forged in (b"# Plan", b"# Forged"):  # the same bytes would only change the readers
                with self.subTest(external_id=external_id, forged=forged):
                    Document.objects.all().delete()
                    first = self.upsert(b"# Plan", Audience(), external_id=external_id)
                    documents.read_document(first.document.pk)
                    handed = self.hand_over(first.document)
                    put = self.upsert(forged, EVERYONE, external_id=external_id)
                    self.assertEqual((put.outcome, put.document.owner), ("added", self.ann))
                    self.assertNotEqual(put.document.pk, handed.pk)
                    before = (handed.access_list_id, handed.audience_version, handed.status)
                    handed.refresh_from_db()
                    self.assertEqual((handed.access_list_id, handed.audience_version, handed.status), before)
                    self.assertFalse(last_queued_file(handed.pk))

    def test_a_transferred_document_with_a_namesake_is_replaced_by_neither_owners_upload(self):
        for external_id in ("", "wiki:plan"):
            with self.subTest(external_id=external_id):
                Document.objects.all().delete()
                handed = self.upsert(b"# Plan", Audience(), external_id=external_id).document
                twin = documents.upsert(
                    ContentFile(b"# Twin"), "plan.md", owner=self.bob, audience=Audience(),
                    external_id=external_id,
                ).document  # fmt: skip
                self.hand_over(handed)
                self.assertEqual(self.upsert(b"# Forged", EVERYONE, external_id=external_id).outcome, "added")
                again = documents.upsert(
                    ContentFile(b"# Two"), "plan.md", owner=self.bob, audience=Audience(),
                    external_id=external_id,
                )  # fmt: skip
                self.assertEqual((again.outcome, again.document.pk), ("replaced", twin.pk))

    def test_the_names_of_a_document_move_to_its_new_owner(self):
        for external_id in ("", "wiki:plan"):
            with self.subTest(external_id=external_id):
                Document.objects.all().delete()
                handed = self.hand_over(self.upsert(b"# Plan", Audience(), external_id=external_id).document)
                put = documents.upsert(
                    ContentFile(b"# New"), "plan.md", owner=self.bob, audience=EVERYONE,
                    external_id=external_id,
                )  # fmt: skip
                self.assertEqual((put.outcome, put.document.pk), ("replaced", handed.pk))

    def test_a_document_transferred_by_an_earlier_version_of_the_site_is_not_replaced(self):
        for external_id in ("", "wiki:plan"):
            with self.subTest(external_id=external_id):
                Document.objects.all().delete()
                handed = self.upsert(b"# Plan", Audience(), external_id=external_id).document
                Document.objects.filter(pk=handed.pk).update(owner=self.bob)
                for outcome in ("added", "replaced"):
                    put = self.upsert(f"# Forged, {outcome}".encode(), EVERYONE, external_id=external_id)
                    self.assertEqual(put.outcome, outcome)
                    self.assertNotEqual(put.document.pk, handed.pk)
                handed.refresh_from_db()
                self.assertFalse(audience_of(handed).everyone)

    def test_documents_of_deleted_accounts_stay_apart(self):
        self.upsert(b"# Plan", EVERYONE)
        documents.upsert(ContentFile(b"# Plan"), "plan.md", owner=self.bob, audience=EVERYONE)
        User.objects.all().delete()
        documents.upsert(ContentFile(b"# Plan"), "plan.md", owner=None, audience=EVERYONE)
        self.assertEqual(Document.objects.filter(owner=None).count(), 3)

    def test_readers_are_removed_at_once_and_added_with_the_new_contents(self):
        self.add("plan.md", b"# Draft", owner=self.ann, audience=Audience())
        put = self.upsert(b"# Final", EVERYONE)
        self.assertFalse(self.may_read(self.bob))
        documents.read_document(put.document.pk, put.replacement)
        self.assertTrue(self.may_read(self.bob))
        self.upsert(b"# Secret", Audience())
        self.assertFalse(self.may_read(self.bob))

    def test_new_readers_are_not_added_if_the_new_file_fails_or_the_owner_cancels(self):
        document = self.add("plan.md", b"# Draft", owner=self.ann, audience=Audience())
        failed = self.upsert(b"# Final", EVERYONE)
        with mock.patch("ingestion.documents.reading.read", side_effect=Unreadable("No.")):
            documents.read_document(document.pk, failed.replacement)
        self.assertFalse(self.may_read(self.bob))
        put = self.upsert(b"# Final", EVERYONE)
        set_audience(Document.objects.get(), Audience())
        documents.read_document(document.pk, put.replacement)
        self.assertEqual(Document.objects.get().version, 2)
        self.assertFalse(self.may_read(self.bob))

    def test_readers_confirmed_while_a_file_waits_take_precedence(self):
        document = self.add("plan.md", b"# Draft", owner=self.ann, audience=Audience())
        put = self.upsert(b"# Final", EVERYONE)
        # The current readers; the waiting file brings more.
        change_rights(self.ann, Document.objects.get(), Audience())
        documents.read_document(document.pk, put.replacement)
        self.assertFalse(self.may_read(self.bob))
        put = self.upsert(b"# More", EVERYONE)
        looked = Document.objects.get()
        documents.read_document(document.pk, put.replacement)
        self.assertTrue(self.may_read(self.bob))
        change_rights(self.ann, looked, Audience())  # from a page that was opened before the change
        self.assertFalse(self.may_read(self.bob))

    def test_a_file_is_queued_again_if_another_version_was_queued_after_it(self):
        document = self.add("plan.md", b"# Draft", owner=self.ann, audience=EVERYONE)
        first, second = self.upsert(b"# One", EVERYONE), self.upsert(b"# Two", EVERYONE)
        documents.read_document(document.pk, first.replacement)
        document.refresh_from_db()
        self.assertEqual((document.version, document.status), (2, "waiting"))  # waiting for the second file
        documents.remove_jobs(document, first.replacement)
        third = self.upsert(b"# One", EVERYONE)
        for put in (second, third):
            documents.read_document(document.pk, put.replacement)
        document.refresh_from_db()
        with document.file.open() as stored:
            self.assertEqual((third.outcome, stored.read()), ("replaced", b"# One"))
        self.assertEqual((document.version, document.status), (4, "ready"))

    def test_the_audience_of_the_last_version_applies(self):
        document = self.add("plan.md", b"# Draft", owner=self.ann, audience=Audience())
        wide, narrow = self.upsert(b"# One", EVERYONE), self.upsert(b"# Two", Audience())
        for put in (wide, narrow):
            documents.read_document(document.pk, put.replacement)
            self.assertFalse(self.may_read(self.bob))
        self.assertEqual(audience_of(Document.objects.get()), Audience())


@pytest.mark.slow
class MigrationTests(MediaMixin, TestCase):
    """The migration of rows from before the constraint, which have no origin."""

    def setUp(self):
        super().setUp()
        self.ann = User.objects.create_user("ann")
        self.principal = Principal(self.ann.pk, "command")
        for number in range(3):
            self.add(folder=str(number))
        Document.objects.update(origin=None, folder="")
        self.old, self.middle, self.new = Document.objects.order_by("pk")
        self.client.force_login(self.ann)

    def migrate(self):
        with self.assertLogs("ingestion.migrations.0011_document_identity", "WARNING") as logs:
            migration.merge_doubles(apps, None)
        return " ".join(logs.output)

    def test_duplicates_are_merged_into_the_newest_and_reported(self):
        said = self.migrate()
        self.assertEqual(Document.objects.get().pk, self.new.pk)
        self.assertEqual(Document.objects.get().origin, "shared")
        self.assertIn(f"{[self.middle.pk, self.old.pk]}", said)
        self.assertIn("Merged 2 documents into 1", said)
        self.assertEqual(set(Passage.objects.values_list("document_id", flat=True)), {self.new.pk})

    def test_no_citation_is_lost(self):
        conversation = Conversation.objects.create(owner=self.ann)
        message = Message.objects.create(conversation=conversation, position=0, role="assistant")
        Source.objects.create(
            message=message, document=self.old, document_version=1, passage_id=1, rank=1, label="guide.md",
            title="Leave", content="Five days.", score=1, found_by="words",
        )  # fmt: skip
        CitedName.objects.create(reader=self.ann, name=self.old.public_id, document=self.old.public_id)
        self.migrate()
        source = Source.objects.visible_to(self.principal).get()
        self.assertEqual((source.document_id, source.document_version), (self.new.pk, 0))
        self.assertEqual(CitedName.objects.get().document, self.new.public_id)
        for public_id in (self.old.public_id, self.middle.public_id, self.new.public_id):
            self.assertEqual(self.client.get(f"/content/{public_id}/guide.md").status_code, 200)
            self.assertEqual(self.client.get(f"/documents/{public_id}/").status_code, 200)

    def test_a_former_address_opens_nothing_without_the_right_to_read(self):
        self.migrate()
        Document.objects.update(access_list=access_list_for(Audience(), None))
        self.assertEqual(self.client.get(f"/content/{self.old.public_id}/guide.md").status_code, 404)
        self.assertEqual(FormerId.objects.count(), 2)

    def test_a_document_with_other_readers_stays_as_it_is(self):
        Document.objects.filter(pk=self.old.pk).update(access_list=access_list_for(Audience(), self.ann.pk))
        said = self.migrate()
        self.assertIn("1 documents share a name with a newer one", said)
        origins = Document.objects.order_by("pk").values_list("pk", "origin")
        self.assertEqual(list(origins), [(self.old.pk, None), (self.new.pk, "shared")])

    def test_a_document_that_was_never_readable_does_not_replace_a_readable_one(self):
        Document.objects.filter(pk=self.new.pk).update(version=0, status="failed")
        self.migrate()
        self.assertEqual(Document.objects.get().pk, self.middle.pk)
