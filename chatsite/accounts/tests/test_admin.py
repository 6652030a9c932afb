"""Users and keys in the admin."""

import re
from datetime import timedelta

from django.contrib.auth.models import Group, Permission
from django.test import TestCase
from django.utils import timezone

from chatsite.accounts.models import ApiKey, User
from chatsite.accounts.principal import (
    Principal,
    still_valid,
)

EVIL = "<script>alert(1)</script>"


class AdminTests(TestCase):
    def setUp(self):
        self.admin = User.objects.create_superuser("root", first_name=EVIL)
        self.client.force_login(self.admin)

    def test_the_index_names_the_site(self):
        self.assertContains(self.client.get("/admin/"), "chatsite administration")

    def test_the_admin_is_open_to_staff_only(self):
        stranger = self.client_class()
        stranger.force_login(User.objects.create_user("eve"))
        for page in ("/admin/", "/admin/accounts/user/", "/admin/accounts/apikey/"):
            self.assertEqual(stranger.get(page).status_code, 302, page)

    def test_without_the_permission_staff_see_neither_people_nor_keys(self):
        staff = self.client_class()
        staff.force_login(User.objects.create_user("bob", is_staff=True))
        for page in ("/admin/accounts/user/", "/admin/accounts/apikey/", "/admin/accounts/apikey/add/"):
            self.assertEqual(staff.get(page).status_code, 403, page)

    def test_a_new_key_is_shown_once_and_its_hash_never(self):
        response = self.client.post(
            "/admin/accounts/apikey/add/",
            {"user": self.admin.pk, "name": "nightly", "scopes": ["documents:write", "search"]},
            follow=True,
        )
        secret = re.search(r"chs_[\w-]{43}", response.content.decode())[0]
        key = ApiKey.objects.get()
        self.assertTrue(secret.startswith(key.prefix))
        self.assertEqual(key.scopes, ["search", "documents:write"])
        for page in ("/admin/accounts/apikey/", f"/admin/accounts/apikey/{key.pk}/change/"):
            response = self.client.get(page)
            self.assertNotContains(response, secret)
            self.assertNotContains(response, key.digest)

    def test_a_new_key_is_valid_for_as_long_as_chosen(self):
        values = {"user": self.admin.pk, "name": "nightly", "scopes": ["search"], "days": "30"}
        self.assertContains(self.client.get("/admin/accounts/apikey/add/"), "30 days")
        self.client.post("/admin/accounts/apikey/add/", values)
        left = ApiKey.objects.get().expires_at - timezone.now()
        self.assertTrue(timedelta(days=29) < left <= timedelta(days=30), left)
        self.assertEqual(
            self.client.post("/admin/accounts/apikey/add/", values | {"days": "7"}).status_code, 200
        )

    def test_the_list_of_groups_says_how_many_people_may_sign_in(self):
        crew = Group.objects.create(name="Crew")
        for name, active in (("ada", True), ("ben", True), ("gone", False)):
            User.objects.create_user(name, is_active=active).groups.add(crew)
        page = self.client.get("/admin/auth/group/?o=-2")
        self.assertContains(page, '<td class="field-people">2</td>')

    def test_permissions_that_allow_nothing_are_not_offered(self):
        crew = Group.objects.create(name="Crew")
        kept = Permission.objects.get(codename="view_session")
        crew.permissions.add(kept)
        for page, hidden in (("add/", True), (f"{crew.pk}/change/", False)):
            form = self.client.get(f"/admin/auth/group/{page}").context["adminform"].form
            offered = set(form.fields["permissions"].queryset.values_list("codename", flat=True))
            self.assertEqual(kept.codename not in offered, hidden)
            useful = {"view_as_others", "view_figures", "see_thoughts", "change_document", "view_auditentry"}
            self.assertLessEqual(useful | {"add_verifiedcitation"}, offered)
            for codename in ("add_contenttype", "delete_lease", "change_auditentry", "add_run"):
                self.assertNotIn(codename, offered)

    def test_chosen_keys_are_revoked(self):
        key, _ = ApiKey.objects.issue(self.admin, "nightly")
        self.client.post("/admin/accounts/apikey/", {"action": "revoke", "_selected_action": [key.pk]})
        self.assertFalse(ApiKey.objects.usable().exists())

    def test_staff_with_the_view_permission_only_cannot_revoke(self):
        key, _ = ApiKey.objects.issue(self.admin, "nightly")
        looker = User.objects.create_user("bob", is_staff=True)
        looker.user_permissions.add(Permission.objects.get(codename="view_apikey"))
        self.client.force_login(looker)
        self.client.post("/admin/accounts/apikey/", {"action": "revoke", "_selected_action": [key.pk]})
        self.assertTrue(ApiKey.objects.usable().exists())

    def test_names_with_html_are_shown_as_text(self):
        key, _ = ApiKey.objects.issue(self.admin, EVIL)
        pages = ["user/", f"user/{self.admin.pk}/change/", "apikey/", f"apikey/{key.pk}/change/"]
        for page in pages:
            self.assertNotContains(self.client.get(f"/admin/accounts/{page}"), EVIL)

    def test_a_password_set_by_an_administrator_ends_the_sessions_of_that_person_only(self):
        eve = User.objects.create_user("eve")
        browser = self.client_class()
        browser.force_login(eve)
        theirs = Principal(eve.pk, "session", browser.session.session_key)
        new = {"usable_password": "true", "password1": "battery-staple-9", "password2": "battery-staple-9"}
        self.client.post(f"/admin/accounts/user/{eve.pk}/password/", new | {"password2": "other"})
        self.assertTrue(still_valid(theirs))
        self.client.post(f"/admin/accounts/user/{eve.pk}/password/", new)
        self.assertFalse(still_valid(theirs))
        self.assertEqual(self.client.get("/admin/").status_code, 200)


class LookingByFilters(TestCase):
    """Hidden data of people can be guessed neither by filters nor by unusual addresses."""

    def setUp(self):
        self.staff = User.objects.create_user("staff", is_staff=True)
        self.staff.user_permissions.set(Permission.objects.filter(codename__in=["view_user", "change_user"]))
        User.objects.create_user("held", legal_hold="Fraud, case 17")
        self.client.force_login(self.staff)

    def test_filters_reveal_neither_the_reason_of_a_legal_hold_nor_personal_instructions(self):
        for lookup in ("legal_hold__startswith=Fraud", "wish__icontains=a", "email__startswith=a"):
            guessed = self.client.get(f"/admin/accounts/user/?{lookup}")
            self.assertEqual(guessed.status_code, 400, lookup)

    def test_invalid_ids_of_accounts_are_not_found(self):
        for number in ("abc", "%00", "_5F", "999999"):
            self.assertEqual(
                self.client.get(f"/admin/accounts/user/{number}/password/").status_code, 404, number
            )
