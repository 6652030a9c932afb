"""Prepares the database.

Checks that the server is reachable and recent enough, and migrates the database in one process at a time.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from chatsite import environment
from chatsite.db.availability import first_line
from chatsite.db.migration_state import unapplied_migrations

from . import embedded_postgres
from .pooler import check_sessions
from .refusal import StartRefused

LOCK = 7_236_114_901  # key of an advisory lock: an arbitrary number that must never change
MIN_POSTGRESQL = 16
MIN_PGVECTOR = (0, 8)
CONNECT_SECONDS = 5


def parameters() -> dict[str, Any]:
    """libpq parameters of the configured database; DATABASE_DIRECT_URL has precedence."""
    direct, usual = (environment.database_url(name) for name in ("DATABASE_DIRECT_URL", "DATABASE_URL"))
    return direct or usual or embedded_postgres.connection_parameters(settings.DATA_DIR)


def connect(parameters: Mapping[str, Any]) -> psycopg.Connection[tuple[Any, ...]]:
    """A session outside of the pool. Raises StartRefused."""
    try:
        return psycopg.connect(**{"connect_timeout": CONNECT_SECONDS, **parameters}, autocommit=True)
    except psycopg.Error as error:
        raise StartRefused(f"The database cannot be reached: {first_line(error)}") from error


@contextlib.contextmanager
def start_lock(parameters: Mapping[str, Any]) -> Iterator[None]:
    """Check the server, enable pgvector if necessary, then hold the site's advisory lock.

    Other starts on this database wait. `parameters` are libpq's. Raises StartRefused.
    """
    session = connect(parameters)
    with session:
        check_sessions()
        row = session.execute(
            "SELECT coalesce(installed_version, default_version), installed_version IS NOT NULL"
            " FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
        vector, is_installed = row or (None, False)
        if problem := complaint(session.info.server_version, vector):
            raise StartRefused(problem)
        if not is_installed:
            try:
                session.execute("CREATE EXTENSION IF NOT EXISTS vector")
            except psycopg.errors.UniqueViolation:
                pass  # another process created it at the same time
            except psycopg.Error:
                raise StartRefused(
                    "pgvector is not enabled in this database, and its role may not enable it:"
                    " have an administrator run CREATE EXTENSION vector there."
                ) from None
        session.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield


def migrate() -> None:
    """Apply migrations; the caller holds the lock. Raises StartRefused."""
    try:
        if unapplied_migrations():
            with connection.cursor() as cursor:
                # No time limits: those of requests are too short for migrating a large table.
                cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            call_command("migrate", interactive=False, verbosity=0)
    except (DatabaseError, psycopg.Error) as error:
        raise StartRefused(f"The database cannot be migrated: {first_line(error)}") from error
    finally:
        connection.close()


def complaint(server_version: int, vector_version: str | None) -> str | None:
    """Why the server cannot be used; None if it can.

    `server_version` is libpq's: 180001 is 18.1.
    """
    major = server_version // 10_000
    if major < MIN_POSTGRESQL:
        return f"PostgreSQL {MIN_POSTGRESQL} or newer is needed; the database runs {major}."
    if vector_version is None:
        return "The extension pgvector is missing: install it on the database server."
    if tuple(int(part) for part in vector_version.split(".")[:2]) < MIN_PGVECTOR:
        return f"pgvector 0.8 or newer is needed; the database has {vector_version}."
    return None
