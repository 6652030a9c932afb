"""Settings, passwords, API keys and help."""

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.test import TestCase, override_settings
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from chatsite.accounts.models import ApiKey, Device, User
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)

FAST = override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/19.1 Mobile/15E148 Safari/604.1"
)
DEVICES = "/settings/sessions/"
PAGES = ["/settings/", "/settings/password/", "/settings/keys/", "/settings/sessions/", "/help/"]


class Anything(APIView):
    """A view of the API."""

    required_scopes = ()

    def get(self, request):
        return Response()


class PagesTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada")

    def test_pages_of_signed_in_people_are_not_cached(self):
        self.client.force_login(self.user)
        for page in [*PAGES, "/", "/documents/", "/search/", "/v1/models"]:
            kept = self.client.get(page).headers["Cache-Control"]
            self.assertIn("private", kept, page)
            self.assertIn("no-store", kept, page)

    def test_responses_to_programs_vary_by_all_credentials(self):
        secret = ApiKey.objects.issue(self.user, "report")[1]
        for path in ("/v1/models", "/chat-history", "/v1/responses/resp_0"):
            response = self.client.get(path, headers={"Authorization": f"Bearer {secret}"})
            self.assertIn("no-store", response.headers["Cache-Control"], path)
            varies = {name.strip().lower() for name in response.headers["Vary"].split(",")}
            self.assertLessEqual({"authorization", "api-key", "x-api-key", "cookie"}, varies, path)

    def test_each_page_needs_signing_in(self):
        for page in PAGES:
            self.assertRedirects(
                self.client.get(page), f"/accounts/sign-in/?next={page}", fetch_redirect_response=False
            )

    def test_each_page_opens(self):
        self.client.force_login(self.user)
        for page in PAGES:
            response = self.client.get(page)
            self.assertEqual(response.status_code, 200, page)
            self.assertNotIn(b"style=", response.content)
            self.assertNotIn(b"<script>", response.content)

    def test_each_form_needs_its_csrf_token(self):
        strict = self.client_class(enforce_csrf_checks=True)
        strict.force_login(self.user)
        for page in PAGES[:-1]:
            self.assertEqual(strict.post(page).status_code, 403, page)

    def test_a_display_name_with_html_is_shown_as_text(self):
        User.objects.filter(pk=self.user.pk).update(first_name="<script>alert(1)</script>", is_superuser=True)
        self.client.force_login(self.user)
        for page in PAGES:
            self.assertNotContains(self.client.get(page), "<script>alert")

    def test_help_names_active_administrators(self):
        User.objects.create_user("root", is_superuser=True)
        User.objects.create_user("gone", is_superuser=True, is_active=False)
        self.client.force_login(self.user)
        response = self.client.get("/help/")
        self.assertContains(response, "<bdi>root</bdi>")
        self.assertNotContains(response, "<bdi>gone</bdi>")

    def test_keys_have_the_names_of_the_language(self):
        self.client.force_login(self.user)
        self.assertContains(self.client.get("/help/"), "<kbd>Shift</kbd> <kbd>Enter</kbd>")
        german = self.client.get("/help/", headers={"Accept-Language": "de"})
        self.assertContains(german, "<kbd>Umschalt</kbd> <kbd>Enter</kbd>")
        self.assertContains(german, "<kbd>Pos1</kbd>")


class SettingsTests(TestCase):
    def setUp(self):
        self.client.force_login(User.objects.create_user("ada"))

    def save(self, **values):
        return self.client.post("/settings/", values)

    def html_element(self, response):
        """Its start tag, with single spaces."""
        return " ".join(re.search("<html[^>]*>", response.content.decode())[0].split())

    def test_the_settings_are_attributes_of_the_html_element(self):
        self.save(theme="dark", enter="line", speak="end")
        self.assertEqual(
            self.html_element(self.client.get("/settings/")),
            '<html lang="en" dir="ltr" data-theme="dark" '
            'data-keys="off" data-enter="line" data-speak="end" >',
        )

    def test_unknown_values_are_the_defaults(self):
        self.client.cookies["theme"] = '"><script>'
        response = self.client.get("/settings/")
        self.assertEqual(
            self.html_element(response),
            '<html lang="en" dir="ltr" data-keys="on" data-enter="send" data-speak="block" >',
        )
        self.save(theme="purple")
        self.assertEqual(self.client.cookies["theme"].value, "auto")

    def test_scripts_cannot_read_the_cookies(self):
        self.assertTrue(self.save(theme="dark").cookies["theme"]["httponly"])


@FAST
class PasswordTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada", password="right-horse-1")
        self.client.force_login(self.user)
        self.other = self.client_class()
        self.other.force_login(self.user)
        self.elsewhere = Principal(self.user.pk, "session", self.other.session.session_key)

    def change(self, old):
        new = "battery-staple-9"
        return self.client.post(
            "/settings/password/", {"old_password": old, "new_password1": new, "new_password2": new}
        )

    def test_a_new_password_signs_other_devices_out_and_not_this_one(self):
        self.assertRedirects(self.change("right-horse-1"), "/settings/")
        self.assertFalse(still_valid(self.elsewhere))
        self.assertEqual(self.other.get("/settings/").status_code, 302)

    def test_the_old_password_must_be_right(self):
        self.assertEqual(self.change("wrong").status_code, 200)
        self.assertTrue(still_valid(self.elsewhere))

    def test_other_devices_can_be_signed_out(self):
        stranger = self.client_class()
        stranger.force_login(User.objects.create_user("eve"))
        self.client.post("/settings/sessions/")
        self.assertFalse(still_valid(self.elsewhere))
        self.assertEqual(self.client.get("/settings/").status_code, 200)
        self.assertEqual(stranger.get("/settings/").status_code, 200)


@pytest.mark.slow
class DeviceTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada", password="correct horse")
        self.here, self.phone = self.sign_in(FIREFOX), self.sign_in(IPHONE)

    def sign_in(self, agent, user="ada"):
        client = self.client_class(headers={"User-Agent": agent})
        client.post("/accounts/sign-in/", {"username": user, "password": "correct horse"})
        return client

    def listed(self, client):
        return [(device.browser, device.system) for device, _ in client.get(DEVICES).context["devices"]]

    def test_each_device_is_listed_and_the_present_one_is_marked(self):
        self.assertEqual(self.listed(self.here), [("Safari", "iPhone"), ("Firefox", "Linux")])
        page = self.here.get(DEVICES)
        self.assertContains(page, "Safari on iPhone")
        self.assertContains(page, "This device", 1)
        self.assertContains(page, "in use now", 1)
        self.assertNotContains(page, self.phone.session.session_key)

    def test_only_the_chosen_device_is_signed_out(self):
        laptop = self.sign_in("curl/8")
        phone = Device.objects.get(system="iPhone")
        self.assertContains(self.here.post(DEVICES, {"device": phone.pk}, follow=True), "was signed out")
        self.assertEqual(self.phone.get("/settings/").status_code, 302)
        for client in (self.here, laptop):
            self.assertEqual(client.get("/settings/").status_code, 200)
        self.assertEqual(self.listed(self.here), [("", ""), ("Firefox", "Linux")])
        self.assertContains(self.here.get(DEVICES), "Unknown browser")

    def test_neither_foreign_devices_nor_the_present_one_can_be_signed_out(self):
        User.objects.create_user("eve", password="correct horse")
        eve = self.sign_in(FIREFOX, "eve")
        for device in [*self.user.devices.values_list("pk", flat=True), "x", "9" * 30, "-1"]:
            self.assertEqual(eve.post(DEVICES, {"device": device}).status_code, 404)
        own = Device.objects.get(user__username="eve")
        self.assertEqual(eve.post(DEVICES, {"device": own.pk}).status_code, 404)
        self.assertEqual(self.here.get("/settings/").status_code, 200)

    def test_a_changed_password_keeps_this_device_in_the_list(self):
        new = {"new_password1": "battery-Staple", "new_password2": "battery-Staple"}
        self.here.post("/settings/password/", {"old_password": "correct horse", **new})
        self.assertEqual(self.listed(self.here), [("Firefox", "Linux")])


class WishTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada")
        self.client.force_login(self.user)

    def test_personal_instructions_are_stored_and_shown_again(self):
        self.client.post("/settings/", {"wish": "Short.\r\nAs a <b>list</b>.\x00"})
        self.user.refresh_from_db()
        self.assertEqual(self.user.wish, "Short.\nAs a <b>list</b>.\ufffd")
        self.assertContains(self.client.get("/settings/"), "As a &lt;b&gt;list&lt;/b&gt;.")
        self.client.post("/settings/", {"theme": "dark"})
        self.user.refresh_from_db()
        self.assertIn("Short", self.user.wish)

    def test_overlong_instructions_are_refused_and_stay_in_the_form(self):
        page = self.client.post("/settings/", {"wish": "x" * 1_001, "theme": "dark"})
        self.assertContains(page, "At most 1,000 characters. Nothing was saved.", status_code=422)
        self.assertContains(page, "x" * 1_001, status_code=422)
        self.user.refresh_from_db()
        self.assertEqual((self.user.wish, "theme" in page.cookies), ("", False))


class ApiKeyTests(TestCase):
    def setUp(self):
        self.user = User.objects.create_user("ada")
        self.client.force_login(self.user)

    def create(self, name="report"):
        response = self.client.post("/settings/keys/", {"name": name})
        return re.search(r"chs_[\w-]{40,}", response.content.decode())[0]

    def ask(self, secret, cookie_of=None):
        """A call of the API with the key, and with the cookie of somebody who is signed in."""
        request = APIRequestFactory().get("/", headers={"Authorization": f"Bearer {secret}"})
        request.user = cookie_of or AnonymousUser()
        return Anything.as_view()(request).status_code

    def test_a_key_is_shown_once_and_stored_hashed(self):
        secret = self.create()
        self.assertNotContains(self.client.get("/settings/keys/"), secret)
        self.assertNotIn(secret, str(list(ApiKey.objects.values())))

    def test_the_page_with_the_key_is_not_cached(self):
        response = self.client.post("/settings/keys/", {"name": "report"})
        self.assertIn("no-store", response.headers["Cache-Control"])

    def test_a_key_needs_a_name(self):
        response = self.client.post("/settings/keys/", {"name": " "})
        self.assertContains(response, "Say what the key is for", status_code=422)

    def test_a_revoked_key_is_refused_even_with_a_valid_cookie(self):
        secret = self.create()
        self.assertEqual(self.ask(secret), 200)
        key = ApiKey.objects.get()
        self.assertEqual(self.client.get(f"/settings/keys/{key.pk}/revoke/").status_code, 200)
        self.assertEqual(self.ask(secret), 200)  # asking changed nothing
        self.client.post(f"/settings/keys/{key.pk}/revoke/")
        self.assertEqual(self.ask(secret), 401)
        self.assertEqual(self.ask(secret, self.user), 401)
        self.assertFalse(still_valid(Principal(self.user.pk, "api_key", str(key.pk))))

    def test_the_key_of_a_disabled_account_is_refused(self):
        secret = self.create()
        User.objects.update(is_active=False)
        self.assertEqual(self.ask(secret), 401)

    def test_a_key_expires_after_a_year_by_default(self):
        secret = self.create()
        key = ApiKey.objects.get()
        self.assertEqual(round((key.expires_at - key.created_at) / timedelta(days=1)), 365)
        principal = Principal(self.user.pk, "api_key", str(key.pk))
        self.assertTrue(still_valid(principal))
        ApiKey.objects.update(expires_at=timezone.now())
        self.assertEqual(self.ask(secret), 401)
        self.assertFalse(still_valid(principal))
        self.assertContains(self.client.get("/settings/keys/"), "Expired")

    def test_how_long_a_key_is_valid_can_be_chosen(self):
        self.client.post("/settings/keys/", {"name": "short", "days": "30"})
        key = ApiKey.objects.get()
        self.assertEqual(round((key.expires_at - key.created_at) / timedelta(days=1)), 30)
        self.assertEqual(self.client.post("/settings/keys/", {"name": "x", "days": "7"}).status_code, 422)
        self.assertEqual(self.client.post("/settings/keys/", {"name": "x", "days": "0"}).status_code, 422)
        with override_settings(API_KEY_DAYS=0):
            self.client.post("/settings/keys/", {"name": "ever", "days": "0"})
        self.assertIsNone(ApiKey.objects.get(name="ever").expires_at)

    def test_the_scopes_of_a_key_can_be_chosen(self):
        offered = {"scopes_offered": "1"}
        self.client.post("/settings/keys/", offered | {"name": "sync", "scopes": ["documents:write"]})
        self.assertEqual(ApiKey.objects.get(name="sync").scopes, ["documents:write"])
        self.assertContains(self.client.get("/settings/keys/"), "Add, change and delete documents", 2)
        nothing = self.client.post("/settings/keys/", offered | {"name": "idle"})
        self.assertContains(nothing, "Choose what the key may do.", status_code=422)
        unknown = self.client.post("/settings/keys/", offered | {"name": "odd", "scopes": ["admin"]})
        self.assertEqual(unknown.status_code, 422)

    def test_the_portal_warns_of_a_key_that_expires_soon(self):
        self.create()
        self.assertNotContains(self.client.get("/settings/"), "within 30 days")
        ApiKey.objects.update(expires_at=timezone.now() + timedelta(days=12, hours=1))
        self.assertContains(self.client.get("/settings/"), "1 of your API keys expires within 30 days")
        self.assertContains(self.client.get("/settings/keys/"), "12 days left")

    def test_a_key_without_expiry_stays_valid(self):
        secret = self.create()
        ApiKey.objects.update(expires_at=None)
        self.assertEqual(self.ask(secret), 200)
        self.assertContains(self.client.get("/settings/keys/"), "does not expire")

    def test_another_persons_key_cannot_be_revoked(self):
        self.create()
        key = ApiKey.objects.get()
        stranger = self.client_class()
        stranger.force_login(User.objects.create_user("eve"))
        self.assertNotContains(stranger.get("/settings/keys/"), key.prefix)
        for method in (stranger.get, stranger.post):
            theirs, unknown = (
                method(f"/settings/keys/{key.pk}/revoke/"),
                method("/settings/keys/999999/revoke/"),
            )
            self.assertEqual((theirs.status_code, unknown.status_code), (404, 404))
        key.refresh_from_db()
        self.assertIsNone(key.revoked_at)

    def test_the_name_of_a_key_is_shown_as_text(self):
        self.create("<img src=x onerror=alert(1)>")
        self.assertNotContains(self.client.get("/settings/keys/"), "<img src=x")


class CreateApiKeyCommandTests(TestCase):
    def run_command(self, *arguments):
        out, self.warned = StringIO(), StringIO()
        call_command("create_api_key", *arguments, stdout=out, stderr=self.warned)
        return out.getvalue()

    def test_the_command_prints_when_the_key_expires(self):
        User.objects.create_user("ada")
        self.run_command("ada")
        self.assertIn(f"expires on {ApiKey.objects.get().expires_at:%Y-%m-%d}", self.warned.getvalue())
        self.run_command("ada", "--days", "0")
        self.assertIn("does not expire", self.warned.getvalue())

    def test_the_command_prints_only_the_key_to_standard_output(self):
        User.objects.create_user("ada")
        self.assertRegex(self.run_command("ada", "--name", "nightly"), r"\Achs_[\w-]{43}\n\Z")
        key = ApiKey.objects.get()
        self.assertEqual((key.name, key.scopes), ("nightly", ["chat", "search", "documents:read"]))

    def test_the_command_creates_the_named_scopes(self):
        User.objects.create_user("ada")
        self.run_command("ada", "--scope", "documents:write", "--scope", "search")
        self.assertEqual(ApiKey.objects.get().scopes, ["search", "documents:write"])

    def test_unknown_and_disabled_accounts_are_refused(self):
        User.objects.create_user("gone", is_active=False)
        for name in ("nobody", "gone"):
            with self.assertRaises(CommandError):
                self.run_command(name)
        self.assertEqual(ApiKey.objects.count(), 0)

    def test_a_name_that_is_too_long_is_refused(self):
        User.objects.create_user("ada")
        with self.assertRaises(CommandError):
            self.run_command("ada", "--name", "x" * 101)
