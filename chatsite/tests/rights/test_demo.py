"""The demo accounts: when they are created, and when they are shown."""

import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.test import TestCase, override_settings

from chatsite import demo
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.demo_guard import DemoGuard
from chatsite.http.loopback import is_loopback
from ingestion.models import Document


class DemoCase(TestCase):
    def setUp(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        changed = override_settings(
            DATA_DIR=folder,
            MEDIA_ROOT=folder / "files",
            DEMO=True,
            EMBEDDED_DATABASE=True,
            ALLOWED_HOSTS=["127.0.0.1", "localhost", "[::1]"],
            PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        )
        changed.enable()
        self.addCleanup(changed.disable)

    def shown(self):
        return [account.username for account in demo.demo_accounts()]


@pytest.mark.slow
class Demo(DemoCase):
    def test_the_accounts_and_the_documents_have_the_rights_of_their_folders(self):
        demo.create_demo()
        self.assertEqual(self.shown(), ["employee", "hr", "admin"])
        self.assertTrue(User.objects.get(username="admin").is_superuser)
        self.assertEqual(User.objects.get(username="hr").groups.get().name, "HR")
        self.assertEqual(Document.objects.count(), len(list(demo.SAMPLES.glob("*/*"))))
        for account in demo.demo_accounts():
            self.assertTrue(self.client.login(username=account.username, password=account.password))

    def test_each_account_reads_only_its_folders(self):
        demo.create_demo()
        readable = {
            username: set(
                Document.objects.visible_to(Principal(pk, "command")).values_list("name", flat=True)
            )
            for username, pk in User.objects.values_list("username", "pk")
        }
        everyone, hr, employee = (
            {path.name for path in (demo.SAMPLES / folder).iterdir()}
            for folder in ("everyone", "hr", "employee")
        )
        expected = {"employee": everyone | employee, "hr": everyone | hr, "admin": everyone}
        self.assertEqual(readable, expected)

    def test_an_existing_account_prevents_the_demo(self):
        User.objects.create_user("somebody")
        demo.create_demo()
        self.assertEqual(User.objects.count(), 1)
        self.assertEqual(self.shown(), [])

    def test_a_changed_password_or_a_disabled_account_is_not_shown(self):
        demo.create_demo()
        changed = User.objects.get(username="hr")
        changed.set_password("mine alone")
        changed.save()
        User.objects.filter(username="admin").update(is_active=False)
        self.assertEqual(self.shown(), ["employee"])

    def test_a_password_that_was_only_hashed_again_is_still_shown(self):
        demo.create_demo()
        account = User.objects.get(username="hr")
        account.set_password(demo.demo_accounts()[1].password)
        account.save()
        self.assertIn("hr", self.shown())

    def test_nothing_is_shown_without_the_demo_or_with_an_external_database(self):
        demo.create_demo()
        for name in ("DEMO", "EMBEDDED_DATABASE"):
            with override_settings(**{name: False}):
                self.assertEqual(self.shown(), [])

    def test_a_failure_leaves_no_partial_demo(self):
        with mock.patch("chatsite.demo.upsert", side_effect=OSError), self.assertRaises(OSError):
            demo.create_demo()
        self.assertFalse(User.objects.exists())


LOCAL = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}


@pytest.mark.slow
class DemoOnThisMachine(DemoCase):
    """The passwords are shown only to browsers on this machine."""

    def setUp(self):
        super().setUp()
        demo.create_demo()

    def on_page(self, **values):
        page = self.client.get("/accounts/sign-in/", **LOCAL | values).content.decode()
        return {account.username for account in demo.demo_accounts() if account.password in page}

    def test_the_administrators_password_is_not_on_any_page(self):
        self.assertEqual(self.on_page(), {"employee", "hr"})
        self.assertIn("admin", self.shown())

    def test_no_password_is_shown_to_another_machine_or_for_another_name_or_through_a_proxy(self):
        for values in (
            {"REMOTE_ADDR": "10.0.0.9"},
            {"REMOTE_ADDR": ""},
            {"HTTP_HOST": "ask.example.org"},
            {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
            {"HTTP_X_FORWARDED_PROTO": "https"},
            {"HTTP_FORWARDED": "for=127.0.0.1"},
            {"HTTP_VIA": "1.1 proxy"},
            {"HTTP_X_REAL_IP": "127.0.0.1"},
        ):
            with self.subTest(values), override_settings(ALLOWED_HOSTS=["127.0.0.1", "ask.example.org"]):
                self.assertEqual(self.on_page(**values), set())

    def test_no_password_is_shown_if_the_site_serves_other_machines(self):
        for changed in EXPOSING:
            with self.subTest(changed), override_settings(**changed):
                self.assertEqual(self.on_page(), set())
        with mock.patch.dict("os.environ", {"HOST": "0.0.0.0"}):
            self.assertEqual(self.on_page(), set())

    def test_a_site_that_serves_other_machines_does_not_start_with_known_passwords(self):
        self.assertEqual(demo.refusal(), "")
        for changed in EXPOSING:
            with self.subTest(changed), override_settings(**changed):
                self.assertIn("(employee, hr, admin)", demo.refusal())
        with mock.patch.dict("os.environ", {"HOST": "0.0.0.0"}):
            self.assertIn("(HOST is 0.0.0.0)", demo.refusal())
            # As if the accounts had been moved to another database.
            with override_settings(EMBEDDED_DATABASE=False):
                self.assertIn("(employee, hr, admin)", demo.refusal())
            with override_settings(DEMO=False):
                self.assertEqual(demo.refusal(), "")
            for user in User.objects.all():
                user.set_password("mine alone 7")
                user.save()
            self.assertEqual(demo.refusal(), "")

    def test_a_site_that_serves_other_machines_gets_no_demo(self):
        User.objects.all().delete()
        with mock.patch.dict("os.environ", {"HOST": "::"}):
            demo.create_demo()
        self.assertFalse(User.objects.exists())


EXPOSING = [
    {"ALLOWED_HOSTS": ["127.0.0.1", "ask.example.org"]},
    {"ALLOWED_HOSTS": ["127.0.0.1", "*"]},
    {"CSRF_TRUSTED_ORIGINS": ["https://ask.example.org"]},
    {"TRUSTED_PROXIES": ["127.0.0.1"]},
    {"HTTPS": True},
]


@pytest.mark.slow
class Guard(DemoCase):
    """Requests and sockets from other machines are refused while the demo passwords are in use."""

    def setUp(self):
        super().setUp()
        demo.create_demo()
        in_this_transaction = sync_to_async(lambda function: function())
        self.enterContext(mock.patch("chatsite.demo_guard.in_database_within_budget", in_this_transaction))

    async def served(self, client="127.0.0.1", kind="http", **headers):
        sent = []

        async def application(scope, receive, send):
            sent.append({"served": True})

        async def receive():
            return {"type": "websocket.connect"}

        async def send(message):
            sent.append(message)

        named = {"host": "localhost:8000"} | {name.replace("_", "-"): text for name, text in headers.items()}
        scope = {
            "type": kind,
            "method": "GET",
            "path": "/",
            "client": (client, 5) if client else None,
            "headers": [(name.encode(), text.encode()) for name, text in named.items()],
        }
        await DemoGuard(application)(scope, receive, send)
        return sent

    async def test_a_local_request_is_served_and_a_remote_one_is_refused_with_a_reason(self):
        self.assertEqual(await self.served(), [{"served": True}])
        for foreign in (
            {"client": "10.0.0.9"},
            {"client": None},
            {"host": "ask.example.org"},
            {"host": "localhost.example.org"},
            {"x_forwarded_for": "127.0.0.1"},
        ):
            with self.subTest(foreign):
                begin, body = await self.served(**foreign)
                self.assertEqual(begin["status"], 403)
                self.assertIn(b"CHATSITE_DEMO=0", body["body"])

    async def test_a_foreign_socket_is_closed(self):
        sent = await self.served(kind="websocket", x_forwarded_for="10.0.0.9")
        self.assertEqual(sent, [{"type": "websocket.close", "code": 4403}])

    async def test_the_site_is_open_to_all_once_the_passwords_are_changed_or_the_demo_is_off(self):
        with override_settings(DEMO=False):
            self.assertEqual(await self.served(client="10.0.0.9"), [{"served": True}])
        await User.objects.aupdate(password="!")
        self.assertEqual(await self.served(client="10.0.0.9"), [{"served": True}])

    def test_names_and_addresses_of_this_machine(self):
        for host in (
            "127.0.0.1",
            "127.8.8.8",
            "localhost",
            "LOCALHOST",
            "a.localhost",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
        ):
            self.assertTrue(is_loopback(host), host)
        for host in (
            "0.0.0.0",
            "::",
            "10.0.0.1",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "",
            "2130706433",
        ):
            self.assertFalse(is_loopback(host), host)
