"""No two modules share a name, so a search, a traceback or an editor's tab shows which one it is."""

from collections import defaultdict
from pathlib import Path

from django.conf import settings
from django.test import SimpleTestCase

FOLDERS = ("chat", "chatsite", "history", "ingestion")
# Names that Django, DRF and procrastinate look for; a command has the name of its module.
EXPECTED = {
    "__init__",
    "admin",
    "apps",
    "base",
    "forms",
    "formats",
    "middleware",
    "models",
    "permissions",
    "tasks",
}
EXPECTED |= {"urls", "views"}
ELSEWHERE = {"tests", "migrations", "commands"}


class ModuleNamesTests(SimpleTestCase):
    def test_no_two_modules_share_a_name(self):
        places = defaultdict(list)
        for folder in FOLDERS:
            for path in Path(settings.BASE_DIR, folder).rglob("*.py"):
                if ELSEWHERE.isdisjoint(path.parts) and path.stem not in EXPECTED:
                    places[path.stem].append(str(path.relative_to(settings.BASE_DIR)))
        self.assertEqual([found for found in places.values() if len(found) > 1], [])
        self.assertGreater(len(places), 250)
