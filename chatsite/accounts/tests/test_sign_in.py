"""Signing in and out, and how often one may guess."""

from datetime import timedelta
from unittest import mock

from django.test import TestCase, override_settings
from django.utils import timezone

from chatsite.accounts import throttling
from chatsite.accounts.models import SignInAttempt, User
from chatsite.accounts.principals import Principal, still_valid

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
    def test_the_page_bears_the_name_of_the_site(self):
        self.assertContains(self.client.get(SIGN_IN), "<title>Sign in – Northgate</title>")

    def test_a_wrong_password_keeps_the_name_and_says_so(self):
        response = self.sign_in("wrong")
        self.assertContains(response, "The name or the password is not right.")
        self.assertContains(response, 'value="ada"')

    def test_next_leads_only_to_this_site(self):
        response = self.client.post(
            SIGN_IN, {"username": "ada", "password": "right-horse-1", "next": "https://evil.example/"}
        )
        self.assertRedirects(response, "/", fetch_redirect_response=False)

    def test_a_disabled_account_cannot_sign_in(self):
        User.objects.update(is_active=False)
        self.assertContains(self.sign_in(), "is not right")

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

    def test_after_ten_wrong_passwords_the_right_one_is_refused_too(self):
        for _ in range(10):
            self.sign_in("wrong")
        response = self.sign_in()
        self.assertContains(response, "There were 10 wrong attempts for this name. Wait 15 minutes")
        self.assertNotIn("_auth_user_id", self.client.session)

    def test_the_admin_has_the_same_limit(self):
        User.objects.update(is_staff=True)
        for _ in range(10):
            self.sign_in("wrong")
        self.assertContains(self.sign_in(path="/admin/login/"), "There were 10 wrong attempts")

    def test_other_names_and_other_addresses_are_not_held_up(self):
        User.objects.create_user("eve", password="right-horse-2")
        for _ in range(10):
            self.sign_in("wrong")
        self.assertEqual(self.sign_in("right-horse-2", "eve").status_code, 302)
        self.client.logout()
        self.assertEqual(self.sign_in(REMOTE_ADDR="10.0.0.9").status_code, 302)

    def test_capital_letters_and_wide_letters_are_the_same_name(self):
        for name in ["ada", "ADA", "ａｄａ"] * 4:
            throttling.admit(name, "10.0.0.1")
        self.assertFalse(throttling.admit("Ada", "10.0.0.1"))

    def test_success_starts_the_count_anew(self):
        for _ in range(9):
            self.sign_in("wrong")
        self.sign_in()
        self.assertEqual(SignInAttempt.objects.count(), 0)

    def test_a_refused_attempt_is_not_counted_so_the_door_opens_again(self):
        for _ in range(15):
            throttling.admit("ada", "10.0.0.1")
        self.assertEqual(SignInAttempt.objects.count(), 10)
        later = timezone.now() + timedelta(minutes=16)
        with mock.patch("django.utils.timezone.now", return_value=later):
            self.assertTrue(throttling.admit("ada", "10.0.0.1"))

    def test_neither_name_nor_address_is_stored_readably(self):
        throttling.admit("my-password-in-the-wrong-field", "10.0.0.1")
        self.assertNotIn("password", str(SignInAttempt.objects.values().get()))

    def test_a_name_with_html_is_shown_as_text(self):
        response = self.sign_in("wrong", '"><script>alert(1)</script>')
        self.assertNotContains(response, "<script>alert")

    @override_settings(EMBEDDED_DATABASE=False)
    def test_no_demo_account_is_shown_with_an_external_database(self):
        self.assertNotContains(self.client.get(SIGN_IN), "Demo accounts")
