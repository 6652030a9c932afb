"""The delays after which a dead process is restarted."""

import time

from django.test import SimpleTestCase

from chatsite.server.processes import (
    LONGEST_DELAY,
    STEADY_SECONDS,
    Child,
)


class Restarts(SimpleTestCase):
    def delays(self, lived, times):
        """The delays before so many starts of a process that lives for so many seconds."""
        child, found = Child("web server", "nothing"), []
        for _ in range(times):
            child.started_at = time.monotonic() - lived
            child.plan_restart()
            found.append(round(child.start_again_at - time.monotonic()))
        return found

    def test_a_process_that_keeps_dying_restarts_with_growing_delays(self):
        delays = self.delays(0, 12)
        self.assertEqual(delays[:5], [0, 1, 2, 4, 8])
        self.assertEqual(delays[-1], LONGEST_DELAY)

    def test_a_process_that_had_run_restarts_at_once(self):
        self.assertEqual(set(self.delays(STEADY_SECONDS + 1, 5)), {0})
