"""Signing in and out, and how often one may guess."""

from datetime import timedelta
from unittest import mock

import pytest
from django.test import TestCase, override_settings
from django.utils import timezone

from chatsite.accounts.models import AuditEntry, SignInAttempt, User
from chatsite.accounts.passwords import throttling
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)

SIGN_IN = "/accounts/sign-in/"
FAST = override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])


@FAST
class SignInTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada", password="right-horse-1")

    def sign_in(self, password="right-horse-1", name="ada", path=SIGN_IN, **extra):
        return self.client.post(path, {"username": name, "password": password}, **extra)

    def test_the_right_password_leads_to_the_portal(self):
        self.assertRedirects(self.sign_in(), "/", fetch_redirect_response=False)

    @override_settings(SITE_NAME="Northgate")
    def test_the_page_has_the_name_of_the_site(self):
        self.assertContains(self.client.get(SIGN_IN), "<title>Sign in – Northgate</title>")

    def test_a_wrong_password_is_reported_and_keeps_the_name(self):
        response = self.sign_in("wrong")
        self.assertContains(response, "The name or the password is wrong.")
        self.assertContains(response, 'value="ada"')

    def test_the_next_parameter_leads_only_to_this_site(self):
        response = self.client.post(
            SIGN_IN, {"username": "ada", "password": "right-horse-1", "next": "https://evil.example/"}
        )
        self.assertRedirects(response, "/", fetch_redirect_response=False)

    def test_a_disabled_account_cannot_sign_in(self):
        User.objects.update(is_active=False)
        self.assertContains(self.sign_in(), "is wrong")

    def test_disabling_an_account_ends_its_session(self):
        self.sign_in()
        self.assertEqual(self.client.get("/settings/").status_code, 200)
        User.objects.update(is_active=False)
        self.assertRedirects(
            self.client.get("/settings/"), f"{SIGN_IN}?next=/settings/", fetch_redirect_response=False
        )

    def test_signing_out_needs_a_post_and_ends_the_session(self):
        self.sign_in()
        session = self.client.session.session_key
        self.assertEqual(self.client.get("/accounts/sign-out/").status_code, 405)
        self.client.post("/accounts/sign-out/")
        self.assertFalse(still_valid(Principal(self.user.pk, "session", session)))

    def test_signing_in_without_a_csrf_token_is_refused(self):
        strict = self.client_class(enforce_csrf_checks=True)
        reply = strict.post(SIGN_IN, {"username": "ada", "password": "right-horse-1"})
        self.assertEqual(reply.status_code, 403)

    def guess(self, times, name="ada", address="127.0.0.1"):
        for _ in range(times):
            throttling.admit(name, address)

    def refused(self, name="ada", address="127.0.0.1", device=""):
        """The delay of an attempt in seconds; 0 if it is not delayed."""
        try:
            throttling.admit(name, address, device)
        except throttling.TooManyAttempts as refusal:
            return refusal.seconds
        return 0

    def later(self, **delta):
        moment = timezone.now() + timedelta(**delta)
        return mock.patch("django.utils.timezone.now", return_value=moment)

    def test_after_ten_wrong_passwords_attempts_are_delayed_and_the_owner_is_not_locked_out(self):
        for _ in range(10):
            self.assertEqual(self.sign_in("wrong").status_code, 200)
        response = self.sign_in()
        self.assertContains(response, "There were too many wrong attempts. Wait 15 seconds", status_code=429)
        self.assertEqual(response["Retry-After"], "15")
        self.assertNotIn("_auth_user_id", self.client.session)
        with self.later(seconds=16):
            self.assertEqual(self.sign_in().status_code, 302)

    def test_the_admin_has_the_same_limit(self):
        User.objects.update(is_staff=True)
        for _ in range(10):
            self.sign_in("wrong")
        response = self.sign_in(path="/admin/login/")
        self.assertContains(response, "There were too many wrong attempts", status_code=429)

    def test_other_names_and_addresses_are_not_delayed(self):
        User.objects.create_user("eve", password="right-horse-2")
        for _ in range(10):
            self.sign_in("wrong")
        self.assertEqual(self.sign_in("right-horse-2", "eve").status_code, 302)
        self.client.logout()
        self.assertEqual(self.sign_in(REMOTE_ADDR="10.0.0.9").status_code, 302)

    def test_one_address_cannot_try_a_password_with_very_many_names(self):
        for number in range(throttling.ADDRESS.free):
            throttling.admit(f"name-{number}", "10.0.0.9")
        self.assertEqual(self.refused("another", "10.0.0.9"), 5)
        self.assertEqual(self.refused("another", "10.0.0.8"), 0)
        with self.later(seconds=6):
            self.assertEqual(self.refused("another", "10.0.0.9"), 0)

    @pytest.mark.slow
    def test_one_name_cannot_be_guessed_from_many_addresses_as_often_as_from_each_alone(self):
        let_through = sum(
            not self.refused(address=f"10.0.{network}.1") for network in range(40) for _ in range(10)
        )
        self.assertLessEqual(let_through, throttling.ATTACK_FAILURES + 40 * 3)

    def test_a_person_attacked_from_many_addresses_can_still_sign_in(self):
        for network in range(20):
            self.guess(5, address=f"10.0.{network}.1") if network < 10 else self.guess(
                3, address=f"10.0.{network}.1"
            )
        self.assertEqual(self.sign_in(REMOTE_ADDR="192.0.2.7").status_code, 302)

    def test_a_known_browser_is_not_delayed_by_guesses_from_its_address(self):
        self.sign_in()
        self.client.post("/accounts/sign-out/")
        self.guess(10)
        self.assertGreater(self.refused(), 0)
        self.assertEqual(self.sign_in().status_code, 302)

    def test_a_known_browser_counts_for_its_person_only_and_has_a_limit(self):
        self.sign_in()
        self.client.post("/accounts/sign-out/")
        User.objects.create_user("eve", password="right-horse-2")
        self.guess(10, "eve")
        self.assertEqual(self.sign_in("right-horse-2", "eve").status_code, 429)
        for _ in range(10):
            self.sign_in("wrong")
        self.assertEqual(self.sign_in().status_code, 429)
        self.assertEqual(throttling.known_device("forged", "ada"), "")

    def test_names_that_differ_only_in_case_or_width_count_as_one(self):
        for name in ["ada", "ADA", "ａｄａ", "Ada", "aDa"] * 2:
            throttling.admit(name, "10.0.0.1")
        self.assertGreater(self.refused("Ada", "10.0.0.1"), 0)

    def test_the_addresses_of_one_ipv6_network_count_as_one(self):
        for number in range(10):
            throttling.admit("ada", f"2001:db8:1:2::{number}")
        self.assertGreater(self.refused("ada", "2001:db8:1:2:ffff::1"), 0)
        self.assertEqual(self.refused("ada", "2001:db8:2:2::1"), 0)

    def test_the_networks_of_one_ipv6_site_share_their_guesses(self):
        for network in range(10):
            throttling.admit("ada", f"2001:db8:1:{network}::1")
        self.assertGreater(self.refused("ada", "2001:db8:1:ffff::1"), 0)
        for number in range(throttling.ADDRESS.free - 10):
            throttling.admit(f"somebody-{number}", f"2001:db8:1:{number}::1")
        self.assertGreater(self.refused("another", "2001:db8:1:ffff::1"), 0)

    def test_success_resets_the_count(self):
        for _ in range(9):
            self.sign_in("wrong")
        self.sign_in()
        self.guess(10)  # of a browser that is not known

    def test_a_refused_attempt_is_not_counted_so_it_postpones_nothing(self):
        self.guess(10, address="10.0.0.1")
        for _ in range(5):
            self.assertGreater(self.refused(address="10.0.0.1"), 0)
        with self.later(minutes=16):
            self.guess(10, address="10.0.0.1")

    def test_names_and_addresses_are_stored_as_hashes(self):
        throttling.admit("my-password-in-the-wrong-field", "10.0.0.1")
        self.assertNotIn("password", str(list(SignInAttempt.objects.values())))
        self.assertNotIn("10.0.0.1", str(list(SignInAttempt.objects.values())))

    def test_a_refused_sign_in_is_in_both_logs_without_the_password(self):
        with self.assertLogs("chatsite.accounts", "WARNING") as logged:
            self.sign_in("wrong-secret", REMOTE_ADDR="10.0.0.9")
        entry = AuditEntry.objects.get()
        self.assertEqual((entry.action, entry.person), ("sign_in_refused", "ada"))
        self.assertEqual(entry.subject, "wrong password; from 10.0.0.9")
        self.assertIn("Sign-in refused: wrong password, for “ada”, from 10.0.0.9", logged.output[0])
        self.assertNotIn("wrong-secret", f"{logged.output} {vars(entry)}")

    def test_a_name_without_an_account_is_in_no_log(self):
        with self.assertLogs("chatsite.accounts", "WARNING") as logged:
            self.sign_in("x", name="my-password-in-the-wrong-field")
        self.assertIn("a name without an account", logged.output[0])
        self.assertNotIn("wrong-field", f"{logged.output} {vars(AuditEntry.objects.get())}")

    def test_repeated_attempts_do_not_fill_the_logs(self):
        for _ in range(25):
            self.sign_in("wrong")
        self.assertEqual(AuditEntry.objects.filter(subject__startswith="wrong password").count(), 10)
        self.assertEqual(AuditEntry.objects.filter(subject__startswith="too many attempts").count(), 1)

    def test_ever_new_names_from_one_address_do_not_fill_the_logs(self):
        SignInAttempt.objects.bulk_create(
            SignInAttempt(digest=throttling._digest("address", "127.0.0.1"))
            for _ in range(throttling.ADDRESS.free)
        )
        for number in range(20):
            self.sign_in("wrong", name=f"nobody-{number}")
        self.assertEqual(AuditEntry.objects.filter(subject__startswith="too many attempts").count(), 1)

    def test_too_many_waiting_sign_ins_are_asked_to_retry(self):
        with mock.patch("chatsite.accounts.passwords.hashing.waiting", return_value=16):
            response = self.sign_in()
        self.assertContains(response, "Many people are signing in right now", status_code=429)
        self.assertEqual(SignInAttempt.objects.count(), 0)

    def test_a_name_with_html_is_shown_as_text(self):
        response = self.sign_in("wrong", '"><script>alert(1)</script>')
        self.assertNotContains(response, "<script>alert")

    @override_settings(EMBEDDED_DATABASE=False)
    def test_no_demo_account_is_shown_with_an_external_database(self):
        self.assertNotContains(self.client.get(SIGN_IN), "Demo accounts")
