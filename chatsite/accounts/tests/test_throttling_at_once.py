"""Guesses sent at the same moment, each with its own connection."""

import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from django.contrib.auth import authenticate
from django.db import connection
from django.test import TransactionTestCase

from chatsite.accounts.models import User
from chatsite.accounts.passwords import hashing, throttling


class GuessesAtOnceTests(TransactionTestCase):
    def test_thirty_guesses_at_once_are_ten(self):
        def guess(_):
            try:
                throttling.admit("ada", "10.0.0.1")
            except throttling.TooManyAttempts:
                return False
            else:
                return True
            finally:
                connection.close()

        with ThreadPoolExecutor(6) as threads:
            admitted = list(threads.map(guess, range(30)))
        self.assertEqual(sum(admitted), 10)


class HashingInTurn(TransactionTestCase):
    def test_twelve_hashes_at_once_are_made_one_by_one_without_a_connection(self):
        at_work, most, connected = [], [], []

        def hashed():
            at_work.append(1)
            most.append(len(at_work))
            time.sleep(0.01)
            at_work.pop()

        def sign_in(_):
            connection.ensure_connection()
            hashing.in_turn(hashed)
            connected.append(connection.connection is not None)

        with ThreadPoolExecutor(12) as threads:
            list(threads.map(sign_in, range(12)))
        self.assertEqual((max(most), len(most), any(connected)), (1, 12, False))

    def test_every_password_of_an_account_is_hashed_in_turn(self):
        with mock.patch.object(hashing, "in_turn", wraps=hashing.in_turn) as in_turn:
            user = User.objects.create_user("ada", password="right-horse-1")
            made = in_turn.call_count
            self.assertTrue(user.check_password("right-horse-1"))
            authenticate(username="nobody", password="x")  # hashes as long as for a name that is there
        self.assertEqual((made, in_turn.call_count), (0, 2))
