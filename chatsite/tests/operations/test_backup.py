"""A backup contains the whole site at one moment, and is restored completely or not at all."""

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import psycopg
import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import SimpleTestCase, TransactionTestCase, override_settings
from psycopg import sql
from psycopg.conninfo import make_conninfo

from chat.persons.erasure import erase, erase_returned
from chat.tests.admin.test_persons import CANARY, dump, person_with_everything, tables_with
from chatsite.accounts.models import User
from chatsite.db.dropping import drop_database
from chatsite.db.threads import libpq_parameters
from chatsite.management.commands import backup as backup_command
from chatsite.server import database_setup
from chatsite.server.backup import age, backup_file, database
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.rows import fill_tables
from history.models import Conversation, Message
from ingestion import documents
from ingestion.models import Document
from ingestion.tests.media import MediaMixin

pytestmark = pytest.mark.slow

PASSPHRASE = "a long passphrase of a test"
ELSEWHERE = f"restore_elsewhere_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"  # processes share a server
REHEARSALS = "SELECT datname FROM pg_database WHERE datname LIKE 'chatsite_rehearsal_%'"
OF_THE_QUEUE = {  # tables that Django does not write
    "procrastinate_periodic_defers": "INSERT INTO procrastinate_periodic_defers"
    " (task_name, defer_timestamp) VALUES ('tidy', 1)",
    "procrastinate_workers": "INSERT INTO procrastinate_workers DEFAULT VALUES",
}
FEW = 10  # of scrypt: a test's passphrase need not be slow to guess


class Encryption(SimpleTestCase):
    def setUp(self):
        patched = mock.patch.object(age, "WORK_FACTOR", FEW)
        patched.start()
        self.addCleanup(patched.stop)

    def written(self, data, pieces=7_001):
        target = io.BytesIO()
        writer = age.Writer(target, PASSPHRASE)
        for start in range(0, len(data), pieces):
            writer.write(data[start : start + pieces])
        writer.close()
        return target.getvalue()

    def test_an_encrypted_archive_can_be_read(self):
        for size in (0, 1, age.PIECE_BYTES - 1, age.PIECE_BYTES, age.PIECE_BYTES + 1, 3 * age.PIECE_BYTES):
            with self.subTest(size):
                data = os.urandom(size)
                reader = age.Reader(io.BytesIO(self.written(data)), PASSPHRASE)
                parts = [reader.read(10_000) for _ in range(size // 10_000 + 2)]
                self.assertEqual(b"".join(parts), data)

    def test_any_changed_or_missing_part_is_detected(self):
        whole = self.written(os.urandom(2 * age.PIECE_BYTES + 100))
        piece = age.PIECE_BYTES + age.TAG_BYTES
        cut = [whole[:-1], whole[: -100 - age.TAG_BYTES], whole[:-piece], whole[:150], whole + b"x"]
        swapped = whole[: -piece - 116] + whole[-116:] + whole[-piece - 116 : -116]
        changed = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in (60, 170, -1)]
        for number, data in enumerate([*cut, swapped, *changed]):
            with self.subTest(number), self.assertRaises((age.Damaged, age.WrongPassphrase)):
                age.Reader(io.BytesIO(data), PASSPHRASE).read()

    def test_a_wrong_passphrase_is_refused(self):
        with self.assertRaises(age.WrongPassphrase):
            age.Reader(io.BytesIO(self.written(b"x")), PASSPHRASE + "x")


class Site(MediaMixin, TransactionTestCase):
    """A site with rows and files, its backup, and an empty database and folder beside it."""

    def setUp(self):
        super().setUp()
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        overridden = override_settings(DATA_DIR=self.folder, ERASED_LIST=self.folder / "erased.jsonl")
        overridden.enable()
        self.addCleanup(overridden.disable)
        self.own = libpq_parameters()
        for patched in (
            mock.patch.object(database_setup, "parameters", self.parameters),
            mock.patch.object(age, "WORK_FACTOR", FEW),
        ):
            patched.start()
            self.addCleanup(patched.stop)
        # Jobs of earlier tests, whose files are gone: a flush does not know this table.
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")
        self.owner = User.objects.create_user("anna")
        self.document = self.add(owner=self.owner)
        conversation = Conversation.objects.create(owner=self.owner, title="Übung “100 %”\n\\.")
        Message.objects.create(conversation=conversation, role="user", content="\\N", position=1)
        self.file = self.folder / "site.backup"
        self.passphrase = self.folder / "passphrase"
        self.passphrase.write_text(f"{PASSPHRASE}\n")

    def parameters(self):
        return self.own

    def backup(self, **options):
        said = io.StringIO()
        call_command("backup", str(self.file), stdout=said, **options)
        return said.getvalue()

    def restore(self, **options):
        said = io.StringIO()
        call_command("restore", str(options.pop("file", self.file)), stdout=said, **options)
        return said.getvalue()

    def refusal(self, **options):
        with self.assertRaises(CommandError) as refused:
            self.restore(**options)
        self.assertNotIn("\n", str(refused.exception))
        return str(refused.exception)

    def elsewhere(self):
        """Point the site's settings to an empty database and folder."""
        with psycopg.connect(**self.own, autocommit=True) as session:
            drop_database(session, ELSEWHERE)
            session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(ELSEWHERE)))
        before = self.own

        def leave():
            self.own = before
            with psycopg.connect(**before, autocommit=True) as session:
                drop_database(session, ELSEWHERE)

        self.addCleanup(leave)
        self.own = {**self.own, "dbname": ELSEWHERE}
        overridden = override_settings(MEDIA_ROOT=str(self.folder / "media"))
        overridden.enable()
        self.addCleanup(overridden.disable)

    def asked(self, query):
        with database.connect() as session:
            return session.execute(query).fetchall()

    def members(self):
        with backup_file.members(self.file, "") as every:
            return [(name, file.read()) for name, file in every]

    def rewritten(self, changes):
        """A backup with changed members and matching checksums."""
        path = self.folder / "rewritten.backup"
        with backup_file.written(path, "") as target:
            for name, data in self.members():
                if name != backup_file.CHECKSUMS:
                    target.add(name, changes.get(name, lambda data: data)(data))
        return path


class Rehearsal(Site):
    def test_a_site_is_restored_as_it_was(self):
        said = self.backup(passphrase_file=self.passphrase)
        self.assertIn("1 files", said)
        self.assertTrue(self.file.read_bytes().startswith(age.MAGIC))
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        Document.objects.all().delete()
        User.objects.filter(pk=self.owner.pk).update(username="berta")  # changed after the backup
        self.assertIn("is complete", self.restore(verify=True, passphrase_file=self.passphrase))
        self.assertEqual(self.asked(REHEARSALS), [])
        self.elsewhere()
        with override_settings(STORAGE="S3"):
            said = self.restore(passphrase_file=self.passphrase)
        self.assertIn("Restored", said)
        self.assertIn(f"copy {self.folder / 'media' / 'documents'} to the bucket", said)
        self.assertIn(f"no list of erased accounts, {self.folder / 'erased.jsonl'}", said)
        self.assertEqual(self.asked("SELECT username FROM accounts_user"), [("anna",)])
        ((name, title),) = self.asked("SELECT file, title FROM ingestion_document")
        self.assertEqual(title, self.document.title)
        self.assertEqual((self.folder / "media" / name).read_text(), "# Leave\n\nFive days.")
        self.assertEqual((self.folder / "secret_key").read_text(), settings.SECRET_KEY)
        self.assertEqual(self.asked("SELECT title FROM history_conversation"), [("Übung “100 %”\n\\.",)])
        # Row-level security was restored, too.
        with database.connect() as session:
            session.execute("SET chatsite.reader = ''")
            self.assertEqual(session.execute("SELECT id FROM ingestion_document").fetchall(), [])
        self.assertIn("is not empty", self.refusal(passphrase_file=self.passphrase))


class EveryKind(Site):
    """A backup of a site in which each table has a row."""

    def setUp(self):
        super().setUp()
        self.person, _ = person_with_everything()
        written = CANARY.encode()
        for document in Document.objects.filter(file__startswith="documents/test-"):  # created without a file
            Path(self.media, document.file.name).write_bytes(written)
            sum_ = hashlib.sha256(written).hexdigest()
            Document.objects.filter(pk=document.pk).update(sha256=sum_, size=len(written))
        fill_tables()
        with connection.cursor() as cursor:
            for table, insert in OF_THE_QUEUE.items():
                self.addCleanup(self.emptied, table)
                cursor.execute(insert)
        self.before = dump()

    def emptied(self, table):
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {table}")

    @contextmanager
    def in_the_restored_database(self):
        def leave():
            connection.close()
            connection.close_pool()

        leave()
        with mock.patch.dict(connection.settings_dict, NAME=ELSEWHERE):
            try:
                yield
            finally:
                leave()

    @pytest.mark.slow
    def test_every_row_is_restored_and_erased_people_stay_erased(self):
        without = {table for table, rows in self.before.items() if not rows}
        self.assertEqual(without, set(), "Nobody has tried to restore a row of these.")
        self.backup(passphrase_file=self.passphrase)
        erase(self.person, actor=None, delete_documents=True)
        self.assertEqual(tables_with(CANARY, dump()), set())
        self.elsewhere()
        self.assertNotIn("list of erased", self.restore(passphrase_file=self.passphrase))
        with self.in_the_restored_database():
            restored = dump()
            for table, rows in self.before.items():
                self.assertEqual(restored[table], rows, table)
            self.assertEqual(len(erase_returned()), 1)
            self.assertEqual(tables_with(CANARY, dump()), set())
            self.assertTrue(User.objects.filter(username=self.owner.username).exists())
            self.assertEqual(erase_returned(), [])
        left = [path.read_text() for path in (self.folder / "media").rglob("*") if path.is_file()]
        self.assertEqual(left, ["# Leave\n\nFive days."])


class ByHand(Site):
    """pg_dump as the site's own role, without this site's command."""

    def dump(self, options):
        with database.connect() as session:
            program = database._program("pg_dump", session.info.server_version)
        shown = {name: value for name, value in self.own.items() if name not in {"options", "password"}}
        password = {"PGPASSWORD": self.own["password"]} if self.own.get("password") else {}
        return subprocess.run(
            [program, "--enable-row-security", "--no-password", f"--dbname={make_conninfo(**shown)}"],
            check=False,
            env={**os.environ, **password, "PGOPTIONS": options},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        )

    def test_a_dump_that_would_leave_out_the_documents_is_an_error(self):
        for options in ("", "-c chatsite.reader=1"):
            with self.subTest(options):
                dumped = self.dump(options)
                self.assertNotEqual(dumped.returncode, 0)
                self.assertIn("this dump would leave out every document", dumped.stderr)

    def test_a_dump_that_reads_everything_has_the_documents(self):
        dumped = self.dump("-c chatsite.reader=everything")
        self.assertEqual(dumped.returncode, 0, dumped.stderr)
        self.assertIn(self.document.file.name, dumped.stdout)


class Refusals(Site):
    def setUp(self):
        super().setUp()
        self.backup()
        self.elsewhere()

    def assert_unchanged(self):
        with database.connect() as session:
            self.assertTrue(database.is_empty(session))
        self.assertEqual([*(self.folder / "media").glob("**/*")], [])
        self.assertFalse((self.folder / "secret_key").exists())

    def test_a_truncated_changed_or_foreign_file_changes_nothing(self):
        whole = self.file.read_bytes()
        with tarfile.open(self.file) as tar:
            last = tar.getmembers()[-1].offset
        place = whole.index(b"Five days.")
        for number, data in enumerate(
            (
                b"",
                b"x" * 5_000,
                whole[: len(whole) // 2],
                whole[:last],
                whole[:place] + b"Nine days." + whole[place + 10 :],
            )
        ):
            with self.subTest(number):
                self.file.write_bytes(data)
                self.assertIn("backup", self.refusal())
                self.assert_unchanged()

    def test_a_backup_of_a_newer_version_is_refused_with_its_version(self):
        def newer(data):
            head = json.loads(data)
            return json.dumps({**head, "version": "9.1", "migrations": ["chat.9999_new"]}).encode()

        words = self.refusal(file=self.rewritten({backup_file.HEAD: newer}))
        self.assertIn("version 9.1, which is newer than this one", words)
        self.assert_unchanged()

    def test_a_table_that_differs_rolls_back_the_restore(self):
        def other(data):
            head = json.loads(data)
            head["tables"]["accounts_user"]["rows"] += 1
            return json.dumps(head).encode()

        words = self.refusal(file=self.rewritten({backup_file.HEAD: other}))
        self.assertIn("the table accounts_user differs from the backup", words)
        self.assert_unchanged()

    def test_a_truncated_dump_rolls_back_the_restore(self):
        changes = {f"{backup_file.DATABASE}000000": lambda data: data[: len(data) - 2_000]}
        self.refusal(file=self.rewritten(changes))
        self.assert_unchanged()

    def test_a_full_disk_rolls_back_the_restore(self):
        with mock.patch.object(shutil, "copyfileobj", side_effect=OSError(28, "No space left on device")):
            self.assertIn("No space left on device", self.refusal())
        self.assert_unchanged()

    def test_folders_with_files_are_not_mixed_with_those_of_the_backup(self):
        (self.folder / "media" / "documents" / "aa").mkdir(parents=True)
        self.assertIn("is not empty", self.refusal())


class Unfinished(SimpleTestCase):
    def test_what_a_killed_backup_left_is_removed_but_not_what_another_one_writes(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        killed, running = (self.folder / f".{name}.1{backup_file.PARTIAL}" for name in ("old", "other"))
        killed.write_bytes(b"half")
        with backup_file.new_file(self.folder / "first"), running.open("wb") as other:
            self.assertFalse(killed.exists())
            fcntl.flock(other, fcntl.LOCK_EX)
            with backup_file.new_file(self.folder / "second"):
                self.assertEqual(len(list(self.folder.glob(f".*{backup_file.PARTIAL}"))), 3)
        self.assertTrue((self.folder / "first").exists() and (self.folder / "second").exists())


class Writing(Site):
    def test_wrong_and_missing_passphrases_are_reported(self):
        self.backup(passphrase_file=self.passphrase)
        self.assertIn("--passphrase-file", self.refusal(verify=True))
        self.passphrase.write_text("another passphrase")
        words = self.refusal(verify=True, passphrase_file=self.passphrase)
        self.assertEqual(words, "The passphrase is wrong. Nothing was changed.")

    def test_a_full_disk_leaves_no_partial_backup(self):
        full = OSError(28, "No space left on device")
        with (
            mock.patch.object(backup_file.Archive, "add_file", side_effect=full),
            self.assertRaisesMessage(CommandError, "the disk is full. No part of it was kept."),
        ):
            self.backup()
        self.assertEqual([path for path in self.folder.iterdir() if path != self.passphrase], [])

    def test_nothing_is_overwritten(self):
        self.file.write_text("kept")
        with self.assertRaisesMessage(CommandError, "exists"):
            self.backup()
        self.assertEqual(self.file.read_text(), "kept")

    def test_a_file_missing_in_the_storage_is_named(self):
        Path(self.media, self.document.file.name).unlink()
        said = io.StringIO()
        with self.assertRaises(SystemExit) as ended:
            self.backup(stderr=said)
        self.assertEqual(ended.exception.code, 2)
        self.assertIn(self.document.file.name, said.getvalue())
        self.assertIn("is complete", self.restore(verify=True))

    def test_a_document_deleted_or_replaced_meanwhile_is_no_lost_file(self):
        replaced = self.add("b.md", owner=self.owner)
        new = documents.replace_file(replaced, ContentFile(b"Six days."))
        tables = database.tables

        def later(session):
            found = tables(session)
            documents.delete_document(self.document)
            documents.read_document(replaced.pk, new)
            return found

        with mock.patch.object(backup_command.database, "tables", later):
            said = self.backup()
        self.assertIn("Documents that were deleted or replaced while the backup was made: 2.", said)
        self.assertIn("is complete", self.restore(verify=True))

    def test_a_backup_shows_one_moment(self):
        """Rows that are written during the backup are not in it, in any table."""
        dumped = database.dumped

        def later(session, name):
            User.objects.create_user("berta")
            return dumped(session, name)

        with mock.patch.object(backup_command.database, "dumped", later):
            self.backup()
        self.assertIn("is complete", self.restore(verify=True))
