"""Claims temporary databases, drops abandoned ones, and drops a database that is in use."""

from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

Session = psycopg.Connection[tuple[Any, ...]]

_CLAIM = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_UNCLAIM = "SELECT pg_advisory_unlock(%s, hashtext(%s))"
# Databases whose names have the prefix, that have no sessions, and that the role may drop.
_ABANDONED = """
    SELECT datname FROM pg_database
    WHERE starts_with(datname, %s) AND pg_has_role(datdba, 'USAGE')
      AND NOT EXISTS (SELECT FROM pg_stat_activity AS session WHERE session.datid = pg_database.oid)
"""


def claim(session: Session, locks: int, name: str) -> bool:
    """Mark a temporary database as in use until the session ends; False if another session uses it.

    `locks` is the first half of the keys of the advisory locks for databases of this kind.
    """
    return session.execute(_CLAIM, [locks, name]).fetchone() == (True,)


def drop_abandoned(session: Session, locks: int, prefix: str) -> list[str]:
    """Drop the databases with this prefix that killed processes have left; returns their names."""
    dropped = []
    for (name,) in session.execute(_ABANDONED, [prefix]).fetchall():
        if not claim(session, locks, name):
            continue
        with suppress(psycopg.errors.ObjectInUse, psycopg.errors.InvalidCatalogName):
            session.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))
            dropped.append(name)
        session.execute(_UNCLAIM, [locks, name])
    return dropped


def drop_database(session: psycopg.Connection[Any], name: str) -> None:
    """Drop a database, if it exists, and end its sessions. `session` must be in autocommit mode.

    With FORCE, PostgreSQL ends this role's sessions, but it refuses if the superuser's autovacuum is running
    there. Without FORCE, PostgreSQL ends autovacuum, and waits five seconds for all other sessions to end.
    """
    statement = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name))
    try:
        session.execute(statement + sql.SQL(" WITH (FORCE)"))
    except psycopg.errors.InsufficientPrivilege:
        session.execute(statement)
