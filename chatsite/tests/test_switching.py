"""How long short work waits for the interpreter beside threads that compute."""

import queue
import sys
import threading
import time

import pytest
from django.test import SimpleTestCase

from chatsite.server.web_process import SWITCH_SECONDS

COMPUTING = 4
HANDOVERS = 40


@pytest.mark.slow
class SwitchingTests(SimpleTestCase):
    def setUp(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())

    def seconds(self, interval):
        """For work that waits for another thread as often as a request for its queries."""
        sys.setswitchinterval(interval)
        ended = threading.Event()
        asked, answered = queue.SimpleQueue(), queue.SimpleQueue()

        def compute():
            number = 0
            while not ended.is_set():
                number += sum(range(100))

        def answer():
            while asked.get():
                answered.put(True)

        threads = [threading.Thread(target=compute) for _ in range(COMPUTING)]
        threads.append(threading.Thread(target=answer))
        for thread in threads:
            thread.start()
        begun = time.monotonic()
        for _ in range(HANDOVERS):
            asked.put(True)
            answered.get()
        taken = time.monotonic() - begun
        ended.set()
        asked.put(False)
        for thread in threads:
            thread.join()
        return taken

    def test_short_work_beside_threads_that_compute_waits_less_than_half_as_long_as_by_default(self):
        self.assertLess(self.seconds(SWITCH_SECONDS), self.seconds(0.005) / 2)
