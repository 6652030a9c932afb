"""Guesses sent at the same moment, each with its own connection."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from unittest import mock

from django.contrib.auth import authenticate
from django.db import connection
from django.test import Client, TransactionTestCase, override_settings

from chatsite.accounts.models import User
from chatsite.accounts.passwords import hashing, throttling
from chatsite.tests.limits import HANG_SECONDS


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


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class OwnPasswordAtOnce(TransactionTestCase):
    def test_checks_of_one_persons_own_password_do_not_keep_others_from_signing_in(self):
        eve = User.objects.create_user("eve", password="right-horse-1")
        User.objects.create_user("ada", password="right-horse-2")
        free = threading.Event()
        blocked = hashing._thread.submit(free.wait, HANG_SECONDS)
        browsers = [Client() for _ in range(18)]
        for browser in browsers:
            browser.force_login(eve)
        fields = {"old_password": "wrong", "new_password1": "new-horse-3", "new_password2": "new-horse-3"}

        def change(browser):
            try:
                return browser.post("/settings/password/", fields)
            finally:
                connection.close()

        with ThreadPoolExecutor(18) as threads:
            asked = [threads.submit(change, browser) for browser in browsers]
            refused = [each.result() for each in islice(as_completed(asked, HANG_SECONDS), 17)]
            waiting = hashing.waiting()
            signed_in = threads.submit(self.sign_in)
            free.set()
            self.assertEqual(signed_in.result(HANG_SECONDS).status_code, 302)
        self.assertTrue(blocked.result(HANG_SECONDS))
        self.assertEqual(waiting, 0, "checks of own passwords must not count for sign-ins")
        self.assertContains(refused[0], "Your password is already being checked", status_code=429)
        self.assertEqual(refused[0]["Retry-After"], "5")
        self.assertEqual(sorted(each.result().status_code for each in asked), [200] + [429] * 17)

    def sign_in(self):
        try:
            return Client().post("/accounts/sign-in/", {"username": "ada", "password": "right-horse-2"})
        finally:
            connection.close()
