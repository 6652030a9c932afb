"""Paths of the embedded database, and secrets of the site, in the data directory.

Paths are computed without reading the disk, so that the settings can contain the socket's path before the
server runs.
"""

import contextlib
import hashlib
import os
import pwd
import secrets
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import IO

SERVER_ACCOUNT = "nobody"  # runs PostgreSQL if the site is started by root
DATABASE = ROLE = "chatsite"
PORT = 5432  # only part of the socket's name; nothing listens on TCP
SOCKET_PATH_LIMIT = 100  # bytes; the kernel accepts 107


def cluster_directory(data: Path) -> Path:
    return data / "postgres"


def password_file(data: Path) -> Path:
    """A libpq password file, which only its owner can read."""
    return data / "postgres.pgpass"


def secret_key_file(data: Path) -> Path:
    return data / "secret_key"


def socket_directory(data: Path) -> Path:
    """The directory of the socket: the cluster's, or a shorter one if that path is too long."""
    directory = cluster_directory(data)
    if len(os.fsencode(directory / f".s.PGSQL.{PORT}")) <= SOCKET_PATH_LIMIT:
        return directory
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"chatsite-{digest}"


def open_lock(path: Path) -> IO[bytes]:
    """Open a lock file that other accounts cannot open; otherwise they could keep it locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if os.fstat(descriptor).st_mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "r+b")


def is_private(folder: Path, accounts: Collection[int]) -> bool:
    """Whether this is a folder that belongs to one of the accounts and is closed to others; not a link."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid in accounts and not status.st_mode & 0o077


def server_account_name() -> str:
    """The name of the account that PostgreSQL runs as, never root; empty if it has no name."""
    try:
        return SERVER_ACCOUNT if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def connection_parameters(data: Path, role: str = ROLE, database: str = DATABASE) -> dict[str, str | int]:
    """libpq parameters of the embedded database, whether or not it is running."""
    # Do not connect, or send a password, to another account's process on the socket's path.
    peer: dict[str, str | int] = {"requirepeer": name} if (name := server_account_name()) else {}
    return peer | {
        "require_auth": "scram-sha-256",
        "dbname": database,
        "user": role,
        "host": str(socket_directory(data)),
        "port": PORT,
        "passfile": str(password_file(data)),
        "password": "",  # otherwise, the variable PGPASSWORD would take precedence over the password file
    }


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def secret_key(data: Path) -> str:
    """The site's signing key, created once and stored in the data directory.

    If the directory is not writable, the key only lasts as long as the process, so that commands that need
    no data (`check`, `makemessages`) still work; `up` reports such a directory.
    """
    path = secret_key_file(data)
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    key = secrets.token_urlsafe(48)
    with contextlib.suppress(OSError):
        data.mkdir(mode=0o711, parents=True, exist_ok=True)
        write_secret(path, key)
        return path.read_text().strip()
    return key
