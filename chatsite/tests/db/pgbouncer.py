"""Debian's PgBouncer between a site and its database."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import psycopg

from chatsite.tests.server import temporary_folder

START_SECONDS = 10
CONFIGURATION = """
[databases]
* = host={host} port={port} user={user} password={password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 500
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
{more}
"""


class PgBouncer:
    """A pooler in front of the server at `parameters` (libpq's); `url` is the address through it."""

    def __init__(self, parameters, mode="transaction", size=4, more=""):
        self.parameters, self.mode, self.size, self.more = parameters, mode, size, more
        self.process = None

    def __enter__(self):
        self.folder = temporary_folder()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        file = self.folder / "pgbouncer.ini"
        file.write_text(self._configuration())
        # It refuses to run as root, and only the server's account can use the embedded server's socket.
        drop = []
        if os.geteuid() == 0:
            account = Path(self.parameters["host"]).stat()
            for path in (self.folder, file):
                os.chown(path, account.st_uid, account.st_gid)
            drop = ["setpriv", f"--reuid={account.st_uid}", f"--regid={account.st_gid}", "--clear-groups"]
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        self.process = subprocess.Popen(
            [*drop, program, "-q", str(file)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "pgbouncer.log").read_text()
            assert time.monotonic() < deadline, "PgBouncer does not answer."
            time.sleep(0.05)
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self):
        return f"postgresql://{self.parameters['user']}@127.0.0.1:{self.port}/{self.parameters['dbname']}"

    def _answers(self):
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _configuration(self):
        return CONFIGURATION.format(
            host=self.parameters["host"],
            port=self.parameters["port"],
            user=self.parameters["user"],
            password=_password(self.parameters),
            listen=self.port,
            mode=self.mode,
            size=self.size,
            folder=self.folder,
            more=self.more,
        )


def _password(parameters):
    for line in Path(parameters["passfile"]).read_text().splitlines():
        *_, user, password = line.split(":")
        if user == parameters["user"]:
            return password
    return secrets.token_hex()
