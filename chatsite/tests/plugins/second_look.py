"""Pytest plugin: tests that failed beside others run once more, alone (`--second-look`).

Tests of deadlines and of browsers share the processors with other test processes. Failed tests run again in
one process, with no other tests beside it. The run fails if any test fails again. Otherwise it passes, and
its last lines name the unstable tests, which should be fixed.
"""

import subprocess
import sys

import pytest

MAX_FAILURES = 20  # failures; more than these are no coincidence

# Ids of failed tests, in the order of their failures. If a fixture failed, its module: it may be one that all
# tests of the module share, so that each of them has failed for the same reason.
_failed: dict[str, None] = {}
_crashes: list[str] = []


def pytest_addoption(parser):
    """Add the option."""
    parser.addoption(
        "--second-look",
        action="store_true",
        help="run tests that failed once more, alone, and let that decide",
    )


def pytest_runtest_logreport(report):
    """Note a failure of a test, of one of its subtests or of its fixtures."""
    if report.failed:
        module = report.nodeid.partition("::")[0]
        _failed[module if report.when == "setup" else report.nodeid] = None
        if "crashed while running" in str(report.longrepr):
            _crashes.append(report.nodeid)  # its process ended before its other tests ran


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session, exitstatus):
    """Run the failed tests again after the summary of the first run."""
    result = yield
    config = session.config
    if (
        not config.getoption("second_look")
        or hasattr(config, "workerinput")
        or exitstatus != pytest.ExitCode.TESTS_FAILED
        or _crashes
        or session.shouldfail
        or session.shouldstop
        or not 0 < len(_failed) <= MAX_FAILURES
    ):
        return result
    again = [nodeid for nodeid in _failed if "::" not in nodeid or nodeid.partition("::")[0] not in _failed]
    writer = config.get_terminal_writer()
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        writer.line(f"\nA second look at {len(again)} that failed beside others, alone:")
        writer.flush()
        result_alone = subprocess.run(
            [sys.executable, "-m", "pytest", *again], cwd=config.rootpath, check=False
        )
        if result_alone.returncode == 0:
            session.exitstatus = pytest.ExitCode.OK
            writer.line("These tests are unstable: they failed beside others and passed alone.")
            for nodeid in again:
                writer.line(f"  {nodeid}")
            writer.flush()
    return result
