"""The embedded database around a manage.py command."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from chatsite import environment

from .cluster import (
    Cluster,
    EmbeddedDatabaseError,
)

DATABASE_FREE = frozenset(
    {"help", "--help", "-h", "version", "--version", "check", "collectstatic", "findstatic", "diffsettings",
     "makemessages", "compilemessages", "startapp", "startproject", "spectacular",
     "config", "up"}  # `up` starts it itself, after it has its port
)  # fmt: skip


def data_directory() -> Path:
    """The same rule as in the settings, which cannot be imported yet."""
    value = os.environ.get("CHATSITE_DATA_DIR", "").strip()
    default = Path(__file__).resolve().parents[3] / ".data"
    try:
        return (Path(value).expanduser() if value else default).resolve()
    except (RuntimeError, OSError):  # the settings refuse it with a sentence
        return default


@contextlib.contextmanager
def running(data: Path) -> Iterator[Cluster]:
    """The embedded PostgreSQL of a data directory, up for as long as the block runs.

    Raises EmbeddedDatabaseError. However the block ends, also interrupted while the server starts, the
    server is left, and stopped where nobody else uses it.
    """
    cluster = Cluster(data)
    try:
        cluster.start()
        yield cluster
    finally:
        with _undisturbed():
            cluster.stop()


@contextlib.contextmanager
def database_for(arguments: Sequence[str]) -> Iterator[None]:
    """Run the embedded PostgreSQL while a command works, where the command needs one and no other is set."""
    command = arguments[1] if len(arguments) > 1 else "help"
    if command in DATABASE_FREE or environment.given("DATABASE_URL")[0]:
        yield
        return
    try:
        with running(data_directory()):
            yield
    except EmbeddedDatabaseError as error:
        sys.exit(str(error))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore a second Ctrl-C, which would leave the server behind; here, and in the programs started here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
