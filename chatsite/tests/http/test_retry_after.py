"""The header Retry-After, as read from other servers and written by this site."""

import email.utils
import time

from django.http import HttpResponse
from django.test import SimpleTestCase

from chatsite.http.outgoing.retry_after import retry_after_seconds, set_retry_after


class RetryAfterTests(SimpleTestCase):
    def test_numbers_and_dates_are_read_and_invalid_values_are_ignored(self):
        later = email.utils.formatdate(time.time() + 60, usegmt=True)
        earlier = email.utils.formatdate(time.time() - 60, usegmt=True)
        read = {
            "7": 7,
            "0.05": 0.05,
            "": None,
            "soon": None,
            "-3": None,
            "inf": None,
            "nan": None,
            earlier: 0,
        }
        self.assertEqual({value: retry_after_seconds(value) for value in read}, read)
        self.assertTrue(50 < retry_after_seconds(later) <= 60)

    def test_at_least_one_whole_second_is_written(self):
        written = []
        for seconds in (0, 0.2, 2, 2.1):
            response = HttpResponse()
            set_retry_after(response, seconds)
            written.append(response.headers["Retry-After"])
        self.assertEqual(written, ["1", "1", "2", "3"])
