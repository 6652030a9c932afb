"""The next test run removes what a killed one has left, but nothing that a running one uses."""

import subprocess
import sys
from pathlib import Path

import psutil

from chatsite.tests import leftovers
from chatsite.tests.server import BASE, alive

RUN = """
import os, subprocess, sys
from chatsite.tests.leftovers import temporary_folder
folder = temporary_folder()
(folder / "file").touch()
sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
site = subprocess.Popen(sleeping, env={"CHATSITE_DATA_DIR": str(folder)})
server = subprocess.Popen([*sleeping, "-D", f"{folder}/postgres"])
print(folder, site.pid, server.pid, flush=True)
sys.stdin.read()
"""


def lives(number):
    return psutil.pid_exists(int(number)) and alive(psutil.Process(int(number)))


def test_leftovers_of_a_dead_run_are_removed_and_those_of_a_running_one_stay(monkeypatch):
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=BASE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    folder, *processes = run.stdout.readline().split()
    monkeypatch.setattr(leftovers, "YOUNG_SECONDS", 0)
    mine = leftovers.temporary_folder()
    assert folder not in map(str, leftovers.clear())
    assert [lives(process) for process in processes] == [True, True]
    run.kill()
    run.wait()
    assert folder in map(str, leftovers.clear())
    assert not Path(folder).exists()
    assert not any(lives(process) for process in processes)
    assert mine.exists()
    mine.rmdir()
