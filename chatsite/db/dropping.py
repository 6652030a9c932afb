"""Dropping databases that somebody may still use."""

from typing import Any

import psycopg
from psycopg import sql


def drop_database(session: psycopg.Connection[Any], name: str) -> None:
    """Drop a database, if it exists, and end its sessions. `session` commits by itself.

    With FORCE, PostgreSQL ends this role's sessions, but it refuses if the superuser's autovacuum is running
    there. Without FORCE, PostgreSQL ends autovacuum, and waits five seconds for all other sessions to end.
    """
    statement = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name))
    try:
        session.execute(statement + sql.SQL(" WITH (FORCE)"))
    except psycopg.errors.InsufficientPrivilege:
        session.execute(statement)
