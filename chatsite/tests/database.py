"""Pytest plugin, loaded before the settings: tests use a PostgreSQL of their own."""

import atexit
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections, transaction

os.environ.setdefault("CHATSITE_DATA_DIR", str(Path(__file__).resolve().parent.parent.parent / ".data-test"))
os.environ.setdefault("CHATSITE_DEBUG", "0")
for name in (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "CHAT_MODEL",
    "EMBEDDING_MODEL",
    "EMBEDDING_DIMENSIONS",
    "EMBEDDING_MODEL_DIR",
    "REDIS_URL",
    "RERANK_MODEL",
    "RERANK_BASE_URL",
    "RERANK_API_KEY",
    "OIDC_ISSUER",
    "OIDC_AUDIENCE",
    "CHATSITE_CORS_ORIGINS",
    "CHATSITE_LOGIN_REQUIRED",
):
    os.environ.pop(name, None)

# WhiteNoise warns where it is missing.
Path(os.environ["CHATSITE_DATA_DIR"], "static").mkdir(parents=True, exist_ok=True)

from django.test import testcases  # noqa: E402

from chatsite.db.threads import read_everything_by_default, reading_everything  # noqa: E402
from chatsite.server.embedded_postgres import Cluster  # noqa: E402

read_everything_by_default()  # a test makes what its people may not read; requests have their callers
if not os.environ.get("DATABASE_URL"):
    cluster = Cluster(Path(os.environ["CHATSITE_DATA_DIR"]))
    cluster.start()
    atexit.register(cluster.stop)


MIGRATED = {"django_migrations", "django_content_type", "auth_permission"}
UNDELETABLE = {"accounts_auditentry", "accounts_auditseal"}  # their triggers refuse; nothing refers to them
MANY_BYTES = 2_000_000


@pytest.fixture(autouse=True)
def unhashed_static_files(settings: Any) -> None:
    """Tests render templates without collecting static files first."""
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }


def pytest_configure() -> None:
    """Passwords of tests need no slow hash; the real servers of tests have their own settings."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    testcases.call_command = flushed(testcases.call_command)


def flushed(call_command: Callable[..., Any]) -> Callable[..., Any]:
    """`call_command` for a test that commits: empties the database quickly after it, where that is possible.

    Django truncates every table, which makes new files for it and each index, and makes content types and
    permissions anew: 0.1 s of CPU after each test.
    """

    def call(command: str, *arguments: Any, **options: Any) -> Any:
        if command == "flush" and deleted(connections[options["database"]]):
            return None
        return call_command(command, *arguments, **options)

    return call


def deleted(connection: Any) -> bool:
    """Delete all rows but those that migrations make; whether that was done. Many are truncated faster."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = sorted(set(names) - MIGRATED)
    with reading_everything(), transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for _ in range(3):  # a trigger may fill a table when another is emptied
            cursor.execute("SELECT " + ", ".join(f'EXISTS (SELECT FROM "{name}")' for name in tables))
            filled = [name for name, has_rows in zip(tables, cursor.fetchone(), strict=True) if has_rows]
            if not filled:
                return True
            cursor.execute(
                "SELECT max(pg_relation_size(name::regclass)) FROM unnest(%s::text[]) name", [filled]
            )
            if cursor.fetchone()[0] > MANY_BYTES:
                return False
            for name in filled:
                verb = "TRUNCATE" if name in UNDELETABLE else "DELETE FROM"
                cursor.execute(f'{verb} "{name}"')
    return False
