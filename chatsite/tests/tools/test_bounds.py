"""A test run that hangs ends by itself, and reports where it hung."""

import os
import signal
import subprocess
import sys

import pytest

from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import BASE

pytestmark = pytest.mark.server  # starts other processes

HANGING = """
import threading
import time
import unittest
import pytest

class AsynchronousTests(unittest.TestCase):
    def test_in_a_thread(self):
        thread = threading.Thread(target=self.subtests)
        thread.start()
        thread.join()

    def subtests(self):
        for number in (1, 2):
            with self.subTest(number):
                self.assertEqual(number, "expected")

@pytest.fixture
def lasting():
    yield
    threading.Event().wait()

def test_of_a_lock():
    print("it begins", flush=True)
    while True:  # a signal that arrives just before a single long wait would be handled only after it
        time.sleep(0.1)

def test_of_a_fixture(lasting):
    assert False, "and then its end hangs too"
"""


@pytest.fixture
def run(tmp_path):
    """Start pytest on the tests above, with the plugin alone; it is ended with the test."""
    (tmp_path / "test_hanging.py").write_text(HANGING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    started = []

    def start(name, *options, **environment):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "chatsite.tests.plugins.bounds",
            "-p",
            "no:cacheprovider",
        ]
        alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take a second to load
        process = subprocess.Popen(
            [*command, "-p", "pytest_timeout", "-k", name, *options, str(tmp_path)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(BASE)} | alone | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_test_that_hangs_fails_with_the_stacks_of_all_threads_and_all_subtests_are_reported(run):
    process = run("lock or thread", "--timeout=1")
    output, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    assert "Timeout (>1.0s) from pytest-timeout" in output
    for number in (1, 2):  # Django runs asynchronous tests outside the main thread
        assert f"AssertionError: {number} != 'expected'" in output


def test_a_fixture_that_hangs_after_a_failure_ends_the_process_with_its_stacks(run):
    process = run("fixture", TEST_TEARDOWN_SECONDS="1")
    output, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 1
    assert "Timeout (0:00:01)!" in output
    assert "in lasting" in output


def test_a_terminated_run_names_the_tests_that_were_running(run):
    process = run("lock", "-s")
    while "it begins" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert "These tests were running:\n  test_hanging.py::test_of_a_lock, for " in output
    assert "stopped by SIGTERM" in output
