"""Staff with rights in the admin cannot turn them into more rights than they have."""

from django.contrib.auth.models import Group, Permission
from django.test import TestCase, override_settings

from chatsite.accounts.models import ApiKey, ExternalIdentity, GroupMapping, User

USERS, GROUPS, KEYS = "/admin/accounts/user/", "/admin/auth/group/", "/admin/accounts/apikey/"
MAPPINGS, IDENTITIES = "/admin/accounts/groupmapping/", "/admin/accounts/externalidentity/"
NEW_PASSWORD = {
    "usable_password": "true",
    "password1": "battery-staple-9",
    "password2": "battery-staple-9",
}


def rights(*names):
    return Permission.objects.filter(codename__in=names)


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class StaffRights(TestCase):
    """`clerk` has every permission on accounts and groups, and is in the group Desk."""

    def setUp(self):
        self.desk, self.board = (Group.objects.create(name=name) for name in ("Desk", "Board"))
        self.root = User.objects.create_superuser("root", password="root-horse-11")
        self.clerk = User.objects.create_user("clerk", is_staff=True)
        self.clerk.user_permissions.set(
            Permission.objects.filter(content_type__app_label__in=["accounts", "auth"])
        )
        self.clerk.groups.add(self.desk)
        self.director = User.objects.create_user("director")
        self.director.groups.add(self.board)
        self.client.force_login(self.clerk)

    def change(self, person, **fields):
        values = {"username": person.username, "date_joined_0": "2026-01-01", "date_joined_1": "10:00"}
        values |= {"is_active": "on"} | fields
        return self.client.post(f"{USERS}{person.pk}/change/", values)

    def test_staff_cannot_create_a_key_for_another_person(self):
        for person in (self.root, self.director):
            reply = self.client.post(f"{KEYS}add/", {"user": person.pk, "name": "x", "scopes": "chat"})
            self.assertEqual(reply.status_code, 200)
            self.assertFalse(ApiKey.objects.exists())
        self.assertNotContains(self.client.get(f"{KEYS}add/"), "director")

    def test_staff_create_keys_of_their_own(self):
        self.client.post(f"{KEYS}add/", {"user": self.clerk.pk, "name": "mine", "scopes": "chat"})
        self.assertEqual(ApiKey.objects.get().user, self.clerk)

    def test_staff_cannot_rename_revoke_or_delete_keys_of_a_person_with_more_rights(self):
        for person in (self.root, self.director):
            key, _ = ApiKey.objects.issue(person, "nightly")
            reply = self.client.post(f"{KEYS}{key.pk}/change/", {"name": "mine"})
            self.assertEqual(reply.status_code, 403)
            self.client.post(KEYS, {"action": "revoke", "_selected_action": [key.pk]})
            self.assertEqual(self.client.post(f"{KEYS}{key.pk}/delete/", {"post": "yes"}).status_code, 403)
            self.delete_selected(KEYS, key)
            self.assertEqual(ApiKey.objects.usable().get(pk=key.pk).name, "nightly")
            self.assertEqual(self.client.get(f"{KEYS}{key.pk}/change/").status_code, 200)

    def test_staff_rename_revoke_and_delete_keys_of_a_person_without_more_rights(self):
        colleague = User.objects.create_user("colleague")
        for person in (colleague, self.clerk):
            key, _ = ApiKey.objects.issue(person, "nightly")
            self.client.post(f"{KEYS}{key.pk}/change/", {"name": "weekly"})
            self.assertEqual(ApiKey.objects.get().name, "weekly")
            self.client.post(KEYS, {"action": "revoke", "_selected_action": [key.pk]})
            self.assertFalse(ApiKey.objects.usable().exists())
            self.client.post(f"{KEYS}{key.pk}/delete/", {"post": "yes"})
            self.assertFalse(ApiKey.objects.exists())

    def test_a_superuser_creates_keys_for_others(self):
        self.client.force_login(self.root)
        self.client.post(f"{KEYS}add/", {"user": self.director.pk, "name": "nightly", "scopes": "chat"})
        self.assertEqual(ApiKey.objects.get().user, self.director)

    def test_staff_neither_see_nor_set_the_superuser_flag(self):
        eve = User.objects.create_user("eve")
        for person in (eve, self.clerk):
            page = self.client.get(f"{USERS}{person.pk}/change/")
            self.assertContains(page, "is_staff")
            self.assertNotContains(page, "is_superuser")
            self.assertEqual(self.change(person, is_staff="on", is_superuser="on").status_code, 302)
            person.refresh_from_db()
            self.assertFalse(person.is_superuser)
        self.assertTrue(eve.is_staff)

    def test_superusers_create_superusers(self):
        self.client.force_login(self.root)
        self.assertContains(self.client.get(f"{USERS}{self.clerk.pk}/change/"), "is_superuser")
        self.change(self.clerk, is_superuser="on")
        self.assertTrue(User.objects.get(pk=self.clerk.pk).is_superuser)

    def test_staff_cannot_change_the_password_of_a_person_with_more_rights(self):
        allowed = User.objects.create_user("allowed")
        allowed.user_permissions.add(*rights("see_thoughts"))
        switched_off = User.objects.create_superuser("former", is_active=False)
        for person in (self.root, self.director, allowed, switched_off):
            before = person.password
            reply = self.client.post(f"{USERS}{person.pk}/password/", NEW_PASSWORD)
            self.assertEqual(reply.status_code, 403, person)
            self.assertEqual(User.objects.get(pk=person.pk).password, before)

    def test_staff_change_the_password_of_a_person_without_more_rights(self):
        colleague = User.objects.create_user("colleague")
        colleague.groups.add(self.desk)
        reply = self.client.post(f"{USERS}{colleague.pk}/password/", NEW_PASSWORD)
        self.assertEqual(reply.status_code, 302)
        self.assertTrue(User.objects.get(pk=colleague.pk).check_password("battery-staple-9"))

    def test_staff_cannot_change_the_email_or_groups_of_a_person_with_more_rights(self):
        for person in (self.root, self.director):
            reply = self.change(person, email="clerk@example.org", groups=[self.desk.pk])
            self.assertEqual(reply.status_code, 403)
            person.refresh_from_db()
            self.assertEqual(person.email, "")
            self.assertNotIn(self.desk, person.groups.all())
            self.assertEqual(self.client.get(f"{USERS}{person.pk}/change/").status_code, 200)

    def test_staff_cannot_add_people_to_a_group_that_they_are_not_in(self):
        self.assertEqual(self.change(self.clerk, groups=[self.desk.pk, self.board.pk]).status_code, 200)
        self.assertEqual(list(self.clerk.groups.all()), [self.desk])
        eve = User.objects.create_user("eve")
        self.change(eve, groups=[self.desk.pk])
        self.assertEqual(list(eve.groups.all()), [self.desk])

    def test_staff_cannot_give_a_permission_they_lack(self):
        more = rights("see_thoughts").get()
        self.assertEqual(self.change(self.clerk, user_permissions=[more.pk]).status_code, 200)
        self.assertFalse(self.clerk.user_permissions.filter(pk=more.pk).exists())
        self.client.post(f"{GROUPS}{self.desk.pk}/change/", {"name": "Desk", "permissions": [more.pk]})
        self.client.post(f"{GROUPS}add/", {"name": "New", "permissions": [more.pk]})
        self.assertFalse(Permission.objects.filter(pk=more.pk, group__isnull=False).exists())

    def test_staff_cannot_change_or_delete_a_group_they_are_not_in(self):
        reply = self.client.post(f"{GROUPS}{self.board.pk}/change/", {"name": "Taken"})
        self.assertEqual(reply.status_code, 403)
        self.client.post(f"{GROUPS}{self.board.pk}/delete/", {"post": "yes"})
        self.delete_selected(GROUPS, self.board)
        self.assertEqual(Group.objects.get(pk=self.board.pk).name, "Board")

    def delete_selected(self, page, row):
        chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        self.assertEqual(self.client.post(page, chosen).status_code, 403)

    def test_staff_cannot_delete_a_person_with_more_rights(self):
        for person in (self.root, self.director):
            confirmed = {"documents": "delete", "confirmed": "on"}
            self.assertEqual(self.client.post(f"{USERS}{person.pk}/delete/", confirmed).status_code, 403)
            chosen = {"action": "delete_selected", "_selected_action": [person.pk], "post": "yes"}
            self.client.post(USERS, chosen)  # people are erased one by one: there is no such action
            self.assertTrue(User.objects.filter(pk=person.pk).exists())

    def test_staff_cannot_map_a_group_of_the_provider_to_a_group_they_are_not_in(self):
        mapping = GroupMapping.objects.create(issuer="https://id", value="all", group=self.desk)
        fields = {"issuer": "https://id", "value": "all", "group": self.board.pk}
        self.assertEqual(self.client.post(f"{MAPPINGS}add/", fields).status_code, 200)
        self.client.post(f"{MAPPINGS}{mapping.pk}/change/", fields)
        self.assertFalse(GroupMapping.objects.filter(group=self.board).exists())
        theirs = GroupMapping.objects.create(issuer="https://id", value="top", group=self.board)
        reply = self.client.post(f"{MAPPINGS}{theirs.pk}/change/", fields | {"group": self.desk.pk})
        self.assertEqual(reply.status_code, 403)

    def test_staff_cannot_delete_the_identity_of_a_person_with_more_rights(self):
        identity = ExternalIdentity.objects.create(user=self.director, issuer="https://id", subject="s")
        self.client.post(f"{IDENTITIES}{identity.pk}/delete/", {"post": "yes"})
        self.delete_selected(IDENTITIES, identity)
        self.assertTrue(ExternalIdentity.objects.exists())

    def test_the_hash_of_a_key_cannot_be_searched_for(self):
        ApiKey.objects.issue(self.clerk, "mine")
        self.assertEqual(self.client.get(f"{KEYS}?digest__startswith=a").status_code, 400)

    def test_names_are_not_completed_for_staff_who_may_not_see_people(self):
        helper = User.objects.create_user("helper", is_staff=True)
        helper.user_permissions.set(rights("add_apikey", "view_apikey"))
        self.client.force_login(helper)
        field = "app_label=accounts&model_name=apikey&field_name=user"
        self.assertEqual(self.client.get(f"/admin/autocomplete/?{field}").status_code, 403)
        self.assertNotContains(self.client.get(f"{KEYS}add/"), "director")
