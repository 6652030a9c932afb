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


def test_modules_without_a_database_begin_while_the_first_with_one_has_it_made():
    def tests(module, kind, number=1, mark=None):
        item = SimpleNamespace(
            nodeid=f"{module}::test", cls=kind, get_closest_marker=lambda name: name == mark or None
        )
        return [item] * number

    items = [
        *tests("plain", None),
        *tests("of a database", TestCase, 2),
        *tests("simple", SimpleTestCase, 2),
        *tests("marked", None, 3, "django_db"),
        *tests("slow", TestCase, 1, "slow"),
        *tests("serving", None, 1, "server"),
    ]
    pytest_collection_modifyitems(items)
    order = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in items))
    assert order == ["serving", "slow", "marked", "simple", "plain", "of a database"]
