"""Which modules share a process, and the order in which they start."""

import re
from types import SimpleNamespace

from django.test import SimpleTestCase, TestCase

from chatsite.tests.plugins.schedule import GROUPS, pytest_collection_modifyitems
from chatsite.tests.server import BASE


def uses(site):
    """A pattern of lines in which a module uses one of these sites, as an argument or by name."""
    return re.compile(rf"^def \w+\(.*\b{site}\b|getfixturevalue\(.*\"{site}\"", re.MULTILINE)


def test_each_module_of_a_group_uses_the_site_that_the_group_is_named_for():
    for path, group in GROUPS.items():
        assert uses(group).search((BASE / path).read_text()), path


def test_no_other_module_starts_these_sites_in_another_process():
    using = uses(f"({'|'.join(set(GROUPS.values()))})")
    found = {
        str(path.relative_to(BASE))
        for path in BASE.glob("*/tests/**/test_*.py")
        if using.search(path.read_text())
    }
    assert found - GROUPS.keys() == set()


def items_of(module, kind, number=1, mark=None):
    item = SimpleNamespace(
        nodeid=f"{module}::test", cls=kind, get_closest_marker=lambda name: name == mark or None
    )
    return [item] * number


def order_of(items):
    """The modules in the order in which the plugin puts them."""
    pytest_collection_modifyitems(items)
    return list(dict.fromkeys(item.nodeid.partition("::")[0] for item in items))


def test_modules_without_a_database_begin_while_the_first_with_one_has_it_made():
    items = [
        *items_of("plain", None),
        *items_of("of a database", TestCase, 2),
        *items_of("simple", SimpleTestCase, 2),
        *items_of("marked", None, 3, "django_db"),
    ]
    assert order_of(items) == ["marked", "simple", "plain", "of a database"]


def test_modules_that_compute_and_those_that_wait_come_in_turn_after_the_groups():
    group = next(iter(GROUPS))
    items = [
        *items_of("plain", None, 9),
        *items_of("slow", TestCase, 2, "slow"),
        *items_of("slow, too", None, 1, "slow"),
        *items_of("serving", None, 2, "server"),
        *items_of("browsing", None, 1, "browser"),
        *items_of("slow at last", None, 1, "slow"),
        *items_of(group, None, 1, "server"),
    ]
    order = order_of(items)
    assert order[0] == group
    assert order[-1] == "plain"
    computes = [name.startswith("slow") for name in order[1:-1]]
    assert computes == [True, False, True, False, True]
