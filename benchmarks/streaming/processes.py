"""Starts processes, and reads their figures from the kernel. Linux only."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .client import Outcome

FOLDER = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def server(module: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Start a module of this package as a process; return its pid and port."""
    command = [sys.executable, "-m", f"streaming.{module}", *arguments]
    process = subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def load(**plan: Any) -> list[Outcome]:
    """Run the client until it ends; return the outcomes."""
    command = [sys.executable, "-m", "streaming.client"]
    ran = subprocess.run(
        command, cwd=FOLDER, input=json.dumps(plan), stdout=subprocess.PIPE, text=True, check=True
    )
    return [Outcome(**outcome) for outcome in json.loads(ran.stdout)]


def cpu_seconds(pid: int) -> float:
    """The user and system time of a process so far."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def megabytes(pids: Iterable[int]) -> float:
    """The memory of several processes; shared pages count once."""
    return sum(_rolled_up(pid, "Pss") for pid in pids) / 1000


def own_kilobytes(pid: int) -> int:
    """The private memory of a process, without unmodified pages of files, which other processes may share."""
    return _rolled_up(pid, "Private_Dirty")


def open_files(pid: int) -> int:
    return len(list((Path("/proc") / str(pid) / "fd").iterdir()))


def _rolled_up(pid: int, name: str) -> int:
    rollup = (Path("/proc") / str(pid) / "smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith(f"{name}:"))
