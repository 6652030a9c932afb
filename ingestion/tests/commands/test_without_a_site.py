"""Commands if no site was ever started, and the databases that killed evaluations leave."""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import SimpleTestCase, TestCase
from psycopg.conninfo import make_conninfo

from chatsite.db.dropping import claim, drop_abandoned, drop_database
from chatsite.tests.limits import HANG_SECONDS
from ingestion.evaluation import throwaway

PARAMETERS = ("dbname", "user", "password", "host", "port", "passfile")


def parameters():
    """libpq's parameters of the tests' database."""
    return {name: value for name, value in connection.get_connection_params().items() if name in PARAMETERS}


class Unmigrated(SimpleTestCase):
    def test_each_command_says_in_one_line_that_the_site_must_be_started_first(self):
        commands = (
            ("ingest", str(Path(__file__)), "--everyone"),
            ("sync", str(Path(__file__).parent), "--everyone"),
            ("reembed",),
            ("explain_access", "ann", "a.pdf"),
            ("create_api_key", "ann"),
            ("audit", "verify"),
            ("changepassword", "ann"),
            ("createsuperuser",),
        )
        for command in commands:
            with (
                patch("chatsite.db.migration_state.unapplied_migrations", return_value={("chat", "0001")}),
                self.assertRaisesMessage(CommandError, "start the site first"),
            ):
                call_command(*command)


@pytest.mark.slow
class Empty(TestCase):
    def test_evaluate_in_an_empty_database_ends_with_one_line(self):
        name = "chatsite_never_started"
        with psycopg.connect(**parameters(), autocommit=True) as session:
            drop_database(session, name)
            session.execute(f"CREATE DATABASE {name}")
            try:
                told = self.run_evaluate(name)
            finally:
                drop_database(session, name)
        self.assertEqual(told.stderr.count("\n"), 1, told.stderr)
        self.assertIn("The database is not migrated to this version: start the site first.", told.stderr)
        self.assertEqual(told.returncode, 1)

    def run_evaluate(self, name):
        url = make_conninfo(**parameters() | {"dbname": name})
        questions = Path(self.enterContext(TemporaryDirectory())) / "questions.jsonl"
        questions.write_text('{"question": "A?", "truth": "[a.pdf]"}\n', encoding="utf-8")
        command = [sys.executable, "manage.py", "evaluate", str(questions), "--as", "ann"]
        return subprocess.run(
            command,
            cwd=settings.BASE_DIR,
            env=os.environ | {"DATABASE_URL": url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


class Leftovers(TestCase):
    def setUp(self):
        self.session = self.enterContext(throwaway._beside())
        self.name = f"{throwaway.PREFIX}of_a_test"
        self.session.execute(f"CREATE DATABASE {self.name}")
        self.addCleanup(self.drop)

    def drop(self):
        with psycopg.connect(**parameters(), autocommit=True) as session:
            session.execute(f"DROP DATABASE IF EXISTS {self.name}")

    def dropped(self):
        return drop_abandoned(self.session, throwaway.LOCKS, throwaway.PREFIX)

    def test_the_next_evaluation_drops_the_database_of_a_killed_one(self):
        self.assertIn(self.name, self.dropped())
        self.assertNotIn(self.name, self.dropped())

    def test_the_database_of_a_running_evaluation_is_left_alone(self):
        with psycopg.connect(**parameters(), autocommit=True) as run:
            claim(run, throwaway.LOCKS, self.name)
            self.assertNotIn(self.name, self.dropped())
        deadline = time.monotonic() + HANG_SECONDS  # the server notices the end of a session after a moment
        while self.name not in self.dropped():
            self.assertLess(time.monotonic(), deadline)

    def test_a_database_with_open_connections_is_left_alone(self):
        with psycopg.connect(**parameters() | {"dbname": self.name}, autocommit=True):
            self.assertNotIn(self.name, self.dropped())
