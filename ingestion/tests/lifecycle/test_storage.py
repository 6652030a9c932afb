"""Files through Django's storage interface: in a folder, in memory, and in storages without paths."""

import io
import os
from pathlib import Path
from unittest import mock

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, Storage, default_storage
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.db import transaction
from django.test import SimpleTestCase, TestCase, override_settings

from chatsite.accounts.models import User
from ingestion import (
    documents,
    tasks,
)
from ingestion.models import Document
from ingestion.search.labels import content_address
from ingestion.storage import files
from ingestion.storage.ranged import RangedReader
from ingestion.tests import building
from ingestion.tests.media import MediaMixin, stored_bytes


class FolderTests(MediaMixin, SimpleTestCase):
    def below(self):
        return sorted(
            str(path.relative_to(self.media)) for path in Path(self.media).rglob("*") if path.is_file()
        )

    def test_a_file_is_complete_and_private_under_its_name(self):
        stored = files.store(ContentFile(b"words"), 5)
        path = Path(default_storage.path(stored.name))
        self.assertEqual((path.read_bytes(), stored.size, path.stat().st_mode & 0o777), (b"words", 5, 0o600))
        self.assertEqual(path.parent.stat().st_mode & 0o777, 0o700)

    def test_file_and_folders_are_synced_before_the_upload_is_acknowledged(self):
        synced = []
        with mock.patch.object(
            os, "fsync", side_effect=lambda number: synced.append(Path(f"/proc/self/fd/{number}").readlink())
        ):
            stored = files.store(ContentFile(b"words"), 5)
        folder = Path(default_storage.path(stored.name)).parent
        self.assertEqual(synced[1:], [folder, folder.parent, Path(self.media).resolve()])
        self.assertEqual(synced[0].parent, folder)

    def test_a_failed_write_leaves_no_file(self):
        with self.assertRaises(files.TooLarge):
            files.store(ContentFile(b"words"), 4)
        with mock.patch.object(os, "fsync", side_effect=OSError("full")), self.assertRaises(OSError):
            files.store(ContentFile(b"words"), 5)
        self.assertEqual(self.below(), [])

    def test_an_upload_on_disk_is_copied_and_not_moved(self):
        with TemporaryUploadedFile("a.txt", "text/plain", 5, "utf-8") as upload:
            upload.write(b"words")
            stored = files.store(upload, 5)
            self.assertEqual((upload.size, upload.closed), (5, False))
        self.assertEqual(Path(default_storage.path(stored.name)).read_bytes(), b"words")


class Pathless(Storage):
    """Files in memory, without a path."""

    def __init__(self):
        self.inner = InMemoryStorage()
        for name in ("_open", "_save", "delete", "exists", "listdir", "size", "get_modified_time"):
            if name not in type(self).__dict__:
                setattr(self, name, getattr(self.inner, name))


class Away(Pathless):
    """A storage whose library raises its own errors."""

    def open(self, name, mode="rb"):
        raise RuntimeError("connection refused")


class Undeletable(Pathless):
    """A storage that does not respond to deletions."""

    attempts = 0

    def delete(self, name):
        self.attempts += 1
        raise RuntimeError("timed out")


def stored_in(storage):
    backend = {"BACKEND": f"{__name__}.{storage.__name__}"}
    return override_settings(STORAGES=settings.STORAGES | {"default": backend})


@stored_in(Pathless)
class ElsewhereTests(MediaMixin, TestCase):
    def names(self, folder="documents"):
        try:
            folders, names = default_storage.listdir(folder)
        except FileNotFoundError:
            return []
        inner = [name for each in folders for name in self.names(f"{folder}/{each}")]
        return [*(f"{folder}/{name}" for name in names), *inner]

    def test_a_document_never_needs_a_path(self):
        document = self.add("a.pdf", building.pdf(["One."], ["Two."]))
        self.assertEqual((document.status, document.reason), ("ready", ""))
        self.assertEqual(stored_bytes(document), building.pdf(["One."], ["Two."]))
        image = files.page_image(document, 2)
        self.assertEqual(image[:4], b"\x89PNG")
        with mock.patch.object(files.process, "render") as render:
            self.assertEqual(files.page_image(document, 2), image)
        render.assert_not_called()
        self.assertEqual(len(self.names()), 2)
        with self.captureOnCommitCallbacks(execute=True):
            documents.delete_document(document)
        self.assertEqual(self.names(), [])
        self.assertEqual(list(Path(self.media).iterdir()), [])

    def test_a_new_file_replaces_the_old_one(self):
        document = self.add(data="Old words.")
        replacement = documents.replace_file(document, ContentFile(b"New words."))
        with self.captureOnCommitCallbacks(execute=True):
            documents.read_document(document.pk, replacement)
        self.assertEqual(self.names(), [replacement["name"]])

    def test_a_page_drawn_while_its_document_is_deleted_is_not_kept(self):
        document = self.add("a.pdf", building.pdf(["One."]))

        def deleted(path, page):
            files.remove(document.file.name)
            return b"\x89PNG"

        with mock.patch.object(files.process, "render", side_effect=deleted):
            files.page_image(document, 1)
        self.assertEqual(self.names(), [])

    def test_orphaned_files_are_found(self):
        kept, orphan = self.add(), files.store(ContentFile(b"new"), 100).name
        with mock.patch.object(tasks, "ORPHAN_AGE", -tasks.ORPHAN_AGE):
            tasks.remove_orphans(0)
        self.assertNotIn(orphan, self.names())
        self.assertEqual(self.names(), [kept.file.name])

    def test_an_orphan_that_cannot_be_removed_does_not_keep_the_others(self):
        stuck, *orphans = sorted(files.store(ContentFile(b"new"), 100).name for _ in range(6))
        asked = []

        def failing(name):
            asked.append(name)
            if name in unremovable:
                raise files.StorageFault
            remove(name)

        remove = files.remove
        with (
            mock.patch.object(tasks, "ORPHAN_AGE", -tasks.ORPHAN_AGE),
            mock.patch.object(files, "remove", failing),
        ):
            for unremovable in ({stuck, *orphans}, {stuck}):
                asked.clear()
                with self.assertRaises(files.StorageFault):
                    tasks.remove_orphans(0)
                self.assertEqual(len(asked), 3 if orphans[0] in unremovable else 6)
        self.assertEqual(self.names(), [stuck])

    def test_a_lost_file_is_reported_as_lost(self):
        document = self.add(read=False)
        files.remove(document.file.name)
        documents.read_document(document.pk)
        self.assertEqual(Document.objects.get(pk=document.pk).reason, documents.LOST)

    @stored_in(Away)
    def test_an_unavailable_storage_is_reported_for_downloads_and_uploads(self):
        self.client.force_login(owner := User.objects.create_user("ann"))
        document = self.add("a.md", owner=owner, read=False)
        with self.assertLogs("django.request", "ERROR"):
            reply = self.client.get(content_address(document.public_id, document.name))
        self.assertEqual(reply.status_code, 503)
        self.assertContains(reply, "does not respond", status_code=503)
        with (
            mock.patch.object(Pathless, "save", side_effect=RuntimeError, create=True),
            self.assertRaises(documents.UploadRefused) as caught,
            self.assertLogs("ingestion.documents", "ERROR"),
        ):
            self.add()
        self.assertEqual(caught.exception.message, documents.STORAGE_AWAY)

    @stored_in(Undeletable)
    def test_documents_are_deleted_although_the_storage_does_not_respond(self):
        added = [self.add("a.md", read=False), self.add("b.md", read=False)]
        later = []
        with (
            self.assertLogs("django", "ERROR") as logged,
            self.captureOnCommitCallbacks(execute=True),
            transaction.atomic(),
        ):
            documents.delete_documents(added)
            transaction.on_commit(lambda: later.append("done"))
        self.assertEqual(later, ["done"], "other callbacks of the transaction were lost")
        self.assertIn("does not respond", logged.output[0])
        self.assertEqual(Document.objects.count(), 0)
        self.assertEqual(default_storage.attempts, 1, "each attempt costs a timeout")

    @stored_in(Undeletable)
    def test_a_bucket_that_refuses_is_not_reported_as_one_that_does_not_respond(self):
        refusal = Exception("An error occurred")
        refusal.response = {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
        with (
            mock.patch.object(Undeletable, "delete", side_effect=refusal),
            self.assertRaisesMessage(files.StorageFault, "refused the request: AccessDenied"),
        ):
            files.remove("documents/aa/x")

    @stored_in(Undeletable)
    def test_a_failed_upload_waits_for_the_storage_only_once(self):
        default_storage.attempts = 0
        with (
            mock.patch.object(Pathless, "save", side_effect=RuntimeError, create=True),
            self.assertRaises(files.StorageFault),
        ):
            files.store(ContentFile(b"new"), 100)
        self.assertEqual(default_storage.attempts, 0)

    @stored_in(Away)
    def test_an_unavailable_storage_is_retried(self):
        document = self.add(read=False)
        with self.assertRaises(documents.TemporaryFailure):
            documents.read_document(document.pk)
        self.assertEqual(Document.objects.get(pk=document.pk).status, "waiting")


class RangedTests(SimpleTestCase):
    """Files in a bucket are requested from the position read, and only a part is kept in memory."""

    def setUp(self):
        self.data = bytes(range(256)) * 40
        self.asked, self.bodies = [], []
        self.reader = RangedReader(self.begin, len(self.data))

    def begin(self, position):
        self.asked.append(position)
        self.bodies.append(io.BytesIO(self.data[position:]))
        return self.bodies[-1]

    def test_sequential_reading_is_one_request(self):
        self.assertEqual(io.BufferedReader(self.reader, 100).read(), self.data)
        self.assertEqual(self.asked, [0])

    def test_seeking_ends_the_request_and_begins_another(self):
        file = io.BufferedReader(self.reader, 100)
        file.seek(5_000)
        self.assertEqual(file.read(10), self.data[5_000:5_010])
        file.seek(-20, io.SEEK_END)
        self.assertEqual((file.read(), file.read()), (self.data[-20:], b""))
        self.assertEqual(self.asked, [5_000, len(self.data) - 20])
        file.close()
        self.assertTrue(all(body.closed for body in self.bodies))

    def test_a_connection_that_breaks_is_replaced_by_one_that_begins_there(self):
        reader = io.BufferedReader(self.reader, 100)
        read = reader.read(150)
        self.bodies[-1].close()  # the next read raises
        self.assertEqual(read + reader.read(), self.data)
        self.assertEqual(self.asked, [0, 200])

    def test_an_object_that_ends_early_is_an_error_and_not_a_shorter_file(self):
        reader = RangedReader(self.begin, len(self.data) + 1)
        with self.assertRaises(OSError):
            io.BufferedReader(reader, 100).read()
