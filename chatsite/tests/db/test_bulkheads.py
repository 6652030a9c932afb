"""Who gets a connection after waiting for a lock."""

from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from django.test import SimpleTestCase

from chatsite.db import bulkheads
from chatsite.tests.limits import HANG_SECONDS


class AfterALockTests(SimpleTestCase):
    def setUp(self):
        self.now = 100.0
        clock = mock.patch.object(bulkheads.time, "monotonic", side_effect=lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)
        self.places = bulkheads.Bulkheads()
        self.assertTrue(self.places.enter("page", 0))
        self.places.leave("page", stuck=True)

    def enter_twice(self, later):
        self.now += later
        return [self.places.enter("page", 0) for _ in range(2)]

    def test_one_request_finds_out_whether_the_lock_is_gone(self):
        self.assertEqual(self.enter_twice(0.5), [False, False])
        self.assertEqual(self.enter_twice(1), [True, False])

    def test_an_old_lock_refuses_no_request(self):
        self.assertEqual(self.enter_twice(bulkheads.KNOWN_SECONDS + 1), [True, True])

    def test_requests_during_a_successful_probe_are_admitted(self):
        self.now += bulkheads.PROBE_SECONDS + 0.1
        self.assertTrue(self.places.enter("page", 0))
        with ThreadPoolExecutor(3) as threads:
            waiting = [threads.submit(self.places.enter, "page", 1) for _ in range(3)]
            self.assertEqual([each.done() for each in waiting], [False] * 3)
            self.places.leave("page", stuck=False)
            self.assertEqual([each.result(HANG_SECONDS) for each in waiting], [True] * 3)

    def test_requests_during_a_failed_probe_are_refused(self):
        self.now += bulkheads.PROBE_SECONDS + 0.1
        self.assertTrue(self.places.enter("page", 0))
        with ThreadPoolExecutor(3) as threads:
            waiting = [threads.submit(self.places.enter, "page", 1) for _ in range(3)]
            self.places.leave("page", stuck=True)
            self.assertEqual([each.result(HANG_SECONDS) for each in waiting], [False] * 3)

    def test_an_abandoned_probe_decides_nothing(self):
        self.now += bulkheads.PROBE_SECONDS + 0.1
        self.assertTrue(self.places.enter("page", 0))
        self.places.leave("page", stuck=None)
        self.assertEqual(self.enter_twice(0), [True, False])
