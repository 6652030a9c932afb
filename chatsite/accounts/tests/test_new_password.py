"""A new password, wherever it was set, ends sessions and links that were made with the old one."""

import io
from unittest import mock

from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.test import TestCase, override_settings

from chatsite.accounts.models import ApiKey, AuditEntry, SignInAttempt, User
from chatsite.accounts.principal import (
    Principal,
    still_valid,
    valid_among,
)

NEW = "battery-staple-9"


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class NewPassword(TestCase):
    def setUp(self):
        self.eve = User.objects.create_user("eve", password="right-horse-1")
        self.browser = self.client_class()
        self.browser.force_login(self.eve)
        self.session = Principal(self.eve.pk, "session", self.browser.session.session_key)
        self.key, _ = ApiKey.objects.issue(self.eve, "nightly")

    def command(self, *arguments):
        told = io.StringIO()
        with mock.patch("getpass.getpass", return_value=NEW):
            call_command("changepassword", "eve", *arguments, stdout=told)
        return told.getvalue()

    def usable(self):
        return ApiKey.objects.usable().exists()

    def test_the_command_ends_sessions_and_says_which_keys_stay(self):
        self.assertTrue(still_valid(self.session))
        self.assertIn("API keys that stay valid: 1 (--revoke-keys", self.command())
        self.assertFalse(still_valid(self.session))
        self.assertTrue(self.usable())
        self.assertEqual(AuditEntry.objects.get().action, "password_set")

    def test_the_command_revokes_keys_if_asked(self):
        self.assertIn("API keys revoked: 1.", self.command("--revoke-keys"))
        self.assertFalse(self.usable())

    def test_a_password_written_to_the_database_by_anything_ends_sessions(self):
        self.assertTrue(still_valid(self.session))
        User.objects.filter(pk=self.eve.pk).update(password=make_password(NEW))
        self.assertFalse(still_valid(self.session))

    def test_only_the_sessions_of_the_person_are_ended_and_each_is_decoded_once(self):
        ann = User.objects.create_user("ann", password="right-horse-2")
        other = self.client_class()
        other.force_login(ann)
        theirs = Principal(ann.pk, "session", other.session.session_key)
        self.assertEqual(valid_among([self.session, theirs]), {self.session, theirs})
        with self.assertNumQueries(2):
            valid_among([self.session, theirs])
        User.objects.filter(pk=self.eve.pk).update(password=make_password(NEW))
        self.assertEqual(valid_among([self.session, theirs]), {theirs})

    def test_the_session_of_another_person_is_not_accepted_as_proof(self):
        ann = User.objects.create_user("ann", password="right-horse-2")
        self.assertFalse(still_valid(Principal(ann.pk, "session", self.session.credential)))

    def test_the_portal_offers_to_revoke_keys_with_the_password(self):
        self.assertContains(self.browser.get("/settings/password/"), "Also revoke my API key (1)")
        fields = {"old_password": "right-horse-1", "new_password1": NEW, "new_password2": NEW}
        reply = self.browser.post("/settings/password/", fields | {"revoke_keys": "on"}, follow=True)
        self.assertContains(reply, "API keys revoked: 1.")
        self.assertFalse(self.usable())
        self.assertNotContains(self.browser.get("/settings/password/"), "Also revoke")
        entry = AuditEntry.objects.get(action="keys_revoked")
        self.assertEqual((entry.actor, entry.person, entry.subject), ("eve", "eve", "API keys: 1"))

    def test_keys_stay_valid_unless_revocation_is_requested(self):
        fields = {"old_password": "right-horse-1", "new_password1": NEW, "new_password2": NEW}
        self.browser.post("/settings/password/", fields)
        self.assertTrue(self.usable())

    def test_the_admin_offers_to_revoke_keys_with_the_password(self):
        self.client.force_login(User.objects.create_superuser("root"))
        page = f"/admin/accounts/user/{self.eve.pk}/password/"
        self.assertContains(self.client.get(page), 'name="revoke_keys"')
        new = {"usable_password": "true", "password1": NEW, "password2": NEW}
        self.client.post(page, new | {"revoke_keys": "on"})
        self.assertFalse(self.usable())
        actions = set(AuditEntry.objects.values_list("action", "person"))
        self.assertEqual(actions, {("password_set", "eve"), ("keys_revoked", "eve")})

    def test_the_admin_sends_people_to_the_portal_for_their_own_password(self):
        root = User.objects.create_superuser("root", password="right-horse-3")
        self.client.force_login(root)
        own_page = f"/admin/accounts/user/{root.pk}/password/"
        new = {"usable_password": "true", "password1": NEW, "password2": NEW}
        for reply in (
            self.client.get("/admin/password_change/"),
            self.client.get(own_page),
            self.client.post(own_page, new),
        ):
            self.assertRedirects(reply, "/settings/password/", fetch_redirect_response=False)
        self.assertTrue(User.objects.get(pk=root.pk).check_password("right-horse-3"))

    def change(self, old):
        fields = {"old_password": old, "new_password1": NEW, "new_password2": NEW}
        return self.browser.post("/settings/password/", fields, REMOTE_ADDR="192.0.2.7")

    def test_the_current_password_cannot_be_guessed_without_limit(self):
        for _ in range(10):
            self.assertEqual(self.change("wrong").status_code, 200)
        for _ in range(2):
            response = self.change("right-horse-1")
            self.assertContains(response, "There were too many wrong attempts. Wait 15 s", status_code=429)
            self.assertEqual(response["Retry-After"], "15")
        self.assertTrue(User.objects.get(pk=self.eve.pk).check_password("right-horse-1"))
        refused = AuditEntry.objects.filter(subject__startswith="too many attempts, to set a new one")
        self.assertEqual(refused.count(), 1)

    def test_a_wrong_current_password_is_in_both_logs_without_the_password(self):
        with self.assertLogs("chatsite.accounts", "WARNING") as logged:
            self.change("wrong-secret")
        entry = AuditEntry.objects.get()
        self.assertEqual((entry.action, entry.actor, entry.person), ("sign_in_refused", "eve", "eve"))
        self.assertEqual(entry.subject, "wrong current password, to set a new one; from 192.0.2.7")
        self.assertIn("New password refused: wrong current password, for “eve”", logged.output[0])
        self.assertNotIn("wrong-secret", f"{logged.output} {vars(entry)}")

    def test_the_right_current_password_is_not_counted_as_a_guess(self):
        self.change("wrong")
        counted = SignInAttempt.objects.count()
        self.assertEqual(self.change("right-horse-1").status_code, 302)
        self.assertLess(SignInAttempt.objects.count(), counted)
