"""Where a key may be used from, for whom it may act, and accounts that belong to programs."""

from io import StringIO

from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.test import TestCase

from chatsite.accounts.models import ApiKey, AuditEntry, User
from chatsite.accounts.principal import Principal, still_valid
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user

SCOPES = ("search", "documents:read", "documents:write")


class AddressTests(TestCase):
    def setUp(self):
        self.user = make_user("ada")

    def status(self, address, *addresses):
        secret = ApiKey.objects.issue(self.user, "test", scopes=SCOPES, addresses=addresses)[1]
        headers = {"Authorization": f"Bearer {secret}"}
        return self.client.get("/api/whoami", headers=headers, REMOTE_ADDR=address).status_code

    def test_a_key_is_valid_only_from_its_addresses(self):
        for address, addresses, status in (
            ("192.0.2.7", (), 200),
            ("", (), 200),
            ("192.0.2.7", ("192.0.2.0/24",), 200),
            ("::ffff:192.0.2.7", ("192.0.2.0/24",), 200),
            ("192.0.2.7", ("198.51.100.1", "192.0.2.7"), 200),
            ("2001:db8::1", ("2001:db8::/32",), 200),
            ("192.0.3.7", ("192.0.2.0/24",), 401),
            ("2001:db8::1", ("192.0.2.0/24",), 401),
            ("", ("192.0.2.0/24",), 401),
            ("unix", ("0.0.0.0/0", "::/0"), 401),
        ):
            with self.subTest(address, addresses=addresses):
                self.assertEqual(self.status(address, *addresses), status)

    def test_the_command_accepts_addresses_and_refuses_invalid_ones(self):
        call_command(
            "create_api_key", "ada", "--address", "192.0.2.0/24", stdout=StringIO(), stderr=StringIO()
        )
        self.assertEqual(ApiKey.objects.get().addresses, ["192.0.2.0/24"])
        for wrong in ("192.0.2.1/24", "here", "192.0.2.0/33", "fe80::1%eth0"):
            with self.assertRaises(CommandError):
                call_command("create_api_key", "ada", "--address", wrong)

    def test_the_admin_accepts_addresses_and_only_superusers_let_keys_act_for_others(self):
        for name, acts in (("root", True), ("staff", False)):
            staff = make_user(name, is_staff=True, is_superuser=name == "root")
            if not acts:
                staff.user_permissions.set(permissions("add_apikey", "view_apikey"))
            self.client.force_login(staff)
            form = {"user": staff.pk, "name": "x", "scopes": ["search"], "acts_for_others": "on"}
            refused = self.client.post("/admin/accounts/apikey/add/", form | {"addresses": "nowhere"})
            self.assertContains(refused, "nowhere")
            made = self.client.post(
                "/admin/accounts/apikey/add/", form | {"addresses": "192.0.2.1, 10.0.0.0/8"}
            )
            self.assertEqual(made.status_code, 302)
            key = ApiKey.objects.get(user=staff)
            self.assertEqual(
                (key.addresses, key.acts_for_others), (["192.0.2.1/32", "10.0.0.0/8"], acts), name
            )


class OnBehalfTests(TestCase):
    def setUp(self):
        self.account = make_user("crm", service_for="CRM")
        self.ada, self.eve = make_user("ada"), make_user("eve")
        self.adas = make_document("ada.md", owner=self.ada)
        make_document("crm.md", owner=self.account)
        key, secret = ApiKey.objects.issue(self.account, "test", scopes=SCOPES, acts_for_others=True)
        self.key = key
        self.headers = {"Authorization": f"Bearer {secret}"}

    def names(self, person=None, status=200):
        headers = self.headers | ({"X-On-Behalf-Of": person} if person is not None else {})
        answer = self.client.get("/api/documents", headers=headers)
        self.assertEqual(answer.status_code, status, answer.content)
        return {each["name"] for each in answer.json()} if status == 200 else answer.json()["detail"]

    def test_the_key_acts_with_the_rights_of_the_person_and_is_logged(self):
        self.assertEqual(self.names(), {"crm.md"})
        self.assertFalse(AuditEntry.objects.exists())
        self.assertEqual(self.names("ada"), {"ada.md"})
        self.assertEqual(self.names("eve"), set())
        entries = AuditEntry.objects.filter(action="acted_for").order_by("pk")
        self.assertEqual(
            [(each.actor, each.person, each.subject) for each in entries],
            [("crm", "ada", "GET /api/documents"), ("crm", "eve", "GET /api/documents")],
        )
        told = self.client.get("/api/whoami", headers=self.headers | {"X-On-Behalf-Of": "ada"}).json()
        self.assertEqual((told["username"], told["on_behalf_of"], told["key"]["name"]), ("ada", True, "test"))
        self.assertFalse(self.client.get("/api/whoami", headers=self.headers).json()["on_behalf_of"])

    def test_a_document_added_for_a_person_belongs_to_that_person(self):
        headers = self.headers | {"X-On-Behalf-Of": "ada"}
        put = self.client.put("/api/documents/one?name=a.md", "Five.", "text/plain", headers=headers)
        self.assertEqual((put.status_code, Document.objects.get(name="a.md").owner), (201, self.ada))

    def test_other_people_cannot_be_named_and_refusals_are_identical(self):
        make_user("root", is_staff=True, is_superuser=True)
        make_user("clerk", is_staff=True)
        make_user("other", service_for="Wiki")
        make_user("gone", is_active=False)
        details = {self.names(name, 403) for name in ("root", "clerk", "other", "gone", "nobody", "", "crm")}
        self.assertEqual(details, {"This key may not act for a person with this name."})
        self.assertFalse(AuditEntry.objects.filter(action="acted_for").exists())

    def test_a_key_without_permission_is_refused_and_its_scopes_apply(self):
        ApiKey.objects.update(acts_for_others=False)
        self.assertIn("Only API keys that may act for others", self.names("ada", 403))
        self.assertIn("Only API keys that may act for others", self.names("nobody", 403))
        ApiKey.objects.update(acts_for_others=True, scopes=["chat"])
        self.assertIn("does not have the scope", self.names("ada", 403))

    def test_acting_for_others_ends_with_the_key_the_permission_the_account_or_the_person(self):
        principal = Principal(self.ada.pk, "api_key", str(self.key.pk), frozenset(SCOPES))
        self.assertTrue(still_valid(principal))
        for model, pk, change in (
            (ApiKey, self.key.pk, {"acts_for_others": False}),
            (User, self.account.pk, {"is_active": False}),
            (User, self.ada.pk, {"is_active": False}),
        ):
            model.objects.filter(pk=pk).update(**change)
            self.assertFalse(still_valid(principal), change)
            model.objects.filter(pk=pk).update(**{name: not value for name, value in change.items()})
        ApiKey.objects.revoke()
        self.assertFalse(still_valid(principal))


class ServiceAccountTests(TestCase):
    def test_a_service_account_is_created_by_the_command_and_has_keys_and_no_password(self):
        made = ("create_service_account", "crm", "--for", "CRM")
        with self.assertRaises(CommandError):
            call_command(*made, "--group", "Nobody")
        call_command(*made, stdout=StringIO())
        account = User.objects.get(username="crm")
        self.assertEqual((account.service_for, account.has_usable_password()), ("CRM", False))
        self.assertEqual(AuditEntry.objects.get().action, "service_created")
        for wrong in (made, ("create_service_account", "wiki", "--for", " ")):
            with self.assertRaises(CommandError):
                call_command(*wrong)
        root = make_user("root", is_staff=True, is_superuser=True)
        self.client.force_login(root)
        path = f"/admin/accounts/user/{account.pk}/password/"
        self.assertEqual(self.client.get(path).status_code, 403)


def permissions(*names):
    return Permission.objects.filter(codename__in=names)
