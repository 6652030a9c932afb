"""Pytest plugin: keeps Python's garbage collector from scanning objects that live as long as the run.

All tests exist before the first one runs. Without this, each full garbage collection would scan them and all
modules.
"""

import gc

THRESHOLDS = 20_000, 20, 50  # Python's defaults are 700, 10, 10


def pytest_collection() -> None:
    """Collect rarely while modules are imported and tests are created, because none of these is garbage."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()


def pytest_collection_finish() -> None:
    """Exempt the tests and all modules from collection."""
    gc.collect()
    gc.freeze()
