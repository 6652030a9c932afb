"""Runs the embedded database while a manage.py command works."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from chatsite import environment

from . import paths
from .cluster import (
    MIN_CONNECTIONS,
    Cluster,
    EmbeddedDatabaseError,
)

DATABASE_FREE = frozenset(
    {"help", "--help", "-h", "version", "--version", "check", "collectstatic", "findstatic", "diffsettings",
     "makemessages", "compilemessages", "startapp", "startproject", "spectacular",
     "config", "up"}  # `up` starts the database itself, after binding the site's port
)  # fmt: skip
DEFAULT_DIRECTORY = Path(__file__).resolve().parents[3] / ".data"


def data_directory() -> Path:
    """The data directory, by the same rule as in the settings, which cannot be imported yet."""
    try:
        return _given_directory()
    except (RuntimeError, OSError):  # the settings report this error
        return DEFAULT_DIRECTORY


def _given_directory() -> Path:
    """The data directory. Raises RuntimeError or OSError if CHATSITE_DATA_DIR is not a valid path."""
    value = os.environ.get("CHATSITE_DATA_DIR", "").strip()
    return (Path(value).expanduser() if value else DEFAULT_DIRECTORY).resolve()


@contextlib.contextmanager
def running(data: Path, connections: int = MIN_CONNECTIONS) -> Iterator[Cluster]:
    """Run the embedded PostgreSQL of a data directory within the block.

    If this starts the server, it accepts `connections` clients. At the end of the block, even after an
    interrupt during the start, the server is stopped unless another process uses it. Raises
    EmbeddedDatabaseError.
    """
    cluster = Cluster(data, connections)
    try:
        cluster.start()
        yield cluster
    finally:
        with _ignoring_signals():
            cluster.stop()


@contextlib.contextmanager
def database_for(arguments: Sequence[str]) -> Iterator[None]:
    """Run the embedded PostgreSQL during a command that needs a database, if none is configured."""
    command = arguments[1] if len(arguments) > 1 else "help"
    wants_help = not {"-h", "--help"}.isdisjoint(arguments)
    if command == "doctor" and not (wants_help or _has_site()):
        sys.exit(
            f"There is no site in the data directory {data_directory()}: correct CHATSITE_DATA_DIR, or start"
            " the site first."
        )
    if command in DATABASE_FREE or environment.given("DATABASE_URL")[0]:
        yield
        return
    try:
        with running(data_directory()):
            yield
    except EmbeddedDatabaseError as error:
        sys.exit(str(error))


def _has_site() -> bool:
    """Whether the data directory has what a site stores there, unless settings provide it.

    This is the database and the secret key. Loading the settings, and starting the database, would create
    what is missing. A setting that is wrong is reported later.
    """
    with contextlib.suppress(OSError, RuntimeError):
        data = _given_directory()
        needed = []
        if not environment.given("DATABASE_URL")[0]:
            needed.append(paths.cluster_directory(data))
        if not environment.given("CHATSITE_SECRET_KEY")[0]:
            needed.append(paths.secret_key_file(data))
        return all(path.exists() for path in needed)
    return True


@contextlib.contextmanager
def _ignoring_signals() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM here and in child processes.

    A second signal would leave the server running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
