"""Pytest plugin: seeds `random` before each test, and prints the seed with every failure.

TEST_SEED repeats a run. (Its name has no CHATSITE_ before it: a site refuses settings that it does not know.)
"""

import os
import random
import sys

import pytest

VARIABLE = "TEST_SEED"


def pytest_configure() -> None:
    """Choose the seed once, before xdist starts its workers, which inherit the environment."""
    os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(1_000_000)))


def pytest_report_header() -> str:
    """Print the seed."""
    return f"{VARIABLE}={os.environ[VARIABLE]}"


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """The same random numbers for a test whichever tests ran before it."""
    sys.stdout.write(f"{VARIABLE}={os.environ[VARIABLE]}\n")  # captured, so shown where the test fails
    random.seed(f"{os.environ[VARIABLE]} {request.node.nodeid}")
