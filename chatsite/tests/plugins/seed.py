"""Pytest plugin: seeds `random` before each test, and prints the seed with every failure.

TEST_SEED repeats a run. (Its name does not begin with CHATSITE_, because a site refuses unknown settings.)
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
    """Give a test the same random numbers, whatever tests ran before it."""
    # Captured, so it is shown only if the test fails.
    sys.stdout.write(f"{VARIABLE}={os.environ[VARIABLE]}\n")
    random.seed(f"{os.environ[VARIABLE]} {request.node.nodeid}")
