"""Pytest plugin: decides which modules share a process, and which of them start first.

All tests of a module run in one process. Modules that use the same session-wide site share a process, so that
the site is started once. Modules with servers and browsers come first, then slow ones, so that the short ones
at the end let all processes finish at about the same time. While the first module with a database has it
created, modules without one keep the other processes busy.
"""

import os
from collections import Counter

import pytest
from django.test import TransactionTestCase
from xdist.scheduler import LoadFileScheduling

TOGETHER = {
    "faulty": (
        "failures/test_process_faults",
        "failures/test_client_faults",
        "db/test_full_disk",
        "failures/test_socket_faults",
        "db/test_store_faults",
        "db/test_frozen_database",
        "failures/test_hostile_answers_in_time",
        "failures/test_withdrawn_sources",
        "serving/test_orderly_end",
    ),
    "slow_site": (
        "browser/test_walkthrough",
        "failures/test_life_of_an_answer",
        "browser/test_reconnecting",
        "browser/test_accessibility",
        "browser/test_composer",
        "browser/test_two_devices",
        "browser/test_proof_view",
        "http/test_half_closed",
        "browser/test_conversation_list",
        "browser/test_attached_files",
        "admin/test_accessible_admin",
        "admin/test_admin_errors",
    ),
}
GROUPS = {f"chatsite/tests/{name}.py": group for group, names in TOGETHER.items() for name in names}


class GroupScheduling(LoadFileScheduling):
    """Hand out modules, or groups of modules, in the order of collection."""

    def _split_scope(self, nodeid):
        module = super()._split_scope(nodeid)
        return GROUPS.get(module, module)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers():
    """The number of processes for `-n logical`: one more than processors, because some tests wait."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Use the scheduler above for `--dist loadfile`."""
    if config.getvalue("dist") == "loadfile":
        config.option.loadscopereorder = False
        return GroupScheduling(config, log)
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Sort the modules; the tests of each keep the order of pytest-django."""
    modules = [item.nodeid.partition("::")[0] for item in items]
    numbers = Counter(modules)
    serving, slow = (
        {
            module
            for module, item in zip(modules, items, strict=True)
            if any(map(item.get_closest_marker, markers))
        }
        for markers in (("server", "browser"), ("slow",))
    )
    by_size = sorted(numbers, key=lambda module: (-numbers[module], module))
    place_by_size = {module: place for place, module in enumerate(by_size)}
    with_database = {module for module, item in zip(modules, items, strict=True) if uses_database(item)}
    first = next((module for module in by_size if module in with_database), None)

    def place(module):
        waits = module in with_database and module != first
        before = module not in GROUPS, module not in serving, module not in slow
        return *before, waits, module != first, place_by_size[module]

    order = sorted(range(len(items)), key=lambda number: place(modules[number]))
    items[:] = [items[number] for number in order]


def uses_database(item):
    """Whether a test uses the tests' database."""
    if item.cls and issubclass(item.cls, TransactionTestCase):
        return True
    return item.get_closest_marker("django_db") is not None
