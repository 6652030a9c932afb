"""Exporting another person's data in the admin needs a permission and a reason; the person is notified."""

import io
import json
from unittest import mock
from zipfile import ZipFile

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.core.exceptions import RequestAborted
from django.test import AsyncClient, TestCase, TransactionTestCase, override_settings

from chat.persons import person_export
from chat.tests.conversations import answered
from chatsite.accounts.models import AuditEntry, Look, User
from chatsite.http import checked_transfer
from ingestion.tests.factories import make_document, make_user

REASON = "request 4711, for ann herself"


@pytest.mark.slow
class ExportOfOthersTests(TestCase):
    def setUp(self):
        self.ann = make_user("ann")
        self.page = f"/admin/accounts/user/{self.ann.pk}/export/"
        document = make_document("alone.md", owner=self.ann)
        answered(self.ann, document, question="What is zzcanary?")
        AuditEntry.objects.create(action="conversation_read", actor="eve", person_id=self.ann.pk)
        self.officer = make_user("officer", is_staff=True)
        self.give("export_others", "view_user")
        self.client.force_login(self.officer)

    def give(self, *names):
        self.officer.user_permissions.set(Permission.objects.filter(codename__in=names))

    def export(self, reason=REASON):
        return self.client.post(self.page, {"reason": reason})

    def test_a_reason_is_required_and_logged(self):
        page = self.client.get(self.page)
        self.assertContains(page, "1 conversation")
        self.assertNotContains(page, "zzcanary")
        for reason in ("", "short", "x" * 501):
            self.assertEqual(self.export(reason).headers["Content-Type"], "text/html; charset=utf-8")
        self.assertFalse(Look.objects.exists())
        sent = self.export()
        archive = ZipFile(io.BytesIO(b"".join(sent.streaming_content)))
        self.assertIn("What is zzcanary?", archive.read("conversations/00001.md").decode())
        entry = AuditEntry.objects.get(action="person_exported")
        said = (entry.actor, entry.person, entry.subject)
        self.assertEqual(said, ("officer", "ann", f"because: {REASON}"))

    def test_the_export_does_not_disclose_the_viewer_early(self):
        archive = ZipFile(io.BytesIO(b"".join(self.export().streaming_content)))
        said = archive.read("audit.json").decode() + archive.read("staff-access.json").decode()
        self.assertNotIn("eve", said)
        self.assertNotIn("officer", said)

    def test_the_person_learns_who_and_why_after_the_configured_time(self):
        self.export()
        person = self.client_class()
        person.force_login(self.ann)
        self.assertNotContains(person.get("/settings/data/"), REASON)
        self.assertNotContains(person.get("/settings/"), "See who, and why")
        with override_settings(LOOK_NOTICE_DAYS=0):
            self.assertContains(person.get("/settings/"), "See who, and why")
            page = person.get("/settings/data/")
            self.assertContains(page, REASON)
            self.assertContains(page, "exported all of it.")
            file = person.post("/settings/data/", {"export": "1"})
            archive = ZipFile(io.BytesIO(b"".join(file.streaming_content)))
            self.assertEqual(json.loads(archive.read("staff-access.json"))[0]["reason"], REASON)

    def test_without_the_permission_every_person_looks_the_same(self):
        unknown = "/admin/accounts/user/999999/export/"
        self.assertEqual(self.client.get(unknown).status_code, 404)
        for names in (
            ["view_user", "change_user", "delete_user", "read_others", "view_conversation"],
            ["export_others"],
        ):
            self.give(*names)
            for path in (self.page, unknown):
                self.assertEqual(self.client.get(path).status_code, 403)
                self.assertEqual(self.client.post(path, {"reason": REASON}).status_code, 403)
        User.objects.filter(pk=self.officer.pk).update(is_staff=False)
        for path in (self.page, unknown):
            self.assertRedirects(self.client.post(path, {"reason": REASON}), f"/admin/login/?next={path}")
        self.assertFalse(Look.objects.exists())

    def test_the_link_is_shown_to_those_with_the_permission(self):
        person = f"/admin/accounts/user/{self.ann.pk}/change/"
        self.assertContains(self.client.get(person), self.page)
        self.give("view_user")
        self.assertNotContains(self.client.get(person), self.page)

    def test_a_person_under_a_legal_hold_can_be_exported(self):
        User.objects.filter(pk=self.ann.pk).update(legal_hold="case 12")
        page = self.client.get(self.page)
        self.assertNotContains(page, "case 12")
        self.assertEqual(self.export().headers["Content-Type"], "application/zip")

    def test_one_export_is_created_at_a_time(self):
        cache.add(f"export:{self.officer.pk}", True)
        self.addCleanup(cache.delete, f"export:{self.officer.pk}")
        self.assertContains(self.export(), "Your last file is still being prepared")
        self.assertFalse(Look.objects.exists())


@pytest.mark.slow
class TransferOfOthersTests(TransactionTestCase):
    def setUp(self):
        self.ann, self.officer = make_user("ann"), make_user("officer", is_staff=True)
        self.page = f"/admin/accounts/user/{self.ann.pk}/export/"
        self.give("export_others", "view_user")

    def give(self, *names):
        self.officer.user_permissions.set(Permission.objects.filter(codename__in=names))

    async def test_sending_ends_when_the_right_is_withdrawn_meanwhile(self):
        for name, withdraw in {
            "permission": lambda: self.give("view_user"),
            "staff": lambda: User.objects.filter(pk=self.officer.pk).update(is_staff=False),
            "account": lambda: User.objects.filter(pk=self.officer.pk).update(is_active=False),
        }.items():
            await User.objects.filter(pk=self.officer.pk).aupdate(is_staff=True, is_active=True)
            await sync_to_async(self.give)("export_others", "view_user")
            client = AsyncClient()
            await client.aforce_login(self.officer)
            with (
                self.subTest(name),
                mock.patch.object(person_export, "CHUNK_BYTES", 1_000),
                mock.patch.object(checked_transfer, "CHECK_SECONDS", -1),
            ):
                sent = await client.post(self.page, {"reason": REASON})
                received = 0
                with self.assertRaises(RequestAborted):
                    async for piece in sent.streaming_content:
                        received += len(piece)
                        await sync_to_async(withdraw)()
                self.assertEqual(received, 1_000)

    async def test_nothing_is_sent_if_the_right_is_withdrawn_while_the_file_is_prepared(self):
        client = AsyncClient()
        await client.aforce_login(self.officer)
        sent = await client.post(self.page, {"reason": REASON})
        await sync_to_async(self.give)("view_user")
        with self.assertRaises(RequestAborted):
            self.assertEqual([piece async for piece in sent.streaming_content], [])

    async def test_the_file_is_sent_in_pieces(self):
        client = AsyncClient()
        await client.aforce_login(self.officer)
        sent = await client.post(self.page, {"reason": REASON})
        self.assertTrue(sent.is_async)
        pieces = [piece async for piece in sent.streaming_content]
        self.assertIn("profile.json", ZipFile(io.BytesIO(b"".join(pieces))).namelist())
