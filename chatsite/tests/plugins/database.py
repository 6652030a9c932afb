"""Pytest plugin, loaded before the settings: tests use a PostgreSQL of their own.

Migrations take seven seconds of CPU. They run once for each state of the code, into a database that all test
processes copy (`MigratedCopies`), including those of later runs.
"""

import atexit
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.conf import settings
from django.db import connections, transaction
from psycopg.pq import TransactionStatus

from chatsite.tests.foreign_settings import FOREIGN

os.environ.setdefault("CHATSITE_DATA_DIR", str(Path(__file__).resolve().parents[3] / ".data-test"))
os.environ.setdefault("CHATSITE_DEBUG", "0")
for name in FOREIGN:
    os.environ.pop(name, None)

# WhiteNoise warns if it is missing.
Path(os.environ["CHATSITE_DATA_DIR"], "static").mkdir(parents=True, exist_ok=True)

from django.test import testcases  # noqa: E402

from chatsite.db.threads import (  # noqa: E402
    read_everything_by_default,
    reading_everything,
    retry_on_deadlock,
)
from chatsite.server.embedded_postgres import Cluster  # noqa: E402
from chatsite.server.embedded_postgres import cluster as embedded  # noqa: E402

# Only for the server of the tests. Servers that tests start and kill must keep what they acknowledged.
NEVER_KILLED = """
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
"""

read_everything_by_default()  # tests create rows for any reader; requests have the rights of their callers
if not os.environ.get("DATABASE_URL"):
    embedded.CONFIGURATION += "fsync = off\n"  # after a power failure the database is discarded anyway
    cluster = Cluster(Path(os.environ["CHATSITE_DATA_DIR"]))
    with mock.patch.object(embedded, "CONFIGURATION", embedded.CONFIGURATION + NEVER_KILLED):
        cluster.start()
    atexit.register(cluster.stop)


BASE = Path(__file__).resolve().parents[3]
PACKAGES = ("chat", "chatsite", "history", "ingestion")
MIGRATED = {"django_migrations", "django_content_type", "auth_permission"}
# Their triggers refuse deletion; nothing refers to them.
UNDELETABLE = {"accounts_auditentry", "accounts_auditseal"}
MANY_BYTES = 2_000_000
SIZES = """
    SELECT relname, pg_relation_size(oid) FROM pg_class
    WHERE relname = ANY(%s) AND relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND pg_relation_size(oid) > 0
"""


@pytest.fixture(autouse=True)
def unhashed_static_files(settings: Any) -> None:
    """Let tests render templates without collecting static files first."""
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }


def pytest_configure() -> None:
    """Hash passwords of tests quickly; the real servers that tests start have their own settings."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    testcases.call_command = flushed(testcases.call_command)
    MigratedCopies(connections["default"]).install()


class MigratedCopies:
    """Creates test databases as copies of one database, which the first process of all fills by migrating."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.template = f"migrated_{schema_digest()}"
        self.create_test_db = connection.creation.create_test_db

    def install(self) -> None:
        """Make Django create databases in this way."""
        self.connection.creation.create_test_db = self.create

    def create(self, *arguments: Any, **options: Any) -> str:
        """Do the work of Django's `create_test_db`."""
        if options.get("keepdb"):  # the database already exists
            return self.create_test_db(*arguments, **options)
        with Path(os.environ["CHATSITE_DATA_DIR"], "migrated.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.connection.creation._nodb_cursor() as cursor:
                cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE 'migrated_%'")
                found = {name for (name,) in cursor.fetchall()}
            if self.template not in found:
                name = self.create_test_db(*arguments, **options)
                self._keep(name, found)
                return name
        self.connection.settings_dict["TEST"] |= {"TEMPLATE": self.template, "MIGRATE": False}
        return self.create_test_db(*arguments, **options)

    def _keep(self, name: str, outdated: set[str]) -> None:
        """Copy the migrated database to the template. Databases with sessions cannot be copied."""
        self.connection.close()
        self.connection.close_pool()
        with self.connection.creation._nodb_cursor() as cursor:
            for database in outdated:
                cursor.execute(f'DROP DATABASE "{database}"')
            cursor.execute(f'CREATE DATABASE "{self.template}" TEMPLATE "{name}"')
        self.connection.ensure_connection()


def schema_digest() -> str:
    """A digest of all files on which the migrated database depends."""
    digest = hashlib.sha256((BASE / "requirements.txt").read_bytes())
    for path in sorted(schema_files()):
        digest.update(f"{path.relative_to(BASE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def schema_files() -> Iterator[Path]:
    """Migrations, the modules of this project that they import, models (for permissions), and SQL."""
    imported = re.compile(rf"^(?:from|import) ((?:{'|'.join(PACKAGES)})\.[\w.]+)", re.MULTILINE)
    modules = set()
    for package in PACKAGES:
        for pattern in ("models.py", "models/*.py", "*.sql"):
            yield from (BASE / package).rglob(pattern)
        for path in (BASE / package).rglob("migrations/*.py"):
            yield path
            modules |= set(imported.findall(path.read_text()))
    for module in modules:
        yield from [path for path in [BASE / (module.replace(".", "/") + ".py")] if path.exists()]


def flushed(call_command: Callable[..., Any]) -> Callable[..., Any]:
    """`call_command` with a fast `flush`, which Django calls after each test that commits.

    Django's own truncates every table, which creates new files for the table and each index, and creates
    content types and permissions again: 0.1 s of CPU after each test.
    """

    def call(command: str, *arguments: Any, **options: Any) -> Any:
        if command == "flush":
            connection = connections[options["database"]]
            if is_busy(connection):
                connection.close()
            # A running answer that a test left behind may still be stored at this moment.
            if retry_on_deadlock(deleted)(connection):
                return None
        return call_command(command, *arguments, **options)

    return call


def is_busy(connection: Any) -> bool:
    """Whether a time limit ended the test during a statement, which makes this connection unusable."""
    session = connection.connection
    return session is not None and session.info.transaction_status == TransactionStatus.ACTIVE


def deleted(connection: Any) -> bool:
    """Delete all rows but those of migrations; False if there are many rows, which are truncated faster."""
    names = connection.introspection.django_table_names(include_views=False)
    with reading_everything(), transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for _ in range(3):  # a trigger may fill a table when another one is emptied
            # Most tables were never filled, and asking for sizes costs less than looking into tables.
            cursor.execute(SIZES, [sorted(set(names) - MIGRATED)])
            sizes = dict(cursor.fetchall())
            if not sizes:
                return True
            cursor.execute("SELECT " + ", ".join(f'EXISTS (SELECT FROM "{name}")' for name in sizes))
            filled = [name for name, has_rows in zip(sizes, cursor.fetchone(), strict=True) if has_rows]
            if not filled:
                return True
            if max(sizes[name] for name in filled) > MANY_BYTES:
                return False
            for name in filled:
                verb = "TRUNCATE" if name in UNDELETABLE else "DELETE FROM"
                cursor.execute(f'{verb} "{name}"')
    return False
