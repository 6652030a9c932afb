"""Failed tests run once more, alone, and only the second result counts."""

import os
import subprocess
import sys

import pytest

from chatsite.tests.server import BASE

pytestmark = pytest.mark.slow

TESTS = """
import os, pathlib, unittest

def has_run(name):
    file = pathlib.Path(name)
    before = file.exists()
    file.touch()
    return before

def test_good():
    assert not has_run("good")

def test_unstable():
    assert has_run("unstable")

class Unstable(unittest.TestCase):
    def test_in_part(self):
        with self.subTest("part"):
            self.assertTrue(has_run("part"))

def test_broken():
    assert not os.environ.get("BROKEN")

def test_crash():
    if os.environ.get("CRASH"):
        os._exit(1)
"""

MODULE = """
import os, pathlib, pytest

@pytest.fixture(scope="module")
def shared():
    file = pathlib.Path("shared")
    before = file.exists()
    file.touch()
    assert before

@pytest.mark.parametrize("number", range(30))
def test_with_it(shared, number):
    pass
"""


def run(folder, *arguments, **environment):
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "chatsite.tests.plugins.second_look", *arguments]
    environment = {
        **os.environ,
        "PYTHONPATH": str(BASE),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # other plugins take a second to load
        "PYTEST_ADDOPTS": "-p xdist -p no:cacheprovider",
    } | environment
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["one process", "two processes"])
def test_a_test_that_passes_alone_is_named_and_does_not_fail_the_run(tmp_path, parallel):
    done = run(tmp_path, "--second-look", *parallel)
    assert done.returncode == 0, done.stdout
    first, second = done.stdout.split("A second look at 2 that failed beside others, alone:")
    assert "2 failed" in first
    assert "2 passed" in second, "the good one does not run again, and a subtest's failure counts"
    unstable = second.split("passed alone.\n")[1]
    assert sorted(unstable.split()) == [
        "test_some.py::Unstable::test_in_part",
        "test_some.py::test_unstable",
    ]


def test_a_fixture_that_many_tests_share_fails_once(tmp_path):
    (tmp_path / "test_shared.py").write_text(MODULE)
    done = run(tmp_path, "--second-look", "test_shared.py")
    assert done.returncode == 0, done.stdout
    first, second = done.stdout.split("A second look at 1 that failed beside others, alone:")
    assert "30 errors" in first
    assert "30 passed" in second
    assert second.split("passed alone.\n")[1].split() == ["test_shared.py"]


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["--second-look"], {"BROKEN": "1"}),
        ([], {}),
        (["--second-look", "-n", "2", "--max-worker-restart", "0"], {"CRASH": "1"}),
    ],
    ids=["what fails twice", "without the option", "a process that died"],
)
def test_the_run_fails_for(tmp_path, arguments, environment):
    done = run(tmp_path, *arguments, **environment)
    assert done.returncode != 0, done.stdout
    assert "These tests are unstable" not in done.stdout
    assert ("A second look" in done.stdout) == ("BROKEN" in environment)
