"""The embedded database around a manage.py command."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .cluster import Cluster, EmbeddedDatabaseError

DATABASE_FREE = frozenset(
    {"help", "--help", "-h", "version", "--version", "check", "collectstatic", "findstatic", "diffsettings",
     "makemessages", "compilemessages", "startapp", "startproject", "spectacular"}
)  # fmt: skip


def data_directory() -> Path:
    """The same rule as in the settings, which cannot be imported yet."""
    value = os.environ.get("CHATSITE_DATA_DIR", "").strip()
    default = Path(__file__).resolve().parent.parent.parent / ".data"
    return (Path(value).expanduser() if value else default).resolve()


@contextlib.contextmanager
def database_for(arguments: Sequence[str]) -> Iterator[None]:
    """Run the embedded PostgreSQL while a command works, where the command needs one and no other is set."""
    command = arguments[1] if len(arguments) > 1 else "help"
    if os.environ.get("DATABASE_URL", "").strip() or command in DATABASE_FREE:
        yield
        return
    cluster = Cluster(data_directory())
    try:
        cluster.start()
    except EmbeddedDatabaseError as error:
        sys.exit(str(error))
    try:
        yield
    finally:
        cluster.stop()
