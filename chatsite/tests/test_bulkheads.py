"""Who is let in to the connections after a lock."""

from unittest import mock

from django.test import SimpleTestCase

from chatsite.db import bulkheads


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

    def test_a_lock_of_long_ago_refuses_nobody(self):
        self.assertEqual(self.enter_twice(bulkheads.KNOWN_SECONDS + 1), [True, True])
