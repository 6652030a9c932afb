"""The real site in processes of its own, for tests that need sockets, kills and restarts.

    with Site(folder) as site:            # `manage.py up` on a free port, with a data directory of its own
        session = site.sign_in("employee")
        session.get("/").text
        site.kill_web(); site.wait_until_ready()

Importable fixtures: `site` (one for the whole session, with the demo).
"""

import fcntl
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from chatsite.server.embedded_postgres import connection_parameters
from chatsite.tests import leftovers
from chatsite.tests.client import Session
from chatsite.tests.foreign_settings import FOREIGN
from chatsite.tests.leftovers import temporary_folder
from chatsite.tests.limits import HANG_SECONDS

BASE = Path(__file__).resolve().parent.parent.parent
ADDRESS = re.compile(r"answers at (http://\S+)")
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
ACCOUNT = re.compile(r"^  (\S+)\s+(\S+-\S+-\d+)\s", re.MULTILINE)
METRICS_TOKEN = "a-token-of-these-tests"
UNREAD = "SELECT count(*) FROM ingestion_document WHERE status NOT IN ('ready', 'failed')"
BLOCKED = "The event loop was blocked"
IN_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$0" "$@"']  # as for a shell's background jobs
FORGOTTEN = {*FOREIGN, "DATABASE_URL", "DATABASE_DIRECT_URL", "PYTHONDONTWRITEBYTECODE"}


class Site:
    """`manage.py up` as a child process. `folder` is its data directory; it survives stop and start."""

    code = BASE  # the checkout of another version
    settings = "chatsite.settings"  # tests have other settings

    def __init__(self, folder, demo=True, web_workers=1, workers=1, **environment):
        self.folder = Path(folder)
        self.web_workers = web_workers
        self.workers = workers
        self.environment = environment | {"CHATSITE_DEMO": "1" if demo else "0"}
        self.process = None
        self.url = ""
        self.output = ""
        self._lines = queue.Queue()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            if self.process:
                self.kill()
            raise

    def __exit__(self, *exception):
        self.stop()
        assert BLOCKED not in self.output, self.output[self.output.index(BLOCKED) :][:3000]

    def start(self):
        """Start, and wait for the address line."""
        self.spawn()
        return self.wait_for_address()

    def wait_for_address(self):
        deadline = time.monotonic() + HANG_SECONDS
        while not (found := ADDRESS.search(self.output)):
            assert self._read(deadline - time.monotonic()), f"The site did not start:\n{self.output[-3000:]}"
        self.url = found.group(1).rstrip("/")
        # The lines after the address are written almost at the same time.
        while self._read(0.15):
            pass
        return self

    def command(self):
        options = [f"--web-workers={self.web_workers}", f"--workers={self.workers}"]
        return [*IN_BACKGROUND, sys.executable, "manage.py", "up", *options]

    def spawn(self):
        """Start without waiting."""
        self.output = ""
        self._lines = queue.Queue()
        environment = {name: value for name, value in os.environ.items() if name not in FORGOTTEN}
        environment |= {
            "CHATSITE_DATA_DIR": str(self.folder),
            "HOST": "127.0.0.1",
            "PORT": "0",
            "CHATSITE_LOOP_WATCHDOG_SECONDS": "0.5",
            "PYTHONUNBUFFERED": "1",
            "CHATSITE_GRACE_SECONDS": "1",
            "CHATSITE_QUOTING_WORDS_PER_SECOND": "60",  # slow enough for tests to see words arrive
            "DJANGO_SETTINGS_MODULE": self.settings,
            **self.environment,
        }
        self.process = subprocess.Popen(
            self.command(),
            cwd=self.code,
            env={name: value for name, value in environment.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._pump, args=(self.process, self._lines), daemon=True).start()

    def session(self):
        return Session(self.url)

    @property
    def passwords(self):
        """The passwords of the demo accounts, as the terminal shows them."""
        return dict(ACCOUNT.findall(self.output))

    def sign_in(self, username, password=""):
        session = self.session()
        page = session.get("/accounts/sign-in/").text
        fields = {
            "csrfmiddlewaretoken": TOKEN.search(page).group(1),
            "username": username,
            "password": password or self.passwords[username],
        }
        answer = session.post("/accounts/sign-in/", fields)
        assert answer.status == 302, f"{username} cannot sign in: {answer.status}"
        return session

    def children(self, module=""):
        """psutil processes of the site, for instance `children("chatsite.server.serving.web_process")`."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in found if module in " ".join(_command(child))]

    def wait_for(self, module, seconds=HANG_SECONDS):
        """Wait until a process of the site runs."""
        deadline = time.monotonic() + seconds
        while not self.children(module):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def wait_for_worker(self):
        """The worker starts after the site answers."""
        deadline = time.monotonic() + HANG_SECONDS
        while not self.children("chatsite.server.worker") and time.monotonic() < deadline:
            time.sleep(0.02)

    def lines(self, text):
        """The number of times a text has been printed."""
        while self._read(0.1):
            pass
        return self.output.count(text)

    def kill_web(self):
        for child in self.children("chatsite.server.serving.web_process"):
            child.kill()

    def postgres(self):
        """The running embedded PostgreSQL's process, or None."""
        try:
            number = int((self.folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])
            process = psutil.Process(number)
        except (OSError, ValueError, IndexError, psutil.NoSuchProcess):
            return None
        return process if alive(process) else None

    def wait_until_ready(self, seconds=HANG_SECONDS):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.session().get("/readyz").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        while self._read(0.1):
            pass
        raise AssertionError(f"The site is not ready after {seconds} s:\n{self.output[-3000:]}")

    def stop(self, number=signal.SIGINT, seconds=HANG_SECONDS):
        """The exit status of `up` after a signal; None if it does not run."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(seconds)
        while self._read(0.05):
            pass
        self.process = None
        return status

    def kill(self):
        """Kill `up` without a chance to clean up."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def outcome(self, seconds=HANG_SECONDS):
        """(exit status, output) of a start that is expected to fail."""
        self.spawn()
        status = self.process.wait(seconds)
        while self._read(0.1):
            pass
        self.process = None
        return status, self.output

    def _read(self, seconds):
        try:
            line = self._lines.get(timeout=max(0.01, seconds))
        except queue.Empty:
            return False
        self.output += line
        return bool(line)

    @staticmethod
    def _pump(process, lines):
        with process.stdout:
            for line in process.stdout:
                lines.put(line)
        lines.put("")


def _command(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def alive(process):
    """Whether a psutil process still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def prepared(folder, demo=True):
    """Fill the folder with the data of a stopped site that has read the demo's documents.

    The data are made once for each test run, and copied, because a first start takes three times as long.
    """
    kind = "demo" if demo else "empty"
    template = _templates() / kind
    template.parent.mkdir(mode=0o711, exist_ok=True)
    leftovers.keep(template.parent)
    with (template.parent / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            made = template.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)  # left by a test that could not finish it
            made.mkdir(mode=0o711)
            if demo:  # so that the migrations, most of a first start, run once for both kinds of site
                prepared(made, demo=False)
            with Site(made, demo=demo) as site:
                wait_for_documents(site)
            made.rename(template)
    subprocess.run(["cp", "-a", f"{template}/.", str(folder)], check=True)
    return folder


def _templates():
    """A folder that all processes of this run share."""
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return Path(tempfile.gettempdir()) / f"{leftovers.PREFIX}templates-{run}"


def wait_for_documents(site, seconds=HANG_SECONDS):
    """Wait until every document of the site was read."""
    deadline = time.monotonic() + seconds
    with psycopg.connect(**reading_parameters(site.folder), autocommit=True) as connection:
        while connection.execute(UNREAD).fetchone() != (0,):
            assert time.monotonic() < deadline, "The sample documents were not read."
            time.sleep(0.2)


def reading_parameters(folder):
    """libpq's parameters of a site's database, for a session that sees all documents."""
    return connection_parameters(folder) | {"options": "-c chatsite.reader=everything"}


def pytest_configure():
    """Sites of tests hash passwords quickly, sites of benchmarks as the product does."""
    Site.settings = "chatsite.tests.site_settings"


def pytest_unconfigure():
    """Remove the templates; the first process of a run ends last."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(_templates(), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def cleared():
    """Remove what killed test runs have left."""
    leftovers.clear()


@pytest.fixture(scope="session")
def site():
    """One running site with the demo for all tests of a session; tests leave it as they found it."""
    folder = temporary_folder()
    try:
        with Site(prepared(folder), CHATSITE_METRICS_TOKEN=METRICS_TOKEN) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)
