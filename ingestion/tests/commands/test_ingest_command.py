"""`manage.py ingest`: files and folders, rights, summary and exit status."""

import errno
import io
import os
import tempfile
from pathlib import Path
from unittest import mock

from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import TestCase
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import User
from ingestion import documents
from ingestion.access.lists import (
    Audience,
    audience_of,
)
from ingestion.indexing import reading
from ingestion.models import Document, Passage
from ingestion.tests import building
from ingestion.tests.media import MediaMixin


class IngestTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, data="# Leave\n\nFive days."):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def ingest(self, *arguments):
        out = io.StringIO()
        try:
            call_command("ingest", *map(str, arguments), stdout=out)
        finally:
            self.output = out.getvalue()
        return self.output

    def test_all_files_of_a_folder_are_ingested_and_ready(self):
        self.write("a.md")
        self.write("deep/er/b.pdf", building.pdf(["One."], ["Two."]))
        self.write(".hidden.md")
        self.write(".git/config.md")
        output = self.ingest(self.folder, "--everyone", "--category", "rules")
        self.assertEqual(output, "2 documents ready, 3 passages; 2 hidden files skipped.\n")
        self.assertEqual(
            list(Document.objects.order_by("name").values_list("folder", "name", "status", "category")),
            [("", "a.md", "ready", "rules"), ("deep/er", "b.pdf", "ready", "rules")],
        )
        ours = list(Document.objects.values_list("pk", flat=True))
        jobs = ProcrastinateJob.objects.filter(status="todo", args__document_id__in=ours)
        self.assertFalse(jobs.exists())

    def test_no_symbolic_link_in_a_folder_is_followed(self):
        self.write("in/a.md")
        secret = self.write("secret/plan.md", "# The secret plan")
        (self.folder / "in" / "link.md").symlink_to(secret)
        (self.folder / "in" / "folder").symlink_to(secret.parent)
        output = self.ingest(self.folder / "in", "--everyone")
        self.assertIn("1 document ready, 1 passage; 2 symbolic links not followed.\n", output)
        self.assertIn("link.md: This is a symbolic link. Give its target instead.", output)
        self.assertEqual(Document.objects.get().name, "a.md")
        named = self.folder / "named.md"
        named.symlink_to(secret)
        self.ingest(named, "--everyone")
        self.assertTrue(Document.objects.filter(name="named.md").exists(), "the operator named it")

    def test_a_named_pipe_does_not_block_the_command(self):
        os.mkfifo(self.folder / "pipe.md")
        for given in (self.folder, self.folder / "pipe.md"):
            with self.assertRaises(CommandError):
                self.ingest(given, self.write("a.md"), "--everyone")
            self.assertIn("pipe.md: It cannot be opened: ", self.output)
            self.assertIn("is not a regular file.", self.output.lower())
        self.assertEqual(Document.objects.get().name, "a.md")

    def test_a_bad_file_is_reported_and_the_next_proceeds(self):
        self.write("a.pdf", b"")
        self.write("b.xyz", b"?")
        self.write("c.md")
        with self.assertRaisesMessage(CommandError, "3 of 4 files failed; see above."):
            self.ingest(self.folder, self.folder / "nothing.md", "--everyone")
        self.assertIn("1 document ready, 1 passage; 3 failed.", self.output)
        self.assertIn("a.pdf: The file is empty.", self.output)
        self.assertIn("b.xyz: Files ending in .xyz cannot be read.", self.output)
        self.assertIn("nothing.md: There is no such file.", self.output)

    def test_a_file_never_replaces_another_one_of_the_same_command(self):
        first, second, same = (
            self.write("a/x.md", "One."),
            self.write("b/x.md", "Two."),
            self.write("c/x.md", "One."),
        )
        with self.assertRaisesMessage(CommandError, "1 of 4 files failed; see above."):
            self.ingest(first, second, same, first, "--everyone")
        self.assertIn(f"{second}: It would replace {first}, which gets the same folder and name", self.output)
        self.assertEqual(Passage.objects.get().content, "One.")
        with self.assertRaises(CommandError):
            self.ingest(self.folder / "b", self.folder / "c", "--everyone")
        self.assertEqual(Passage.objects.get().content, "Two.")
        self.ingest(self.folder, "--everyone")
        self.assertEqual(Document.objects.count(), 4)

    def test_a_folder_that_cannot_be_listed_is_reported_unless_it_is_hidden(self):
        self.write("a.md")
        scandir = os.scandir
        for name in ("locked", ".locked"):
            (self.folder / name).mkdir()

        def refusing(path):
            if str(path).endswith("locked"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return scandir(path)

        with (
            mock.patch.object(os, "scandir", refusing),
            self.assertRaisesMessage(CommandError, "1 of 2 files failed"),
        ):
            self.ingest(self.folder, "--everyone")
        self.assertIn(f"{self.folder}/locked: It cannot be opened: Permission denied.", self.output)
        self.assertTrue(Document.objects.filter(name="a.md").exists())

    def test_a_path_that_cannot_be_looked_up_keeps_no_other_file_from_being_added(self):
        loop = self.folder / "loop"
        loop.symlink_to(loop)
        long = self.folder / ("n" * 300)
        with self.assertRaisesMessage(CommandError, "2 of 3 files failed"):
            self.ingest(long, loop, self.write("a.md"), "--everyone")
        self.assertIn(f"{long}: It cannot be opened: File name too long.", self.output)
        self.assertIn("loop: It cannot be opened: Too many levels of symbolic links.", self.output)
        self.assertEqual(Document.objects.get().status, "ready")

    def test_files_of_a_folder_that_cannot_be_entered_are_reported(self):
        self.write("listed/a.md")
        (self.folder / "listed" / "deeper").mkdir()
        self.write("b.md")
        look_up = os.lstat

        def refusing(path, *arguments, **options):
            if Path(path).parent.name == "listed":
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return look_up(path, *arguments, **options)

        with (
            mock.patch.object(Path, "lstat", refusing),
            mock.patch(
                "ingestion.management.commands.ingest.open_below", side_effect=PermissionError(13, "No")
            ),
            self.assertRaises(CommandError),
        ):
            self.ingest(self.folder, "--everyone")
        self.assertIn("listed/a.md: It cannot be opened: No.", self.output)

    def test_the_command_fails_if_there_is_nothing_to_ingest(self):
        with self.assertRaisesMessage(CommandError, "Nothing was ingested."):
            self.ingest(self.folder, "--everyone")

    def test_documents_get_the_requested_readers(self):
        path = self.write("a.md")
        ann, bob = (User.objects.create(username=name) for name in ("ann", "bob"))
        group = Group.objects.create(name="HR")
        self.ingest(path, "--user", "ann", "--group", "HR", "--owner", "bob")
        document = Document.objects.get()
        self.assertEqual(audience_of(document), Audience(False, frozenset({ann.pk}), frozenset({group.pk})))
        self.assertEqual(document.owner, bob)

    def test_unknown_names_and_missing_rights_are_errors(self):
        path = self.write("a.md")
        for arguments, message in (
            (["--user", "nobody"], "There is no user named nobody."),
            (["--group", "None", "Such"], "There is no group named None, Such."),
            (["--everyone", "--owner", "nobody"], "There is no user named nobody."),
            ([], "Name the readers of the documents: --everyone, or --user and --group, or --owner."),
        ):
            with self.assertRaisesMessage(CommandError, message):
                self.ingest(path, *arguments)
        self.assertEqual(Document.objects.count(), 0)

    def test_everyone_and_named_people_exclude_each_other(self):
        User.objects.create(username="ann")
        with self.assertRaisesMessage(CommandError, "--everyone already includes"):
            self.ingest(self.write("a.md"), "--everyone", "--user", "ann")

    def test_an_unchanged_file_is_skipped_and_a_changed_one_becomes_a_new_version(self):
        path = self.write("a.md")
        self.ingest(path, "--everyone")
        self.assertEqual(self.ingest(path, "--everyone"), "0 documents ready, 0 passages; 1 unchanged.\n")
        path.write_text("Six days.")
        self.assertEqual(self.ingest(path, "--everyone"), "1 document ready, 1 passage.\n")
        document = Document.objects.get()
        self.assertEqual((document.version, document.size), (2, 9))
        self.assertEqual(Passage.objects.get().content, "Six days.")

    def test_the_same_file_for_other_readers_is_the_same_document(self):
        path = self.write("a.md")
        ann = User.objects.create(username="ann")
        self.ingest(path, "--everyone")
        self.ingest(path, "--user", "ann")
        self.assertEqual(audience_of(Document.objects.get()), Audience(user_ids=frozenset({ann.pk})))

    def test_a_document_that_failed_is_read_again(self):
        path = self.write("a.md")
        with (
            mock.patch.object(reading, "read", side_effect=documents.Unreadable("No.")),
            self.assertRaises(CommandError),
        ):
            self.ingest(path, "--everyone")
        self.assertEqual(self.ingest(path, "--everyone"), "1 document ready, 1 passage.\n")

    def test_control_characters_of_a_file_name_are_not_printed(self):
        with self.assertRaises(CommandError):
            self.ingest(self.write("a\x1b[31m\nb.pdf", b""), "--everyone")
        self.assertNotIn("\x1b", self.output)
        self.assertEqual(self.output.count("\n"), 2)
