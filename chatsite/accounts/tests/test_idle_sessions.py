"""Sessions end when nobody uses them, sooner in the admin, and at last in any case."""

from datetime import timedelta
from unittest import mock

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import TestCase, override_settings
from django.utils import timezone

from chatsite.accounts.models import User
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)
from chatsite.accounts.sessions import kept_alive

SIGN_IN = "/accounts/sign-in/"


@override_settings(
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    SESSION_COOKIE_AGE=10 * 3600,
    SESSION_DAYS=2,
    ADMIN_IDLE_MINUTES=30,
)
class IdleSessions(TestCase):
    def setUp(self):
        self.user = User.objects.create_superuser("root", password="right-horse-1")
        self.start = timezone.now()
        self.client.post(SIGN_IN, {"username": "root", "password": "right-horse-1"})

    def after(self, **delta):
        return mock.patch("django.utils.timezone.now", return_value=self.start + timedelta(**delta))

    def status(self, page="/settings/"):
        return self.client.get(page).status_code

    def test_an_idle_session_ends_with_its_sockets(self):
        principal = Principal(self.user.pk, "session", self.client.session.session_key)
        with self.after(hours=9):
            self.assertTrue(still_valid(principal))
        with self.after(hours=11):
            self.assertFalse(still_valid(principal))
            self.assertEqual(self.status(), 302)

    def test_an_active_session_continues_up_to_a_maximum_age(self):
        for hours in range(6, 48, 6):
            with self.after(hours=hours):
                self.assertEqual(self.status(), 200, hours)
        with self.after(hours=49):
            self.assertEqual(self.status(), 302)

    def test_questions_on_a_socket_keep_the_session_up_to_a_maximum_age(self):
        opened = self.client.session  # as the socket read it
        principal = Principal(self.user.pk, "session", opened.session_key)
        for hours in range(6, 48, 6):
            with self.after(hours=hours):
                opened = kept_alive(opened)
                self.assertTrue(still_valid(principal), hours)
        with self.after(hours=49):
            self.assertFalse(still_valid(principal))

    def test_a_question_does_not_bring_back_a_session_that_was_signed_out(self):
        opened = self.client.session
        SessionStore(opened.session_key).delete()
        with self.after(hours=6):
            kept_alive(opened)
        self.assertFalse(Session.objects.exists())

    def test_a_question_keeps_what_other_requests_have_stored_in_the_session(self):
        opened = SessionStore(self.client.session.session_key)
        opened.get("key")
        other = self.client.session
        other["key"] = "value"
        other.save()
        with self.after(hours=6):
            kept_alive(opened)
        self.assertEqual(self.client.session["key"], "value")

    def test_the_cookie_lasts_as_long_as_questions_can_keep_the_session(self):
        with self.after(hours=6):
            self.assertEqual(self.client.get("/settings/").cookies["sessionid"]["max-age"], 42 * 3600)

    def test_the_session_of_a_disabled_account_is_not_kept(self):
        User.objects.update(is_active=False)
        with self.after(hours=9):
            self.assertNotIn("sessionid", self.client.get("/settings/").cookies)

    def test_activity_is_stored_now_and_then_and_not_with_each_request(self):
        key = self.client.session.session_key
        stored = mock.patch("django.contrib.sessions.backends.db.SessionStore.save")
        with self.after(minutes=5), stored as save:
            self.status()
        save.assert_not_called()
        self.assertEqual(self.client.session.session_key, key)

    @pytest.mark.slow
    def test_the_admin_asks_for_the_password_after_a_pause(self):
        for minutes in (20, 40):
            with self.after(minutes=minutes):
                self.assertEqual(self.status("/admin/"), 200)
        with self.after(minutes=75):
            self.assertEqual(self.status(), 200)  # the portal's session continues
            reply = self.client.get("/admin/", follow=True)
            self.assertContains(reply, "Sign in again")
            self.client.post("/admin/login/", {"username": "root", "password": "wrong"})
            self.assertEqual(self.status("/admin/"), 302)
            self.client.post("/admin/login/", {"username": "root", "password": "right-horse-1"})
            self.assertEqual(self.status("/admin/"), 200)

    def test_using_the_portal_does_not_keep_the_admin_open(self):
        for minutes in range(10, 60, 10):
            with self.after(minutes=minutes):
                self.assertEqual(self.status(), 200)
        with self.after(minutes=60):
            self.assertEqual(self.status("/admin/accounts/user/"), 302)
