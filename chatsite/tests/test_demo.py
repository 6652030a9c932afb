"""The demo accounts: when they are made, when they are shown."""

import shutil
import tempfile
from pathlib import Path
from unittest import mock

from django.test import TestCase, override_settings

from chatsite import demo
from chatsite.accounts.models import User
from chatsite.accounts.principals import Principal
from ingestion.models import Document


class Demo(TestCase):
    def setUp(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        changed = override_settings(
            DATA_DIR=folder,
            MEDIA_ROOT=folder / "files",
            DEMO=True,
            EMBEDDED_DATABASE=True,
            PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        )
        changed.enable()
        self.addCleanup(changed.disable)

    def shown(self):
        return [account.username for account in demo.demo_accounts()]

    def test_the_accounts_and_the_documents_have_the_rights_of_their_folders(self):
        demo.create_demo()
        self.assertEqual(self.shown(), ["employee", "hr", "admin"])
        self.assertTrue(User.objects.get(username="admin").is_superuser)
        self.assertEqual(User.objects.get(username="hr").groups.get().name, "HR")
        self.assertEqual(Document.objects.count(), len(list(demo.SAMPLES.glob("*/*"))))
        for account in demo.demo_accounts():
            self.assertTrue(self.client.login(username=account.username, password=account.password))

    def test_each_reads_the_folders_for_them_and_no_other(self):
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

    def test_an_account_of_somebody_means_that_there_is_no_demo(self):
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

    def test_a_failure_half_way_leaves_nothing(self):
        with mock.patch("chatsite.demo.add_document", side_effect=OSError), self.assertRaises(OSError):
            demo.create_demo()
        self.assertFalse(User.objects.exists())
