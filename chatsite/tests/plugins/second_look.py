"""Pytest plugin: tests that failed beside others run once more, alone (`--second-look`).

Tests of deadlines and of browsers share the processors with other test processes. Failed tests run again in
one process, with no other tests beside it. The run fails if any test fails again. Otherwise it passes, and
its last lines name the unstable tests, which should be fixed.
"""

import subprocess
import sys

import pytest

MOST = 20  # failures; more than these are no coincidence

_failed: dict[str, None] = {}  # ids of tests in the order of their failures
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
        _failed[report.nodeid] = None
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
        or not 0 < len(_failed) <= MOST
    ):
        return result
    writer = config.get_terminal_writer()
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        writer.line(f"\nA second look at {len(_failed)} that failed beside others, alone:")
        writer.flush()
        again = subprocess.run([sys.executable, "-m", "pytest", *_failed], cwd=config.rootpath, check=False)
        if again.returncode == 0:
            session.exitstatus = pytest.ExitCode.OK
            writer.line("These tests are unstable: they failed beside others and passed alone.")
            for nodeid in _failed:
                writer.line(f"  {nodeid}")
            writer.flush()
    return result
