"""Pytest plugin: ends a run that hangs, and reports where it hung.

pytest-timeout fails a test that takes too long, with the stacks of all threads. A process that does not
react, or whose fixtures do not end afterwards, writes its stacks and exits (`faulthandler_timeout` and
TEARDOWN_SECONDS). On SIGTERM, which `timeout` sends, a run names the tests that were running, and each of its
processes writes its stacks.
"""

import faulthandler
import os
import signal
import sys
import threading
import time

import pytest

# Limit for the teardown of all fixtures of a test, with those of its module and of the session.
TEARDOWN_SECONDS = float(os.environ.get("TEST_TEARDOWN_SECONDS", "400"))
FAULT_LOG = os.dup(sys.__stderr__.fileno())  # bypasses pytest's capture

_running: dict[str, float] = {}  # {test: its start}; in xdist's main process also the tests of its workers


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown():
    """Limit the teardown, because pytest-timeout's limit has ended for a test that has failed."""
    faulthandler.dump_traceback_later(TEARDOWN_SECONDS, file=FAULT_LOG, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_configure(config):
    """Write the stacks of a worker, or the names of the running tests, on SIGTERM."""
    if hasattr(config, "workerinput"):
        faulthandler.register(signal.SIGTERM, file=FAULT_LOG, chain=True)
    else:
        signal.signal(signal.SIGTERM, _stop)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item):
    """Keep the timer if a subtest fails outside the main thread, such as one of an asynchronous test.

    Only the main thread may cancel the timer; the error would end the test and hide the assertion. Returns
    True to skip pytest-timeout's own function.
    """
    return True if threading.current_thread() is not threading.main_thread() else None


def pytest_runtest_logstart(nodeid):
    """Note a test that begins."""
    _running[nodeid] = time.monotonic()


def pytest_runtest_logfinish(nodeid):
    """Forget a test that has ended."""
    _running.pop(nodeid, None)


def describe_running():
    """A line for each running test, the oldest first."""
    now = time.monotonic()
    return [f"  {nodeid}, for {now - since:.0f} s" for nodeid, since in _running.items()]


def _stop(number, frame):
    lines = ["", "Stopped by SIGTERM. These tests were running:", *describe_running(), ""]
    os.write(FAULT_LOG, "\n".join(lines).encode())
    faulthandler.dump_traceback(file=FAULT_LOG)
    pytest.exit("stopped by SIGTERM", returncode=128 + signal.SIGTERM)
