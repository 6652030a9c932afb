"""Pytest plugin: keeps Python's garbage collector from scanning what lives as long as the run.

All tests exist before the first one runs. Without this, each full collection of garbage would look through
them and all modules.
"""

import gc

THRESHOLDS = 20_000, 20, 50  # Python's own are 700, 10, 10


def pytest_collection() -> None:
    """Collect rarely while modules are imported and tests are made: none of them is garbage."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()


def pytest_collection_finish() -> None:
    """Exempt the tests and all modules."""
    gc.collect()
    gc.freeze()
