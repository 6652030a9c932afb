"""Measures the embedded PostgreSQL's use of CPU, memory and disk."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

INTERVAL = 1.0  # seconds between two samples
MEGABYTE = 2**20


@dataclass
class Usage:
    """Elapsed seconds, PostgreSQL's CPU seconds, and its peak memory in megabytes."""

    seconds: float = 0.0
    processor: float = 0.0
    shared: float = 0.0
    private: float = 0.0
    # {process: CPU seconds}, including processes that have ended.
    _times: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Sample the CPU time and memory of the processes."""
        shared = private = 0.0
        for process in server_processes():
            with contextlib.suppress(psutil.Error, OSError, KeyError):  # the process may end meanwhile
                times = process.cpu_times()
                self._times[process.pid] = times.user + times.system
                status = dict(
                    line.split(":", 1)
                    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
                )
                shared = max(shared, float(status["RssShmem"].split()[0]) / 1024)
                private += float(status["RssAnon"].split()[0]) / 1024
        self.shared, self.private = max(self.shared, shared), max(self.private, private)

    def total(self) -> float:
        """CPU seconds of all processes seen so far."""
        return sum(self._times.values())

    def __str__(self) -> str:
        return (
            f"{self.seconds:.0f} s, {self.processor:.0f} s of PostgreSQL's CPU time,"
            f" memory {self.shared:.0f} MB shared and {self.private:.0f} MB private"
        )


def server_processes() -> list[psutil.Process]:
    """PostgreSQL's processes of this data directory."""
    file = Path(os.environ["CHATSITE_DATA_DIR"], "postgres", "postmaster.pid")
    main = psutil.Process(int(file.read_text().partition("\n")[0]))
    return [main, *main.children(recursive=True)]


def processor_milliseconds(connection: Any) -> float:
    """CPU milliseconds of this thread and of the PostgreSQL process that serves it."""
    connection.ensure_connection()
    served = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
    return time.thread_time() * 1e3 + int(served.split()[0]) / 1e6


@contextlib.contextmanager
def measured(what: str) -> Iterator[Usage]:
    """Measure the usage within the block, and print it at the end."""
    usage, ended = Usage(), threading.Event()
    usage.look()
    before, started = usage.total(), time.perf_counter()

    def watch() -> None:
        while not ended.wait(INTERVAL):
            usage.look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield usage
    finally:
        ended.set()
        watcher.join()
        usage.look()
        usage.seconds, usage.processor = time.perf_counter() - started, usage.total() - before
        print(f"  {what}: {usage}", flush=True)
