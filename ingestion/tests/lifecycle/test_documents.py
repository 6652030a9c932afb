"""A document from its file to its passages, and its deletion."""

from pathlib import Path
from unittest import mock

from django.core.files.base import ContentFile
from django.db import IntegrityError, OperationalError, transaction
from django.test import TestCase, override_settings
from django.utils import translation
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import User
from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.embedding import EmbeddingError
from ingestion.file_names import UploadRefused
from ingestion.indexing import reading, replacing
from ingestion.models import Document, Passage, PreparedVector, Vector
from ingestion.parsing.formats import format_names
from ingestion.reasons import in_words
from ingestion.storage import files
from ingestion.tests import building
from ingestion.tests.media import EVERYONE, MediaMixin, forget_jobs, stored_bytes


class Fault(Exception):
    pass


class PipelineTests(MediaMixin, TestCase):
    def files(self):
        return sorted(path for path in Path(self.media).rglob("*") if path.is_file())

    def texts(self, document):
        return list(Passage.objects.filter(document=document).values_list("content", flat=True))

    def test_a_document_is_read_into_passages_and_vectors(self):
        document = self.add(
            "staff-guide.pdf", building.pdf(["One."], ["Two."]), folder="a/b", category="rules"
        )
        self.assertEqual((document.status, document.reason, document.version), ("ready", "", 1))
        self.assertEqual((document.title, document.page_count), ("Staff guide", 2))
        self.assertEqual((document.folder, document.category), ("a/b", "rules"))
        passages = Passage.objects.filter(document=document).values_list("anchor", "page", "content")
        self.assertEqual(list(passages), [("page=1", 1, "One."), ("page=2", 2, "Two.")])
        self.assertEqual(Vector.objects.filter(document=document).count(), 2)

    def test_the_stored_file_has_a_random_name(self):
        document = self.add("salaries.md", "# Salaries\n\nText.")
        (path,) = self.files()
        self.assertNotIn("salaries", str(path))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(path.read_bytes(), stored_bytes(document))

    def test_a_document_and_its_job_commit_together(self):
        forget_jobs()
        with self.assertRaises(Fault), transaction.atomic():
            self.add(read=False)
            raise Fault
        self.assertEqual((Document.objects.count(), ProcrastinateJob.objects.count()), (0, 0))
        document = self.add(read=False)
        job = ProcrastinateJob.objects.get()
        self.assertEqual((job.task_name, job.args["document_id"]), ("ingestion.read", document.pk))

    def test_a_failure_to_queue_leaves_neither_file_nor_document(self):
        with mock.patch("ingestion.document_identity.enqueue", side_effect=Fault), self.assertRaises(Fault):
            self.add()
        self.assertEqual((Document.objects.count(), self.files()), (0, []))

    def test_a_finished_document_is_not_read_again(self):
        document = self.add()
        with mock.patch.object(reading, "read") as read:
            documents.read_document(document.pk)
            documents.read_document(document.pk + 1)
        read.assert_not_called()

    def test_reading_again_replaces_all_passages(self):
        document = self.add()
        documents.retry(document)
        document.refresh_from_db()
        self.assertEqual((document.status, document.version), ("waiting", 1))
        self.assertEqual(len(self.texts(document)), 1)
        documents.read_document(document.pk)
        document.refresh_from_db()
        self.assertEqual((document.status, document.version, len(self.texts(document))), ("ready", 2, 1))

    def test_a_new_file_replaces_the_old_one_after_it_was_read(self):
        document = self.add(data="Old words.")
        replacement = documents.replace_file(document, ContentFile(b"New words."))
        self.assertEqual(self.texts(document), ["Old words."])
        self.assertEqual(stored_bytes(document), b"Old words.")
        with self.captureOnCommitCallbacks(execute=True):
            documents.read_document(document.pk, replacement)
        document.refresh_from_db()
        self.assertEqual((self.texts(document), document.version, document.size), (["New words."], 2, 10))
        self.assertEqual([path.read_bytes() for path in self.files()], [b"New words."])

    def test_an_unreadable_new_file_leaves_the_old_one_in_place(self):
        document = self.add(data="Old words.")
        documents.read_document(document.pk, documents.replace_file(document, ContentFile(b"")))
        document.refresh_from_db()
        self.assertEqual((document.status, document.version), ("failed", 1))
        self.assertEqual(
            document.reason, "The new file was not accepted; the former one remains. The file is empty."
        )
        self.assertEqual((self.texts(document), len(self.files())), (["Old words."], 1))

    def test_the_list_of_readable_formats_is_stored_whole_so_that_it_is_translated(self):
        document = self.add("logo.psd", data="8BPS")
        reason = Document.objects.get(pk=document.pk).reason
        self.assertTrue(reason.endswith(f"{format_names()[-1]}."), reason)
        with translation.override("de"):
            self.assertIn("können nicht gelesen werden", in_words(reason))

    def test_a_replacement_finished_before_a_crash_is_not_repeated(self):
        document = self.add(data="Old words.")
        replacement = documents.replace_file(document, ContentFile(b"New words."))
        documents.read_document(document.pk, replacement)
        documents.read_document(document.pk, replacement)
        document.refresh_from_db()
        self.assertEqual((document.status, document.version), ("ready", 2))

    def test_a_failing_swap_leaves_everything_unchanged(self):
        document = self.add(data="Old words.")
        replacement = documents.replace_file(document, ContentFile(b"New words."))
        with (
            mock.patch.object(reading, "write_passages", side_effect=self.half_written),
            self.assertLogs("ingestion.documents", "ERROR"),
        ):
            documents.read_document(document.pk, replacement)
        document.refresh_from_db()
        self.assertEqual(
            (self.texts(document), document.version, document.status), (["Old words."], 1, "failed")
        )

    def half_written(self, document, passages, prepared):
        Passage.objects.filter(document=document).delete()
        raise Fault

    def test_the_fault_of_a_file_becomes_its_reason(self):
        document = self.add("a.pdf", b"")
        self.assertEqual((document.status, document.reason), ("failed", "The file is empty."))
        unknown = self.add("movie.xyz", b"data")
        self.assertEqual(unknown.status, "failed")
        self.assertTrue(unknown.reason.startswith("Files ending in .xyz cannot be read."))
        self.assertEqual(Passage.objects.count(), 0)

    def test_a_fault_of_the_environment_is_retried(self):
        for error in (OperationalError("gone"), EmbeddingError("The service is away.", temporary=True)):
            document = self.add(f"{type(error).__name__}.md", read=False)
            with (
                mock.patch.object(reading, "read", side_effect=error),
                self.assertRaises(documents.TemporaryFailure),
            ):
                documents.read_document(document.pk)
            document.refresh_from_db()
            self.assertEqual(document.status, "waiting")
            self.assertNotIn("gone", document.reason)
            documents.read_document(document.pk)
            document.refresh_from_db()
            self.assertEqual((document.status, document.reason), ("ready", ""))

    def test_an_unavailable_database_before_or_after_reading_is_retried(self):
        gone = OperationalError("gone")
        for where in ("_reading_lock", "_to_read", "_fail"):
            document = self.add(f"{where}.pdf", b"", read=False)
            with (
                self.subTest(where),
                mock.patch.object(documents, where, side_effect=gone),
                self.assertRaises(documents.TemporaryFailure) as raised,
            ):
                documents.read_document(document.pk)
            self.assertEqual(str(raised.exception), documents.BROKEN)
            documents.read_document(document.pk)
            document.refresh_from_db()
            self.assertEqual((document.status, document.reason), ("failed", "The file is empty."))

    def test_an_internal_error_is_not_disclosed_in_the_reason(self):
        document = self.add(read=False)
        with (
            mock.patch.object(reading, "read", side_effect=Fault("SELECT secret")),
            self.assertLogs("ingestion.documents", "ERROR"),
        ):
            documents.read_document(document.pk)
        document.refresh_from_db()
        self.assertEqual((document.status, document.reason), ("failed", documents.BROKEN))

    def test_a_lost_file_is_reported_as_lost(self):
        document = self.add(read=False)
        files.remove(document.file.name)
        documents.read_document(document.pk)
        document.refresh_from_db()
        self.assertEqual((document.status, document.reason), ("failed", documents.LOST))

    def test_deleting_removes_rows_vectors_file_and_page_images(self):
        document = self.add("a.pdf", building.pdf(["One."]))
        other = self.add()
        files.page_image(document, 1)
        self.assertEqual(len(self.files()), 3)
        with self.captureOnCommitCallbacks(execute=True):
            documents.delete_document(document)
            documents.delete_document(document)
        self.assertEqual(list(Document.objects.all()), [other])
        self.assertEqual(Passage.objects.exclude(document=other).count(), 0)
        self.assertEqual(Vector.objects.exclude(document=other).count(), 0)
        self.assertEqual(len(self.files()), 1)

    def test_the_media_type_is_that_of_the_file_in_use(self):
        owner = User.objects.create(username="ada")

        def replaced(name, data):
            put = documents.upsert(
                ContentFile(data), name, owner=owner, audience=EVERYONE, replaces=Document.objects.get()
            )
            waiting = Document.objects.get()
            documents.read_document(waiting.pk, put.replacement)
            forget_jobs()
            return waiting, Document.objects.get()

        self.add("rules.md", "# Leave\n\nFive days.", owner=owner)
        with self.subTest("a file of another format that cannot be read"):
            waiting, document = replaced("rules.pdf", b"%PDF-1.7 cut")
            self.assertEqual((waiting.name, waiting.media_type), ("rules.pdf", "text/markdown"))
            self.assertEqual((document.status, document.media_type), ("failed", "text/markdown"))
        with self.subTest("the former file is read again as what it is"):
            documents.retry(document)
            documents.read_document(document.pk)
            document = Document.objects.get()
            self.assertEqual((document.status, document.version), ("ready", 2), document.reason)
        with self.subTest("a file of another format that can be read"):
            waiting, document = replaced("rules.pdf", building.pdf(["Six days."]))
            self.assertEqual(waiting.media_type, "text/markdown")
            self.assertEqual((document.status, document.media_type), ("ready", "application/pdf"))
            self.assertEqual(self.texts(document), ["Six days."])
        with self.subTest("the same file again, while the former one of that format is queued"):
            first, again = (
                documents.upsert(
                    ContentFile(b"Seven days."),
                    "rules.txt",
                    owner=owner,
                    audience=EVERYONE,
                    replaces=document,
                )
                for _ in range(2)
            )
            self.assertEqual((first.outcome, again.outcome), ("replaced", "unchanged"))

    def test_a_file_for_a_deleted_document_becomes_no_new_document(self):
        owner = User.objects.create(username="ada")
        document = self.add("rules.md", "# Leave\n\nFive days.", owner=owner)
        documents.delete_document(Document.objects.get())
        before = self.files()
        with self.assertRaisesMessage(UploadRefused, "was deleted or changed its owner meanwhile"):
            documents.upsert(
                ContentFile(b"Six days."), "rules.md", owner=owner, audience=EVERYONE, replaces=document
            )
        self.assertFalse(Document.objects.exists())
        self.assertEqual(self.files(), before)

    def test_a_document_deleted_while_it_is_read_leaves_nothing(self):
        document = self.add(read=False)
        prepare = reading.prepare

        def deleted_meanwhile(*arguments):
            prepared = prepare(*arguments)
            documents.delete_document(document)
            return prepared

        with mock.patch.object(reading, "prepare", side_effect=deleted_meanwhile):
            documents.read_document(document.pk)
        self.assertEqual((Document.objects.count(), Passage.objects.count()), (0, 0))
        self.assertEqual(PreparedVector.objects.count(), 0)

    def read_and_deleted(self, document, owner, name, *, fault=None):
        """The log lines when the document is deleted just before its reading calls the function `name`."""
        original = getattr(owner, name)

        def deleted_before(*arguments, **named):
            documents.delete_document(document)
            if fault:
                raise fault
            return original(*arguments, **named)

        with (
            self.captureOnCommitCallbacks(execute=True),
            mock.patch.object(owner, name, deleted_before),
            self.assertLogs("ingestion", "INFO") as logged,
        ):
            documents.read_document(document.pk)
        return [(record.levelname, record.getMessage(), record.exc_info) for record in logged.records]

    def test_deletion_during_reading_logs_one_line_and_no_error(self):
        line = ("INFO", "A document was deleted while it was read.", None)
        for owner, name, fault in (
            (reading, "prepare", IntegrityError()),
            (replacing, "_store_prepared", None),
            (reading, "prepare", files.StorageFault()),
        ):
            with self.subTest(name, fault=fault):
                document = self.add(read=False)
                self.assertEqual(self.read_and_deleted(document, owner, name, fault=fault), [line])
                self.assertEqual(self.files(), [])

    def test_deletion_before_the_vectors_are_stored_violates_no_constraint(self):
        document = self.add(read=False)
        with mock.patch.object(replacing, "copy_vectors") as copied:
            self.read_and_deleted(document, replacing, "_store_prepared")
        copied.assert_not_called()

    @override_settings(DOCUMENT_MAX_BYTES=1_000_000)
    def test_a_file_that_is_too_large_is_refused_and_not_kept(self):
        with self.assertRaises(documents.UploadRefused) as caught:
            self.add(data=b"x" * 1_000_001)
        self.assertEqual(caught.exception.code, "too_large")
        self.assertEqual(caught.exception.message, "The file is larger than 1 MB and was not accepted.")
        self.assertEqual((self.files(), Document.objects.count()), ([], 0))

    def test_names_lose_paths_and_control_characters(self):
        names = {
            "../../etc/passwd.txt": "passwd.txt",
            "C:\\temp\\a.txt": "a.txt",
            "a\x00b\n.txt": "ab .txt",
            "x" * 300 + ".txt": "x" * 196 + ".txt",
        }
        for given, kept in names.items():
            self.assertEqual(self.add(given, read=False).name, kept)
        for given in ("", "..", "a/", "\x00"):
            with self.assertRaises(documents.UploadRefused):
                self.add(given, read=False)

    def test_folders_lose_empty_and_upward_steps(self):
        self.assertEqual(self.add(folder="/a/../b//./c d/", read=False).folder, "a/b/c d")

    def test_the_owner_may_read_added_documents(self):
        owner = User.objects.create(username="owner")
        document = self.add(owner=owner, audience=Audience(), read=False)
        self.assertEqual(list(document.access_list.entries.values_list("user", "group")), [(owner.pk, None)])

    def test_the_last_embedding_progress_is_written_at_once(self):
        document = self.add(read=False)
        progress = reading._Progress(document.pk)
        for done, written in ((0, 0), (1, 0), (3, 3)):
            progress(Document.Status.INDEXING, done, 3)
            self.assertEqual(Document.objects.get(pk=document.pk).progress_done, written)

    def test_intermediate_states_are_written_as_they_occur(self):
        seen = []
        document = self.add("a.pdf", building.pdf(["One."], ["Two."]), read=False)
        update = reading._Progress.__call__

        def told(progress, status, done, total):
            update(progress, status, done, total)
            seen.append(Document.objects.values_list("status", flat=True).get(pk=document.pk))

        with mock.patch.object(reading._Progress, "__call__", told):
            documents.read_document(document.pk)
        self.assertEqual(list(dict.fromkeys(seen)), ["reading", "indexing"])
