"""`manage.py up`: the whole site with one command."""

import contextlib
import fcntl
import logging
import os
import socket
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from chat import runs
from chat.persons.erasure import erase_returned
from chatsite import environment
from chatsite.accounts.models import User
from chatsite.accounts.oidc.claimed_accounts import drop_unmapped_memberships
from chatsite.checks import check_database_role, serious_problems
from chatsite.demo import create_demo, demo_accounts, exposed_by, refusal
from chatsite.management.commands.work import processes, workers
from chatsite.server import (
    address,
    database_setup,
    embedded_postgres,
    static_files,
)
from chatsite.server.processes import (
    Child,
    Children,
    DatabaseSupervisor,
    wait_until_ready,
)
from chatsite.server.refusal import StartRefused
from chatsite.server.serving.fallback_server import FallbackServer
from ingestion.embedding import pending_change
from ingestion.search.dictionary import prepare_dictionary

logger = logging.getLogger(__name__)

START_SECONDS = 2  # start time of a web server, for Retry-After
# Two workers if there is more than one core: one reads while the other waits for the database. Each uses up
# to one core, and 200 MB of memory.
WORKERS = min(2, os.cpu_count() or 1)
NOTIFICATION_CONNECTIONS = 2  # database connections of each web server, in addition to its pool
WORKER_CONNECTIONS = 5  # database connections of each worker
OTHER_CONNECTIONS = 25  # database connections of `up` itself and of other commands


class Command(BaseCommand):
    help = (
        "Start the site: database, migrations, web servers and ingestion workers. Ctrl-C stops all of them."
    )
    requires_system_checks = []  # the command runs its checks itself, and reports a problem in one line

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--web-workers", type=processes(1), default=1, help="Web server processes.")
        parser.add_argument(
            "--workers", type=processes(0), default=WORKERS, help="Ingestion worker processes (%(default)s)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        children = Children()
        try:
            if problems := serious_problems():
                raise StartRefused("\n".join(problems))
            _check_folder("data directory", settings.DATA_DIR, 0o711)
            if settings.STORAGE == "FILESYSTEM":
                _check_folder("folder for files (CHATSITE_MEDIA_ROOT)", Path(settings.MEDIA_ROOT), 0o700)
            listener = address.take(environment.text("HOST", "127.0.0.1"), environment.integer("PORT", 8000))
            static_files.collect()
            prepare_dictionary()
            fallback = FallbackServer(listener, lambda: ceil(children.seconds_to_start()) + START_SECONDS)
            gate, opener = os.pipe()
            arguments = ["--socket", str(listener.fileno()), "--gate", str(gate)]
            inherited = [listener.fileno(), gate]
            children.add(
                [
                    Child(
                        "web server", "chatsite.server.serving.web_process", arguments, inherited, serves=True
                    )
                    for _ in range(options["web_workers"])
                ]
            )
            # At the end, the socket is closed first, so that a proxy uses other machines while answers finish
            # here.
            with (
                _data_directory_lock(),
                (
                    embedded_postgres.running(
                        settings.DATA_DIR, _connections(options["web_workers"], options["workers"])
                    )
                    if settings.EMBEDDED_DATABASE
                    else contextlib.nullcontext()
                ) as cluster,
                contextlib.closing(children),
                contextlib.closing(listener),
            ):
                database = DatabaseSupervisor(cluster)
                _prepare()
                os.close(opener)  # the web servers serve from here on, as soon as they have loaded
                wait_until_ready(children, *address.reachable(listener))
                with contextlib.suppress(OSError):  # the output is closed, or its disk is full
                    self._announce(listener)
                connections.close_all()
                children.add(workers(options["workers"]))

                def check() -> None:
                    database.check()
                    fallback.set_active(children.all_crash())

                children.keep_running(check)
        except (StartRefused, embedded_postgres.EmbeddedDatabaseError) as error:
            sys.exit(str(error))
        finally:
            children.close()

    def _announce(self, listener: socket.socket) -> None:
        self.stdout.write(f"{settings.SITE_NAME} answers at {address.url(listener)} (Ctrl-C stops it)")
        accounts = demo_accounts()
        if accounts:
            self.stdout.write("\nDemo accounts:")
        elif settings.DEMO and settings.EMBEDDED_DATABASE and not User.objects.exists():
            self.stdout.write(
                f"\nThe site can be reached from other machines ({exposed_by()}), so it has no demo accounts."
                " Create an administrator with `manage.py createsuperuser`."
            )
        for account in accounts:
            self.stdout.write(f"  {account.username:<10} {account.password:<24} {account.description}")
        if change := pending_change():
            self.stdout.write(f"\n{change}")
        if settings.REDIS_URL and not _redis_answers():
            self.stdout.write(
                "\nRedis cannot be reached (REDIS_URL): until it can, readers get updates up to 1 s late."
            )
        for warning in check_database_role(None, list(connections)):
            self.stdout.write(f"\n{warning.msg}")
        self.stdout.flush()


def _connections(web_workers: int, workers: int) -> int:
    """The most database connections that these processes, and commands beside them, open at once."""
    of_web_worker: int = (
        settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"] + NOTIFICATION_CONNECTIONS
    )
    return web_workers * of_web_worker + workers * WORKER_CONNECTIONS + OTHER_CONNECTIONS


@contextlib.contextmanager
def _data_directory_lock() -> Iterator[None]:
    """With the embedded database, lock the data directory, which only one site may use.

    The kernel releases the lock if the process is killed.
    """
    with embedded_postgres.open_lock(settings.DATA_DIR / "up.lock") as lock:
        if settings.EMBEDDED_DATABASE:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StartRefused(
                    f"Another site is running with the data directory {settings.DATA_DIR}."
                ) from None
        yield


def _prepare() -> None:
    """Steps that only one starting process at a time may run."""
    with database_setup.start_lock(database_setup.parameters()):
        database_setup.migrate()
        if settings.EMBEDDED_DATABASE:
            # No other site uses the embedded database, so the processes that wrote unfinished answers are
            # dead.
            runs.expire_all()
            if settings.DEMO:
                create_demo()
        if count := drop_unmapped_memberships():
            logger.warning(
                "Group memberships that came from the sign-in provider without a mapping were removed: %s."
                " Map these groups in the admin, or set OIDC_GROUPS_BY_NAME=1.",
                count,
            )
        for line in erase_returned():
            logger.warning(line)
        if reason := refusal():
            raise StartRefused(reason)


def _redis_answers() -> bool:
    """Whether Redis accepts connections."""
    parts = urlsplit(settings.REDIS_URL)
    try:
        if parts.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(parts.path)
        else:
            socket.create_connection((parts.hostname, parts.port or 6379), timeout=1).close()
    except OSError:
        return False
    return True


def _check_folder(name: str, directory: Path, mode: int) -> None:
    """Check that the folder is writable, by writing to it.

    Permissions do not apply to root, and do not reveal a full or read-only disk.
    """
    try:
        directory.mkdir(mode=mode, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise StartRefused(f"The {name} {directory} is not a directory.") from None
    except OSError as error:
        raise StartRefused(f"The {name} {directory} cannot be written: {error.strerror}.") from None
