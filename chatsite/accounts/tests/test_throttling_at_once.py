"""Guesses sent at the same moment, each with its own connection."""

from concurrent.futures import ThreadPoolExecutor

from django.db import connection
from django.test import TransactionTestCase

from chatsite.accounts import throttling


class GuessesAtOnceTests(TransactionTestCase):
    def test_thirty_guesses_at_once_are_ten(self):
        def guess(_):
            try:
                return throttling.admit("ada", "10.0.0.1")
            finally:
                connection.close()

        with ThreadPoolExecutor(6) as threads:
            admitted = list(threads.map(guess, range(30)))
        self.assertEqual(sum(admitted), 10)
