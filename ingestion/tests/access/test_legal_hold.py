"""Documents of a person under a legal hold cannot be deleted, replaced or handed over."""

import pytest
from django.contrib.auth.models import Group
from django.core.files.base import ContentFile
from django.test import Client, TestCase

from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey, AuditEntry, User
from chatsite.accounts.principal import Principal
from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.bulk import changes
from ingestion.bulk.models import BulkChange, BulkItem
from ingestion.models import Document
from ingestion.tests.commands.test_sync_command import SyncMixin
from ingestion.tests.factories import make_user
from ingestion.tests.media import MediaMixin

REASON = "Its owner is under a legal hold."


@pytest.mark.slow
class LegalHoldTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.admin = User.objects.create_superuser("admin")
        self.ann = make_user("ann")
        self.client.force_login(self.admin)
        file = ContentFile(b"Five days.", "leave.md")
        self.document = documents.upsert(file, "leave.md", owner=self.ann, audience=Audience(True)).document
        Document.objects.filter(pk=self.document.pk).update(version=1, status=Document.Status.READY)
        self.page = f"/documents/{self.document.public_id}/"
        self.hold("case 17")

    def hold(self, reason):
        User.objects.filter(pk=self.ann.pk).update(legal_hold=reason)

    def bulk(self, kind, wanted):
        change = BulkChange.objects.create(actor=self.admin, kind=kind, wanted=wanted, state="running")
        BulkItem.objects.create(change=change, document_id=self.document.pk, owner=self.ann.pk)
        with self.captureOnCommitCallbacks(execute=True):
            changes.work(change.pk)
        item = BulkItem.objects.get(change=change)
        return item.outcome, item.reason

    def test_every_way_to_delete_it_is_refused_without_disclosing_the_reason_of_the_hold(self):
        theirs = Client()
        theirs.force_login(self.ann)
        key = ApiKey.objects.issue(self.ann, "test", scopes=[Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE])[1]
        several = {"act": "delete", "confirmed": "yes", "document": str(self.document.public_id)}
        api = Client(headers={"Authorization": f"Bearer {key}"})
        for status, response in (
            (200, self.client.post(f"{self.page}delete/", follow=True)),
            (200, theirs.post(f"{self.page}delete/", follow=True)),
            (200, self.client.post("/documents/several/", several, follow=True)),
            (403, api.delete(f"/api/documents/{self.document.public_id}")),
        ):
            self.assertContains(response, REASON, status_code=status)
            self.assertNotContains(response, "case 17", status_code=status)
        admin = f"/admin/ingestion/document/{self.document.pk}/delete/"
        self.assertContains(self.client.get(admin), REASON)
        self.assertContains(self.client.post(admin, {"post": "yes"}), REASON)
        outcome, reason = self.bulk(BulkChange.Kind.DELETE, {})
        self.assertEqual((outcome, reason[: len(REASON)]), (BulkItem.Outcome.REFUSED, REASON))
        self.assertTrue(Document.objects.filter(pk=self.document.pk).exists())
        self.assertFalse(AuditEntry.objects.filter(subject__startswith="Deleted").exists())

    def test_the_document_is_not_replaced_and_keeps_its_owner(self):
        with self.assertRaises(documents.UploadRefused) as refused:
            documents.upsert(
                ContentFile(b"Six days.", "leave.md"), "leave.md", owner=self.ann, audience=Audience(True)
            )
        self.assertIn(REASON, refused.exception.message)
        key = ApiKey.objects.issue(self.ann, "test", scopes=[Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE])[1]
        api = Client(headers={"Authorization": f"Bearer {key}"})
        address = "/api/documents/mine?name=mine.md"
        self.assertEqual(api.put(address, b"One.", "text/markdown").status_code, 201)
        self.assertContains(api.put(address, b"Two.", "text/markdown"), REASON, status_code=403)
        outcome, _ = self.bulk(BulkChange.Kind.OWNER, {"owner": self.admin.pk})
        self.assertEqual(outcome, BulkItem.Outcome.REFUSED)
        self.document.refresh_from_db()
        self.assertEqual(self.document.owner, self.ann)
        with self.document.file.open() as stored:
            self.assertEqual(stored.read(), b"Five days.")

    def test_the_same_file_and_other_documents_are_accepted_and_everything_is_deletable_after_the_hold(self):
        for name, text in (("leave.md", b"Five days."), ("other.md", b"New.")):
            documents.upsert(ContentFile(text, name), name, owner=self.ann, audience=Audience(True))
        self.hold("")
        self.assertEqual(self.bulk(BulkChange.Kind.DELETE, {})[0], BulkItem.Outcome.DONE)


@pytest.mark.slow
class MirroredUnderHoldTests(SyncMixin, TestCase):
    def test_the_document_of_a_removed_file_stays_until_the_hold_ends(self):
        ann = make_user("ann")
        file = self.put("a.md", "One.")
        self.put("b.md", "Two.")
        options = ("--owner", "ann", "--everyone")
        self.sync(*options, now=True)
        User.objects.filter(pk=ann.pk).update(legal_hold="case 17")
        file.unlink()
        self.assertIn(REASON, self.refused(*options))
        self.assertEqual(self.paths(), ["a.md", "b.md"])
        User.objects.filter(pk=ann.pk).update(legal_hold="")
        self.sync(*options)
        self.assertEqual(self.paths(), ["b.md"])

    def test_a_new_owner_of_the_folder_gets_no_document_until_the_hold_ends(self):
        ann, ben = make_user("ann"), make_user("ben")
        Group.objects.create(name="board")
        self.put("a.md", "One.")
        self.sync("--owner", "ann", "--everyone", now=True)
        User.objects.filter(pk=ann.pk).update(legal_hold="case 17")
        self.assertIn(REASON, self.refused("--owner", "ben", "--group", "board"))
        document = Document.objects.get()
        self.assertEqual(document.owner, ann)
        self.assertFalse(Document.objects.visible_to(Principal(make_user("eve").pk, "session")).exists())
        User.objects.filter(pk=ann.pk).update(legal_hold="")
        self.sync("--owner", "ben", "--group", "board")
        self.assertEqual(Document.objects.get().owner, ben)
