"""The processes of a running site.

This module starts them, restarts each after a crash, and stops all of them together.
"""

import contextlib
import http.client
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from chatsite.server.embedded_postgres import Cluster

from .interrupt import interrupt
from .refusal import StartRefused

# Two malloc arenas: Python threads run one at a time, so an arena for each would only fragment memory.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
STOP_SECONDS = 4  # in addition to the grace period of running answers
STEADY_SECONDS = 30  # a process that crashes after living this long is restarted at once
LONGEST_DELAY = 30.0
CHECK_SECONDS = 1.0
READY_SECONDS = 60
POLL_SECONDS = 0.05


def report(line: str) -> None:
    """Write a line to the log, if possible: the site continues if the log's disk is full."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


@dataclass
class Child:
    """One process of the site.

    `module` is run with `--parent` and `arguments`. If it `serves`, it also gets `--serving` with a
    descriptor, to which it writes as soon as it accepts requests.
    """

    title: str
    module: str
    arguments: Sequence[str] = ()
    descriptors: Sequence[int] = ()
    serves: bool = False
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_again_at: float = 0.0
    failures: int = 0
    pidfd: int = field(default=-1, repr=False)
    # The end of a pipe that becomes readable once the process accepts requests.
    ready_pipe: int = field(default=-1, repr=False)
    serving: bool = False

    def start(self) -> None:
        reading, writing = os.pipe() if self.serves else (-1, -1)
        serving = ["--serving", str(writing)] if self.serves else []
        self.process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", self.module, "--parent", str(os.getpid()), *self.arguments, *serving],
            cwd=Path(__file__).resolve().parent.parent.parent,
            env=ENVIRONMENT | os.environ,
            pass_fds=[*self.descriptors, *([writing] if self.serves else [])],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches only the parent, which then stops its children
        )
        if self.serves:
            os.close(writing)
        self.ready_pipe, self.serving = reading, False
        self.pidfd = os.pidfd_open(self.process.pid)
        self.started_at = time.monotonic()

    def ended(self) -> int | None:
        """The exit status of the process if it has ended since the last call."""
        status = self.process.poll() if self.process else None
        if status is not None:
            self.process = None
            os.close(self.pidfd)
            self._close_ready_pipe()
            self.serving = False
        return status

    def read_ready_pipe(self) -> None:
        """Note that the process accepts requests, unless it has only closed its end of the pipe."""
        self.serving = bool(os.read(self.ready_pipe, 1))
        self._close_ready_pipe()

    def _close_ready_pipe(self) -> None:
        if self.ready_pipe >= 0:
            os.close(self.ready_pipe)
            self.ready_pipe = -1

    def plan_restart(self) -> None:
        now = time.monotonic()
        self.failures = 0 if now - self.started_at > STEADY_SECONDS else self.failures + 1
        delay = min(LONGEST_DELAY, 0.25 * 2**self.failures) if self.failures > 1 else 0.0
        self.start_again_at = now + delay


class Children:
    """All processes of a site."""

    def __init__(self) -> None:
        self.children: list[Child] = []

    def add(self, children: Sequence[Child]) -> None:
        for child in children:
            self.children.append(child)
            child.start()

    def wait(self, seconds: float) -> list[tuple[Child, int]]:
        """Wait until a process ends or begins to serve, at most `seconds`.

        Returns the ended processes with their exit status. Raises KeyboardInterrupt after a signal.
        """
        interrupt.check()
        descriptors = [child.pidfd for child in self.children if child.process]
        starting = [child for child in self.children if child.ready_pipe >= 0]
        readable, _, _ = select.select(
            [*descriptors, *(child.ready_pipe for child in starting)], [], [], seconds
        )
        for child in starting:
            if child.ready_pipe in readable:
                child.read_ready_pipe()
        ended = [(child, child.ended()) for child in self.children]
        return [(child, status) for child, status in ended if status is not None]

    def keep_running(self, check: Callable[[], None]) -> None:
        """Watch until interrupted: log and restart processes that die.

        `check` is called at least once a second, for whatever else the caller watches.
        """
        while True:
            check()
            for child, status in self.wait(min(self._next_start(), CHECK_SECONDS)):
                child.plan_restart()
                end = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
                report(f"The {child.title} {end}; it is restarted.")
            now = time.monotonic()
            for child in self.children:
                if child.process is None and child.start_again_at <= now:
                    child.start()

    def all_crash(self) -> bool:
        """Whether no web server serves requests, and each has crashed at least twice in a row."""
        servers = [child for child in self.children if child.serves]
        return bool(servers) and all(child.failures > 1 and not child.serving for child in servers)

    def seconds_to_start(self) -> float:
        """Seconds until the next restart of a crashed process."""
        return min(self._next_start(), LONGEST_DELAY)

    def close(self) -> None:
        """Terminate every process, and kill those that do not end in time, or at a second Ctrl-C.

        Safe to call twice.
        """
        running = [child.process for child in self.children if child.process]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + settings.GRACE_SECONDS + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
                if isinstance(reason, KeyboardInterrupt):
                    deadline = 0.0
                process.kill()
                process.wait()

    def _next_start(self) -> float:
        waiting = [child.start_again_at for child in self.children if child.process is None]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else 3600.0


def wait_until_ready(children: Children, host: str, port: int) -> None:
    """Return when `/readyz` succeeds.

    Raises StartRefused if a process dies, READY_SECONDS have passed, or the site refuses its own host name.
    """
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        for child, status in children.wait(POLL_SECONDS):
            raise StartRefused(f"The {child.title} did not start; it ended with status {status}.")
        status = 0
        with (
            contextlib.closing(http.client.HTTPConnection(host, port, timeout=5)) as connection,
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            connection.request("GET", "/readyz", headers={"Host": _allowed_host()})
            status = connection.getresponse().status
        if status == http.client.OK:
            return
        if status == http.client.BAD_REQUEST:
            raise StartRefused(
                f"The site refuses its own name {_allowed_host()}: see CHATSITE_ALLOWED_HOSTS."
            )
    raise StartRefused(f"The site did not answer within {READY_SECONDS} seconds.")


def _allowed_host() -> str:
    """A host name that ALLOWED_HOSTS accepts."""
    names = [name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    return names[0] if names else "localhost"


class DatabaseSupervisor:
    """Restarts the embedded PostgreSQL after it has died; without a cluster it does nothing."""

    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._seen_dead = False

    def check(self) -> None:
        """Restart the server if two checks in a row find it dead.

        A single check may coincide with a restart.
        """
        if self._cluster is None or self._cluster.alive():
            self._seen_dead = False
        elif not self._seen_dead:
            self._seen_dead = True
        elif self._cluster.restart():
            self._seen_dead = False
            report("The database server ended; it was restarted.")
