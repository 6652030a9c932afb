"""Pytest plugin: seeds `random` before each test, and prints the seed with every failure.

TEST_SEED repeats a run. TEST_COMPLETE=1 tries all cases of the tests that otherwise try a sample. (The names
do not begin with CHATSITE_, because a site refuses unknown settings.)
"""

import os
import random
import sys
from collections.abc import Iterable
from typing import TypeVar

import pytest

VARIABLE = "TEST_SEED"
COMPLETE = "TEST_COMPLETE"
T = TypeVar("T")


def sample(cases: Iterable[T], one_in: int = 4) -> list[T]:
    """Choose some of the cases of a test that has very many, in their order: others in each run."""
    every = list(cases)
    if os.environ.get(COMPLETE):
        return every
    chosen = random.sample(range(len(every)), -(-len(every) // one_in))
    return [every[place] for place in sorted(chosen)]


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
