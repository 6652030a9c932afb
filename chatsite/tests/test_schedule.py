"""Which modules share a process."""

import re

from chatsite.tests.schedule import GROUPS
from chatsite.tests.server import BASE


def test_each_module_of_a_group_uses_the_site_that_the_group_is_named_for():
    for path, group in GROUPS.items():
        assert re.search(rf"def \w+\(.*\b{group}\b", (BASE / path).read_text()), path


def test_no_other_module_starts_these_sites_in_another_process():
    using = re.compile(rf"^def \w+\(.*\b({'|'.join(set(GROUPS.values()))})\b", re.MULTILINE)
    found = {
        str(path.relative_to(BASE))
        for path in BASE.glob("*/tests/test_*.py")
        if using.search(path.read_text())
    }
    assert found - GROUPS.keys() == set()
