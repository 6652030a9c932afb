"""Ctrl-C and SIGTERM while a command loads."""

import signal
import subprocess
import sys

import pytest

from chatsite.server.interrupt import Interrupt
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import BASE

# Sends a signal during the import of a module, in a process that ignores SIGINT like a shell's background
# jobs. An exception raised there can be replaced by another one, for instance in `__set_name__`.
LOADING = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            sys.meta_path.remove(self)
            try:
                signal.raise_signal({number})
            except KeyboardInterrupt as error:
                raise RuntimeError from error

signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, Finder())
sys.argv = ["manage.py", "check"]
sys.path.insert(0, os.getcwd())
runpy.run_path("manage.py", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["django", "chatsite.settings"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_while_a_command_loads_ends_it_without_an_error(number, module):
    command = [sys.executable, "-c", LOADING.format(number=int(number), module=module)]
    done = subprocess.run(command, cwd=BASE, capture_output=True, timeout=HANG_SECONDS, check=False)
    # So short a command may finish before the signal is handled.
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_signal_whose_exception_was_swallowed_is_found_by_the_next_check():
    interrupt = Interrupt()
    interrupt.arm()
    interrupt.check()
    with pytest.raises(KeyboardInterrupt):
        interrupt._note(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        interrupt.check()
