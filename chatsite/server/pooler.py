"""Checks the database URLs.

They must lead to PostgreSQL itself, or to a pooler that the site supports. PgBouncer in transaction mode runs
each transaction in any of its server sessions. Settings, advisory locks and LISTEN of one client then
silently apply to others. The site works with such a pooler if DATABASE_DIRECT_URL bypasses the pooler;
otherwise the start is refused.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import psycopg

from chatsite import environment
from chatsite.db.availability import first_line
from chatsite.db.backend.database_sessions import Session

from .refusal import StartRefused

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 1.5
ROUNDS = 5
SET_PROBE = "SELECT set_config('chatsite.probe', %s, false)"
GET_PROBE = "SELECT pg_backend_pid(), coalesce(current_setting('chatsite.probe', true), '')"
IDENTITY = """
    SELECT (SELECT system_identifier FROM pg_control_system()), database.oid, current_user
    FROM pg_database AS database WHERE database.datname = current_database()
"""
# Two statements in one message, like the first message of each transaction (chatsite.db.backend.pooling).
TOGETHER = "SELECT set_config('chatsite.probe', 'x', true); SELECT current_setting('chatsite.probe', true)"
POOLED, DIRECT = "DATABASE_URL", "DATABASE_DIRECT_URL"


class Probe(Session):
    _seconds = STATEMENT_SECONDS  # for each statement


def check_sessions() -> None:
    """Raise StartRefused if a pooler would mix up settings, locks or notifications of clients."""
    usual, direct = environment.database_url(POOLED), environment.database_url(DIRECT)
    if usual and not direct:
        if problem := _fault_of_sessions(usual, POOLED):
            cure = f"set {DIRECT} to the address of PostgreSQL itself (docs/deploy.md)"
            raise StartRefused(f"{POOLED} leads to a connection pooler that {problem}: {cure}.")
    elif usual and direct:
        if problem := _fault_of_sessions(direct, DIRECT):
            raise StartRefused(
                f"{DIRECT} leads to a connection pooler that {problem}: it must lead to PostgreSQL itself."
            )
        _check_pooled(usual, direct)


def _fault_of_sessions(parameters: Mapping[str, Any], name: str) -> str:
    """The problem of the sessions at this address; empty if there is none."""
    token = uuid4().hex
    with _connect(parameters, name) as first, _connect(parameters, name) as second:
        try:
            if _is_shared(first, second, token):
                return "gives each transaction another session (transaction mode)"
        except psycopg.Error as error:
            if error.sqlstate is None:  # no response in time
                raise StartRefused(f"The database cannot be reached: {first_line(error)}") from error
            return f"keeps no sessions ({first_line(error)})"
    try:
        with Probe.connect(**_values(parameters, f"-c chatsite.probe={token}")) as session:
            kept = session.execute(GET_PROBE).fetchone()
    except psycopg.Error:
        kept = None
    return "" if kept and kept[1] == token else "drops the settings of a session"


def _is_shared(first: Probe, second: Probe, token: str) -> bool:
    """Whether two clients share one server session, or one client gets several."""
    first.execute(SET_PROBE, [token])
    own = first.execute(GET_PROBE).fetchone()
    for _ in range(ROUNDS):
        # In transaction mode, a pooler gives a new transaction the session that was returned last. The second
        # client's transaction therefore gets the first client's session, and the first client must then get
        # another one.
        second.execute("BEGIN")
        other = second.execute(GET_PROBE).fetchone()
        if other is None or other[1] == token or first.execute(GET_PROBE).fetchone() != own:
            return True
        second.execute("ROLLBACK")
    return own is None or own[1] != token


def _check_pooled(pooled: Mapping[str, Any], direct: Mapping[str, Any]) -> None:
    """Raise StartRefused unless both URLs lead to the same database, and transactions work."""
    with _connect(pooled, POOLED) as session, _connect(direct, DIRECT) as own:
        try:
            with session.transaction():
                identity = session.execute(IDENTITY).fetchone()
            together = session.execute(TOGETHER)
            together.nextset()
            kept = together.fetchone() == ("x",)
        except psycopg.Error as error:
            raise StartRefused(
                f"{POOLED} leads to a pooler without transactions: {first_line(error)}"
            ) from error
        if identity != own.execute(IDENTITY).fetchone():
            raise StartRefused(f"{POOLED} and {DIRECT} must lead to the same database, with the same role.")
        if not kept:
            raise StartRefused(f"{POOLED} leads to a pooler that splits the statements of a message.")


def _connect(parameters: Mapping[str, Any], name: str) -> Probe:
    try:
        return Probe.connect(**_values(parameters))
    except psycopg.Error as error:
        raise StartRefused(f"The database cannot be reached ({name}): {first_line(error)}") from error


def _values(parameters: Mapping[str, Any], options: str = "") -> dict[str, Any]:
    """Connection parameters without the operator's `options`, which a pooler may refuse."""
    given = {name: value for name, value in parameters.items() if name != "options"}
    return (
        given
        | ({"options": options} if options else {})
        | {"connect_timeout": CONNECT_SECONDS, "autocommit": True}
    )
