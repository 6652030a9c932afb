"""Readings that fail at their end, or while another one is requested: no accepted file is lost."""

from unittest import mock

from django.core.files.base import ContentFile
from django.db import OperationalError
from django.test import TestCase
from procrastinate.contrib.django.models import ProcrastinateJob

from ingestion import documents
from ingestion.documents import upsert
from ingestion.indexing import reading
from ingestion.management.progress import read_now
from ingestion.models import Document
from ingestion.storage import files
from ingestion.tests.media import EVERYONE, MediaMixin, forget_jobs, stored_bytes


class FaultsAtTheEndTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.document = self.add(data="Old words.")

    def replacement(self, data=b"New words."):
        return documents.replace_file(self.document, ContentFile(data))

    def state(self):
        self.document.refresh_from_db()
        return self.document.status, self.document.version, stored_bytes(self.document)

    def test_a_former_file_that_cannot_be_removed_does_not_affect_the_new_one(self):
        replacement = self.replacement()
        with (
            mock.patch.object(files, "remove", side_effect=files.StorageFault),
            self.assertLogs("django.test", "ERROR"),
            self.captureOnCommitCallbacks(execute=True),
        ):
            documents.read_document(self.document.pk, replacement)
        self.assertEqual(self.state(), ("ready", 2, b"New words."))

    def lost_reply(self, replacement):
        """The swap is committed, but the connection breaks before PostgreSQL acknowledges it."""
        swap = reading._swap

        def swapped(*arguments):
            swap(*arguments)
            raise OperationalError("the connection is lost")

        with mock.patch.object(reading, "_swap", swapped), self.assertRaises(documents.TemporaryFailure):
            documents.read_document(self.document.pk, replacement)

    def test_a_commit_with_a_lost_reply_counts_even_at_the_last_attempt(self):
        replacement = self.replacement()
        self.lost_reply(replacement)
        self.assertEqual(self.state(), ("ready", 2, b"New words."))
        documents.give_up(self.document.pk, replacement)
        self.assertEqual(self.state(), ("ready", 2, b"New words."))

    def test_a_commit_with_a_lost_reply_counts_for_a_repeated_reading(self):
        documents.retry(self.document)
        self.lost_reply(None)
        documents.give_up(self.document.pk)
        self.assertEqual(self.state(), ("ready", 2, b"Old words."))

    def test_the_loser_of_a_race_for_one_file_does_not_remove_it(self):
        replacement = self.replacement()
        prepare = reading.prepare

        def overtaken(*arguments):
            prepared = prepare(*arguments)
            Document.objects.filter(pk=self.document.pk).update(version=2, file=replacement["name"])
            return prepared

        with (
            mock.patch.object(reading, "prepare", overtaken),
            self.captureOnCommitCallbacks(execute=True),
        ):
            documents.read_document(self.document.pk, replacement)
        self.assertEqual(self.state()[1:], (2, b"New words."))

    def test_a_command_keeps_a_reading_requested_meanwhile(self):
        first = self.replacement()
        read = reading.read

        def meanwhile(*arguments):
            read(*arguments)
            self.later = self.replacement(b"Newer words.")

        with mock.patch.object(reading, "read", meanwhile):
            read_now(self.document, first)
        own = ProcrastinateJob.objects.filter(status="todo", args__document_id=self.document.pk)
        (job,) = own.exclude(args__replacement=None)
        self.assertEqual(job.args["replacement"], self.later)

    def test_a_repeated_reading_requested_meanwhile_is_kept(self):
        documents.retry(self.document)
        read = reading.read

        def meanwhile(*arguments):
            read(*arguments)
            documents.retry(self.document)

        with mock.patch.object(reading, "read", meanwhile):
            read_now(self.document)
        self.document.refresh_from_db()
        self.assertEqual(self.document.status, "waiting")
        self.assertTrue(ProcrastinateJob.objects.filter(status="todo").exists())

    def test_the_last_of_several_files_stays(self):
        given = []
        for data in (b"New words.", b"Old words."):
            put = upsert(ContentFile(data), "guide.md", owner=None, audience=EVERYONE)
            self.assertEqual((put.document, put.outcome), (self.document, "replaced"))
            given.append(put.replacement)
        for replacement in given:
            documents.read_document(self.document.pk, replacement)
        self.assertEqual(self.state(), ("ready", 3, b"Old words."))
        put = upsert(ContentFile(b"Old words."), "guide.md", owner=None, audience=EVERYONE)
        self.assertEqual(put.outcome, "unchanged")

    def test_a_file_that_a_later_one_has_replaced_fails_nothing(self):
        first, second = self.replacement(), self.replacement(b"Newer words.")
        with self.captureOnCommitCallbacks(execute=True):
            read_now(self.document, first)
            read_now(self.document, second)
        read_now(self.document, first)
        self.assertEqual(self.state(), ("ready", 3, b"Newer words."))
        documents.retry(self.document)
        read_now(self.document, first)
        self.assertEqual(self.document.reason, "")
        read_now(self.document)
        self.assertEqual(self.state(), ("ready", 4, b"Newer words."))

    def test_a_lost_new_file_is_reported_as_lost(self):
        forget_jobs()
        replacement = self.replacement()
        files.remove(str(replacement["name"]))
        read_now(self.document, replacement)
        self.assertEqual(self.state(), ("failed", 1, b"Old words."))
        self.assertIn(documents.LOST, self.document.reason)
