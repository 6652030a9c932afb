"""The commands `doctor` and `config`: the problems of a site, and its settings."""

import contextlib
import gzip
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections import namedtuple
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import httpx2
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import SimpleTestCase, TestCase, override_settings
from django.utils import timezone

from chatsite import environment
from chatsite.accounts.models import User
from chatsite.management.commands.config import shown
from chatsite.server import diagnosis
from chatsite.tests.server import BASE
from ingestion.models import Document
from ingestion.tests.media import MediaMixin

Usage = namedtuple("Usage", ("total", "used", "free"))
MODEL = {"CHAT_MODEL": "small", "OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


class WithoutSite(SimpleTestCase):
    def test_in_a_directory_without_a_site_nothing_is_created(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, settings in (
            ("mistyped", {}),
            ("mistyped", {"DATABASE_URL": "postgresql://a@127.0.0.1:9/b"}),
            ("empty", {}),
        ):
            (folder / "empty").mkdir(exist_ok=True)
            cleared = {"DATABASE_URL": "", "CHATSITE_SECRET_KEY": "", "CHATSITE_DATA_DIR": str(folder / name)}
            done = subprocess.run(
                [sys.executable, "manage.py", "doctor"],
                cwd=BASE,
                env=os.environ | cleared | settings,
                check=False,
                capture_output=True,
                text=True,
            )
            expected = (
                f"There is no site in the data directory {folder / name}: correct CHATSITE_DATA_DIR, or start"
                " the site first.\n"
            )
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", expected))
            self.assertEqual(list(folder.rglob("*")), [folder / "empty"])

    def test_help_needs_no_site(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "manage.py", "doctor", "--help"],
                cwd=BASE,
                env=os.environ | {"DATABASE_URL": "", "CHATSITE_DATA_DIR": folder},
                check=False,
                capture_output=True,
                text=True,
            )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage:", done.stdout)


class Doctor(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        overridden = override_settings(DATA_DIR=self.folder, ALLOWED_HOSTS=["localhost"])
        overridden.enable()
        self.addCleanup(overridden.disable)
        patched = mock.patch.object(diagnosis.shutil, "disk_usage", return_value=Usage(9e12, 0, 9e12))
        patched.start()
        self.addCleanup(patched.stop)
        with connection.cursor() as cursor:  # rows of earlier tests: a flush does not know these tables
            cursor.execute("DELETE FROM procrastinate_jobs; DELETE FROM procrastinate_workers")

    def read_document(self):
        """Add a document that was read, and remove its job as a worker does."""
        document = self.add()
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")
        return document

    def diagnosed(self):
        """Exit status and lines."""
        said = io.StringIO()
        try:
            call_command("doctor", stdout=said)
        except SystemExit as ended:
            return ended.code, said.getvalue()
        return 0, said.getvalue()

    def assert_wrong(self, words):
        status, said = self.diagnosed()
        self.assertEqual(status, 1, said)
        lines = [line for line in said.splitlines() if line.startswith("wrong")]
        self.assertEqual(len(lines), 1, said)
        self.assertIn(words, lines[0])

    def test_a_healthy_site_has_no_problems(self):
        self.read_document()
        status, said = self.diagnosed()
        self.assertEqual(status, 0, said)
        self.assertIn("Nothing is wrong.", said)
        self.assertIn("The files of the newest documents exist.", said)

    def test_contradictory_settings_are_reported(self):
        with override_settings(OPENAI_API_KEY="sk-secret"):
            self.assert_wrong("OPENAI_API_KEY is set, but CHAT_MODEL is not")

    def test_a_public_site_without_https_is_reported(self):
        with override_settings(ALLOWED_HOSTS=["ask.example.org"], DEMO=False):
            self.assert_wrong("without HTTPS")

    def test_a_nearly_full_disk_and_a_missing_folder_are_reported(self):
        with mock.patch.object(diagnosis.shutil, "disk_usage", return_value=Usage(9e12, 9e12, 1e9)):
            status, said = self.diagnosed()
        self.assertEqual((status, said.count("1.0 GB left: make room")), (1, 2))
        file = self.folder / "file"
        file.write_text("")
        with override_settings(MEDIA_ROOT=str(file)):
            self.assert_wrong("cannot be written")

    def test_a_document_without_its_file_is_reported(self):
        document = self.read_document()
        Path(self.media, document.file.name).unlink()
        self.assert_wrong("newest documents are missing")
        with override_settings(STORAGE="S3"):
            self.assertIn("is CHATSITE_S3_BUCKET right?", self.diagnosed()[1])

    def test_a_bucket_that_refuses_is_reported(self):
        self.read_document()
        refusal = diagnosis.files.StorageFault("The storage refused the request: AccessDenied.")
        with (
            override_settings(STORAGE="S3"),
            mock.patch.object(diagnosis.files, "exists", side_effect=refusal),
        ):
            self.assertIn("The files cannot be looked up: The storage refused", self.diagnosed()[1])

    def test_documents_waiting_without_a_worker_are_reported(self):
        self.add(read=False)
        self.assert_wrong("Documents waiting to be read: 1, but no worker is running")
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
        status, said = self.diagnosed()
        self.assertEqual(status, 0)
        self.assertIn("Documents waiting to be read: 1; workers are running.", said)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE procrastinate_events SET at = now() - interval '40 minutes'")
        self.assert_wrong("has been waiting for 40 minutes")

    def test_unreadable_documents_are_noted(self):
        Document.objects.filter(pk=self.read_document().pk).update(status=Document.Status.FAILED)
        status, said = self.diagnosed()
        self.assertEqual(status, 0)
        self.assertIn("note   Documents that could not be read: 1", said)

    def test_an_unavailable_database_is_reported(self):
        with mock.patch.object(diagnosis, "_value", side_effect=OperationalError("connection refused")):
            self.assert_wrong("The database cannot be queried: connection refused")

    def test_the_age_of_the_last_backup_is_shown(self):
        self.assertIn("No backup was made", self.diagnosed()[1])
        diagnosis.note_backup(timezone.now(), self.folder / "a")
        self.assertIn("ok     The last backup was made on", self.diagnosed()[1])
        diagnosis.note_backup(timezone.now() - timedelta(days=9), self.folder / "a")
        self.assert_wrong("The last backup was made on")

    @override_settings(**MODEL)
    def test_an_unavailable_refusing_or_wrong_model_server_is_reported(self):
        self.assert_wrong("cannot be reached")
        for status, body, words in (
            (401, {"error": "sk-secret is wrong"}, "refuses the key (401)"),
            (503, None, "responds with the error 503"),
            (200, {"data": [{"id": "other"}]}, "has no model small, only other"),
        ):
            answer = httpx2.Response(status, json=body)
            with self.subTest(status), mock.patch.object(diagnosis, "bounded_request", return_value=answer):
                self.assert_wrong(words)
                self.assertNotIn("sk-secret", self.diagnosed()[1])
        for status, body in ((200, {"data": [{"id": "small"}]}), (404, None), (200, [])):
            answer = httpx2.Response(status, json=body)
            with self.subTest(status), mock.patch.object(diagnosis, "bounded_request", return_value=answer):
                self.assertIn("The model's server responds", self.diagnosed()[1])

    @override_settings(CHAT_MODEL="small", OPENAI_API_KEY="sk-secret")
    def test_a_model_server_that_never_stops_answering_is_given_up(self):
        for name, pieces, pause, error in (
            ("without end", 1_000_000, 0.0, "ResponseTooLarge"),
            ("slow", 20, 0.2, "TimeoutError"),
        ):
            with self.subTest(name), EndlessServer(pieces, pause) as server:
                with (
                    override_settings(OPENAI_BASE_URL=server.url),
                    mock.patch.object(diagnosis, "MODEL_SECONDS", 1.0),
                ):
                    self.assert_wrong(f"The model's server cannot be reached ({error})")
                self.assertLess(server.sent, pieces)

    @override_settings(CHAT_MODEL="small", OPENAI_API_KEY="sk-secret")
    def test_a_compressed_response_is_not_decoded(self):
        # 20 MB of blocks without content, in gzip, in gzip: the result is empty.
        blocks = b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + 4_000_000 * b"\0\0\0\xff\xff"
        nested = gzip.compress(gzip.compress(blocks, 1))
        with (
            EndlessServer(1, 0, nested, "gzip, gzip, gzip") as server,
            override_settings(OPENAI_BASE_URL=server.url),
        ):
            self.assert_wrong("The model's server cannot be reached (ResponseEncoded)")
        self.assertEqual(server.accepted, "identity")

    @override_settings(CHAT_MODEL="small", OPENAI_API_KEY="sk-secret")
    def test_the_key_of_a_model_server_on_this_machine_reaches_no_proxy(self):
        with (
            EndlessServer(1, 0) as proxy,
            mock.patch.dict(os.environ, HTTP_PROXY=proxy.url, NO_PROXY="", no_proxy=""),
            override_settings(OPENAI_BASE_URL="http://127.0.0.1:9/v1"),
        ):
            self.assert_wrong("cannot be reached")
            self.assertEqual(proxy.sent, 0)

    @override_settings(**MODEL)
    def test_names_of_models_cannot_control_the_terminal(self):
        body = {"data": [{"id": "\x1b]0;owned\x07" + "x" * 1_000}]}
        answer = httpx2.Response(200, json=body)
        with mock.patch.object(diagnosis, "bounded_request", return_value=answer):
            said = self.diagnosed()[1]
        self.assertIn("only ]0;ownedxxx", said)
        self.assertNotIn("\x1b", said)
        self.assertNotIn("x" * 200, said)


class EndlessServer:
    """Answers each GET with pieces, by default of 1,000 spaces, and counts those that were taken.

    `accepted` is the Accept-Encoding of the last request.
    """

    def __init__(self, pieces, pause, piece=b" " * 1_000, encoding=""):
        server, self.sent, self.accepted = self, 0, None

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.accepted = self.headers["Accept-Encoding"]
                self.send_response(200)
                if encoding:
                    self.send_header("Content-Encoding", encoding)
                self.end_headers()
                with contextlib.suppress(OSError):
                    for _ in range(pieces):
                        self.wfile.write(piece)
                        server.sent += 1
                        server.ended.wait(pause)

            def log_message(self, *arguments):
                pass

        self.ended = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


class Config(SimpleTestCase):
    def said(self, *options, **given):
        said = io.StringIO()
        with mock.patch.dict(os.environ, given):
            call_command("config", *options, stdout=said)
        return {line.split()[0]: line.split(maxsplit=2)[1:] for line in said.getvalue().splitlines()}

    def test_every_setting_is_shown_with_its_value_and_origin(self):
        lines = self.said(CHATSITE_NAME="Leave desk", HOST="")
        self.assertEqual(set(lines), set(environment.variables))
        self.assertEqual(lines["CHATSITE_NAME"], ["environment", "Leave desk"])
        self.assertEqual(lines["HOST"], ["default", "127.0.0.1"])
        self.assertEqual(lines["CHATSITE_API_KEY_DAYS"], ["default", "365"])
        self.assertEqual(lines["CHATSITE_HTTPS"], ["default", "0"])
        self.assertEqual(lines["CHATSITE_OCR_LANGUAGES"], ["default", "eng"])
        self.assertNotIn("PORT", self.said("--given", PORT=""))

    def test_a_secret_from_a_file_is_used_and_not_shown(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sk-in-a-file\n")
            file.flush()
            lines = self.said("--given", OPENAI_API_KEY_FILE=file.name)
            self.assertEqual(lines["OPENAI_API_KEY"], ["file", "***"])
            with mock.patch.dict(os.environ, OPENAI_API_KEY_FILE=file.name):
                self.assertEqual(environment.text("OPENAI_API_KEY"), "sk-in-a-file")

    def test_an_unusable_secret_file_is_refused_by_name(self):
        with tempfile.NamedTemporaryFile("w") as empty:
            for path, key, words in (
                ("/nowhere/key", "", "/nowhere/key cannot be read (No such file or directory)"),
                ("/", "", "/ cannot be read (Is a directory)"),
                (empty.name, "", f"{empty.name} is empty"),
                (empty.name, "sk-1", "OPENAI_API_KEY and OPENAI_API_KEY_FILE are both set"),
            ):
                with (
                    self.subTest(words),
                    mock.patch.dict(os.environ, OPENAI_API_KEY_FILE=path, OPENAI_API_KEY=key),
                    self.assertRaisesMessage(ImproperlyConfigured, words),
                ):
                    environment.text("OPENAI_API_KEY")

    def test_no_secret_is_shown(self):
        secret = "s3cr3t-of-a-test"
        given = {name: secret for name in environment.variables if name.endswith(("KEY", "SECRET", "TOKEN"))}
        given |= {
            "DATABASE_URL": f"postgresql://chatsite:{secret}@db.example.org/chatsite?sslpassword={secret}",
            "DATABASE_DIRECT_URL": f"host=db.example.org password={secret}",
            "REDIS_URL": f"redis://user:{secret}@10.0.0.5:6379/0",
            "OPENAI_BASE_URL": f"https://models.example.org/v1?key={secret}",
            "SENTRY_DSN": f"https://{secret}@faults.example.org/1",
            "CHATSITE_AUDIT_WEBHOOK": f"https://hooks.example.org/services/{secret}",
        }
        self.assertGreaterEqual(len(given), 8)
        lines = self.said(**given)
        for name in given:
            with self.subTest(name):
                self.assertEqual(lines[name][0], "environment")
                self.assertIn("***", lines[name][1])
                self.assertNotIn(secret, lines[name][1])
        self.assertIn("db.example.org", lines["DATABASE_URL"][1])
        self.assertEqual(lines["CHATSITE_AUDIT_WEBHOOK"][1], "https://hooks.example.org/***")
        self.assertIn("10.0.0.5", lines["REDIS_URL"][1])

    def test_unreadable_values_are_not_shown(self):
        for name, value in (
            ("DATABASE_URL", "postgresql://a:s3cr3t@[b/c"),
            ("REDIS_URL", "redis://:s3cr3t@[b"),
            ("CHATSITE_CORS_ORIGINS", "https://a.example.org,https://b:s3cr3t@c"),
        ):
            with self.subTest(name):
                self.assertNotIn("s3cr3t", shown(name, value))


class StatusPage(TestCase):
    """The same information on a page of the admin."""

    def page(self, **rights):
        self.client.force_login(User.objects.create_user("anna", **rights))
        return self.client.get("/admin/status/")

    def test_administrators_see_what_is_wrong_and_what_the_site_does(self):
        with override_settings(DEBUG=True, OPENAI_API_KEY="sk-secret", METRICS=True):
            page = self.page(is_staff=True, is_superuser=True)
        self.assertContains(page, "OPENAI_API_KEY is set, but CHAT_MODEL is not")
        self.assertContains(page, "CHATSITE_DEBUG is 1")
        self.assertContains(page, "Answers being written")
        self.assertContains(page, "Connection: database")
        german = self.client.get("/admin/status/", headers={"Accept-Language": "de"})
        self.assertContains(german, "Verbindung: Datenbank")
        self.assertRegex(german.content.decode(), r"\d,\d GB")
        self.assertNotContains(page, "sk-secret")
        self.assertEqual(self.client.post("/admin/status/").status_code, 405)
        self.assertContains(self.client.get("/admin/"), 'href="/admin/status/"')

    def test_other_staff_do_not_see_the_status_page(self):
        self.assertEqual(self.page(is_staff=True).status_code, 403)
        self.assertNotContains(self.client.get("/admin/"), "/admin/status/")

    def test_only_administrators_see_the_status_page(self):
        self.assertEqual(self.page().status_code, 302)
