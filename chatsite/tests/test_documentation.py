"""What the documents promise about the site's settings is what the site reads."""

import re

from django.conf import settings
from django.test import SimpleTestCase

READ = re.compile(r'environment\.\w+\(\s*"([A-Z0-9_]+)"|environ(?:\.get)?[\[(]"([A-Z0-9_]+)"')
ROW = re.compile(r"^\| (`[A-Z].*?) \|", re.MULTILINE)
FOR_TESTS = {"CHATSITE_TEST_DATABASE"}


class ConfigurationTests(SimpleTestCase):
    def read(self):
        """All variables that a module of the product reads."""
        modules = [
            path
            for package in ("chatsite", "chat", "history", "ingestion")
            for path in (settings.BASE_DIR / package).rglob("*.py")
            if "tests" not in path.parts
        ]
        found = [names for path in modules for names in READ.findall(path.read_text())]
        return {first or second for first, second in found}

    def test_every_variable_that_is_read_has_a_row_and_every_row_is_read(self):
        rows = ROW.findall((settings.BASE_DIR / "docs" / "configuration.md").read_text())
        documented = {name for row in rows for name in re.findall(r"`([A-Z0-9_]+)`", row)}
        self.assertEqual(documented, self.read() - FOR_TESTS)
