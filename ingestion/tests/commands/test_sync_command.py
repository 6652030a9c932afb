"""`manage.py sync`: documents follow a folder tree, with the rights defined in it."""

import hashlib
import os
import tempfile
import time
from io import StringIO
from pathlib import Path
from unittest import mock

from django.core.management import CommandError, call_command
from django.db import connection
from django.test import TestCase, override_settings
from procrastinate.contrib.django.models import ProcrastinateJob

from ingestion import documents as pipeline
from ingestion.management.commands.sync import SYNC_LOCK
from ingestion.models import Document, Passage
from ingestion.sources import mirror
from ingestion.tests.media import MediaMixin, forget_jobs

LONG_AGO = time.time() - 1_000


class SyncMixin(MediaMixin):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        forget_jobs()

    def put(self, path, text="Words.", age=0):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (LONG_AGO - age,) * 2)
        return file

    def sync(self, *options, now=False, folder=None):
        output = StringIO()
        with self.captureOnCommitCallbacks(execute=True):
            call_command(
                "sync", str(folder or self.root), *options, *(["--now"] if now else []), stdout=output
            )
        return output.getvalue().strip()

    def refused(self, *options, **more):
        """Run the command; return its output and its error."""
        output = StringIO()
        with self.captureOnCommitCallbacks(execute=True), self.assertRaises(CommandError) as caught:
            call_command("sync", str(more.get("folder", self.root)), *options, stdout=output)
        return f"{output.getvalue()}{caught.exception}"

    def paths(self):
        documents = Document.objects.order_by("folder", "name").values_list("folder", "name")
        return [f"{folder}/{name}".strip("/") for folder, name in documents]

    def texts(self):
        return sorted(Passage.objects.values_list("content", flat=True))


class MirrorTests(SyncMixin, TestCase):
    def test_files_become_documents_in_their_folders_and_names_may_repeat(self):
        self.put("a.md", "One.")
        self.put("b/a.md", "Two.")
        self.assertEqual(self.sync("--everyone", now=True), "2 new.")
        self.assertEqual((self.paths(), self.texts()), (["a.md", "b/a.md"], ["One.", "Two."]))
        self.assertEqual(ProcrastinateJob.objects.count(), 0)

    def test_an_unchanged_file_is_not_opened_again(self):
        self.put("a.md")
        self.sync("--everyone")
        with mock.patch("ingestion.sources.mirror.open_below") as opened:
            self.assertEqual(self.sync("--everyone"), "1 unchanged.")
        opened.assert_not_called()

    def test_a_file_that_is_only_newer_is_compared_and_left_alone(self):
        self.put("a.md")
        self.sync("--everyone")
        self.put("a.md", age=-5)
        self.assertEqual(self.sync("--everyone"), "1 unchanged.")
        self.assertEqual(Document.objects.get().version, 0)
        with mock.patch("ingestion.sources.mirror.open_below") as opened:
            self.sync("--everyone")
        opened.assert_not_called()

    def test_a_file_changed_moments_ago_is_compared_again(self):
        file = self.put("a.md", "One.")
        os.utime(file)
        self.sync("--everyone", now=True)
        status = file.stat()
        file.write_text("Two.")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertEqual(self.sync("--everyone", now=True), "1 changed.")
        self.assertEqual(self.texts(), ["Two."])

    def test_new_changed_and_removed_files_are_followed(self):
        self.put("a.md", "One.")
        self.put("b.md", "Two.")
        self.sync("--everyone", now=True)
        kept = Document.objects.get(name="a.md")
        self.put("a.md", "One, changed.")
        (self.root / "b.md").unlink()
        self.put("c.md", "Three.")
        self.assertEqual(self.sync("--everyone", now=True), "1 new; 1 changed; 1 gone.")
        self.assertEqual((self.paths(), self.texts()), (["a.md", "c.md"], ["One, changed.", "Three."]))
        kept.refresh_from_db()
        self.assertEqual(kept.version, 2)
        self.assertEqual(len([path for path in Path(self.media).rglob("*") if path.is_file()]), 2)

    def test_a_change_that_was_reverted_before_its_reading_is_reverted(self):
        self.put("a.md", "One.")
        self.sync("--everyone", now=True)
        for text in ("Two.", "One."):
            self.put("a.md", text, age=len(text) + ord(text[0]))
            self.assertEqual(self.sync("--everyone"), "1 changed.")
        for job in ProcrastinateJob.objects.order_by("-priority", "pk"):
            pipeline.read_document(**job.args)
        self.assertEqual(self.texts(), ["One."])

    def test_without_the_option_now_the_workers_read_the_files(self):
        self.put("a.md")
        self.sync("--everyone")
        self.assertEqual(Document.objects.get().status, "waiting")
        self.assertEqual(ProcrastinateJob.objects.count(), 1)

    def test_other_documents_and_sources_stay_unchanged(self):
        self.add("own.md")
        with tempfile.TemporaryDirectory() as other:
            Path(other, "a.md").write_text("Words.")
            self.sync("--everyone", folder=other)
            self.put("a.md")
            self.sync("--everyone")
            (self.root / "a.md").unlink()
            self.assertEqual(self.sync("--everyone", "--allow-empty"), "1 gone.")
        self.assertEqual(self.paths(), ["a.md", "own.md"])

    def test_a_dry_run_writes_nothing(self):
        self.put("a.md")
        self.assertEqual(self.sync("--everyone", "--dry-run"), "new: a.md\nNothing is done. 1 new.")
        self.assertEqual(Document.objects.count(), 0)

    def test_the_prefix_is_a_folder_above_and_may_change(self):
        self.put("b/a.md")
        self.sync("--everyone", "--prefix", "Handbook")
        self.assertEqual(self.paths(), ["Handbook/b/a.md"])
        self.sync("--everyone", "--prefix", "Rules")
        self.assertEqual((self.paths(), Document.objects.get().version), (["Rules/b/a.md"], 0))

    def test_a_document_that_was_deleted_on_the_site_comes_back(self):
        self.put("a.md")
        self.sync("--everyone")
        pipeline.delete_document(Document.objects.get())
        self.assertEqual(self.sync("--everyone"), "1 new.")

    def test_a_document_deleted_on_the_site_meanwhile_does_not_end_the_command(self):
        for name in ("changed.md", "stamped.md", "last.md"):
            self.put(name, "One.")
        self.sync("--everyone", now=True)
        self.put("changed.md", "Two, changed.")
        self.put("last.md", "Three.")
        self.put("stamped.md", "One.", age=-5)
        compare = mirror.compare

        def meanwhile(source):
            found = compare(source)
            for document in Document.objects.exclude(name="last.md"):
                pipeline.delete_document(document)
            return found

        with mock.patch.object(mirror, "compare", meanwhile):
            self.assertEqual(self.sync("--everyone", now=True), "2 changed; 1 unchanged.")
        self.assertEqual(self.texts(), ["Three.", "Two, changed."])
        for job in ProcrastinateJob.objects.all():
            pipeline.read_document(**job.args)
        self.assertEqual(len([path for path in Path(self.media).rglob("*") if path.is_file()]), 2)
        self.assertEqual(self.sync("--everyone", now=True), "1 new; 2 unchanged.")


class GuardTests(SyncMixin, TestCase):
    def test_an_empty_folder_deletes_nothing_without_the_option(self):
        file = self.put("a.md")
        self.sync("--everyone")
        file.unlink()
        self.assertIn("add --allow-empty", self.refused("--everyone"))
        self.assertEqual(Document.objects.count(), 1)
        self.assertEqual(self.sync("--everyone", "--allow-empty"), "1 gone.")

    def test_if_most_files_are_gone_nothing_changes_without_the_option(self):
        files = [self.put(f"{number}.md") for number in range(14)]
        self.sync("--everyone")
        for file in files[:11]:
            file.unlink()
        self.assertIn("11 of 14 known files are gone", self.refused("--everyone"))
        self.assertEqual(Document.objects.count(), 14)
        self.assertEqual(self.sync("--everyone", "--most-gone", "100"), "11 gone; 3 unchanged.")

    def test_a_folder_that_is_missing_is_an_error(self):
        self.assertIn("cannot be opened", self.refused("--everyone", folder=self.root / "no"))
        loop = self.root / "loop"
        loop.symlink_to(loop)
        self.assertIn(
            "loop cannot be opened: Too many levels of symbolic links.",
            self.refused("--everyone", folder=loop),
        )

    def test_links_and_hidden_files_are_skipped(self):
        self.put("a.md")
        self.put(".hidden/b.md")
        self.put(".c.md")
        with tempfile.TemporaryDirectory() as outside:
            Path(outside, "secret.md").write_text("Secret.")
            (self.root / "link.md").symlink_to(Path(outside, "secret.md"))
            (self.root / "folder").symlink_to(outside)
            self.assertEqual(
                self.sync("--everyone", now=True), "1 new; 1 hidden file skipped; 2 links skipped."
            )
        self.assertEqual(self.texts(), ["Words."])

    def test_a_folder_replaced_by_a_link_is_not_followed(self):
        self.put("b/a.md")
        with tempfile.TemporaryDirectory() as outside:
            Path(outside, "a.md").write_text("Secret.")

            def swapped(differences, options):
                (self.root / "b").rename(self.root / ".b")
                (self.root / "b").symlink_to(outside)

            with mock.patch("ingestion.management.commands.sync._guard", side_effect=swapped):
                self.assertIn("was moved or replaced meanwhile", self.refused("--everyone"))
        self.assertEqual(Document.objects.count(), 0)

    def test_the_command_works_without_proc(self):
        """macOS has no /proc."""
        self.put("b/a.md")
        with mock.patch.object(Path, "readlink", side_effect=FileNotFoundError):
            self.assertEqual(self.sync("--everyone", now=True), "1 new.")

    def test_a_named_pipe_does_not_block_the_command(self):
        os.mkfifo(self.root / "pipe.md")
        self.assertEqual(self.sync("--everyone"), "No files.")

    @override_settings(DOCUMENT_MAX_BYTES=10)
    def test_files_that_cannot_be_added_are_reported_and_the_rest_is_done(self):
        self.put("a.md")
        self.put("large.md", "x" * 11)
        (self.root / os.fsdecode(b"\xff.md")).write_text("Words.")
        said = self.refused("--everyone")
        self.assertIn("large.md: The file is larger than", said)
        self.assertIn("Its name is not UTF-8.", said)
        self.assertEqual(self.paths(), ["a.md"])

    def test_an_unreadable_file_is_reported_at_each_run(self):
        self.put("a.pdf", "no PDF")
        self.put("b.md")
        self.refused("--everyone", "--now")
        self.assertEqual(self.sync("--everyone"), "2 unchanged; 1 of these failed.")

    def test_a_folder_that_cannot_be_listed_does_not_count_as_removed(self):
        self.put("a.md")
        self.put("b/a.md")
        self.sync("--everyone")
        scandir = os.scandir

        def closed(path):
            if Path(path).name == "b":
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        with mock.patch.object(os, "scandir", closed):
            self.assertIn("b: It cannot be opened: Permission denied.", self.refused("--everyone"))
        self.assertEqual(self.paths(), ["a.md", "b/a.md"])

    def test_a_root_that_cannot_be_listed_is_not_called_empty(self):
        self.put("a.md")
        self.sync("--everyone")
        refusal = PermissionError(13, "Permission denied", str(self.root))
        with mock.patch.object(os, "scandir", side_effect=refusal):
            self.assertEqual(
                self.refused("--everyone"),
                "The folder could not be read, and nothing was done. It cannot be opened: Permission denied.",
            )

    def test_two_syncs_of_one_source_at_a_time_are_refused(self):
        other = connection.copy()
        self.addCleanup(other.close)
        key = int.from_bytes(hashlib.sha256(str(self.root).encode()).digest()[:4], signed=True)
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [SYNC_LOCK, key])
            self.assertIn("is already being synchronised", self.refused("--everyone"))
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [SYNC_LOCK, key])
        self.assertEqual(self.sync("--everyone"), "No files.")
