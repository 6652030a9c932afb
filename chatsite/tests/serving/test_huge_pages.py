"""Huge pages for the memory of a web process."""

import subprocess
import sys
from unittest import mock

from django.test import SimpleTestCase

from chatsite.server import huge_pages

LOADED = """
import sys
from chatsite.server.huge_pages import HUGE_BYTES, data_regions, use_huge_pages
loaded = [bytearray(b"%d" % number * 1000) for number in range(10_000)]
regions = data_regions()
use_huge_pages(regions)
kept = all(item == b"%d" % number * 1000 for number, item in enumerate(loaded))
loaded.append(bytearray(4 * HUGE_BYTES))
print(sum(length for _, length in regions) // HUGE_BYTES, kept)
"""


class HugePagesTests(SimpleTestCase):
    def test_a_process_keeps_its_data_when_it_asks_for_huge_pages(self):
        run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
        asked, kept = run.stdout.split()
        self.assertEqual(kept, "True")
        if sys.platform == "linux":
            self.assertGreater(int(asked), 5)

    def test_other_systems_are_left_alone(self):
        with mock.patch.object(huge_pages.sys, "platform", "darwin"):
            self.assertEqual(huge_pages.data_regions(), [])
