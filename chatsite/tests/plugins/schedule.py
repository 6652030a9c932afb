"""Pytest plugin: decides which modules share a process, and which of them start first.

All tests of a module run in one process. Modules that use the same session-wide site share a process, so that
the site is started once; these come first. Then come slow modules, which compute, in turn with those that use
servers and browsers and so wait for much of their time: together they keep the processors busy. The short
ones at the end let all processes finish at about the same time. While the first module with a database has
it created, modules without one keep the other processes busy.
"""

import os
from collections import Counter
from itertools import chain, zip_longest

import pytest
from django.test import TransactionTestCase
from xdist.scheduler import LoadFileScheduling

TOGETHER = {
    "fault_site": (
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
        "browser/test_evaluation_view",
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
        return waits, module != first, place_by_size[module]

    ordered = sorted(numbers, key=place)
    grouped = [module for module in ordered if module in GROUPS]
    waiting = [module for module in ordered if module in serving and module not in GROUPS]
    computing = [module for module in ordered if module in slow and module not in serving]
    in_turn = filter(None, chain.from_iterable(zip_longest(computing, waiting)))
    # Each module has the place of its first mention.
    places = {module: place for place, module in enumerate(dict.fromkeys([*grouped, *in_turn, *ordered]))}
    order = sorted(range(len(items)), key=lambda number: places[modules[number]])
    items[:] = [items[number] for number in order]


def uses_database(item):
    """Whether a test uses the tests' database."""
    if item.cls and issubclass(item.cls, TransactionTestCase):
        return True
    return item.get_closest_marker("django_db") is not None
