"""The quota of a person: shown with its value, and exact for concurrent uploads."""

import threading

from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import TestCase, TransactionTestCase, override_settings
from django.urls import reverse
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import User
from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.file_names import UploadRefused
from ingestion.models import Document
from ingestion.queue import fair_queue
from ingestion.quota import claim, usage_of
from ingestion.tests.lifecycle.test_worker import forget_all_jobs
from ingestion.tests.media import MediaMixin


class DefaultQuota(TestCase):
    def test_the_default_quota_keeps_one_person_from_filling_the_disk(self):
        use = usage_of(User.objects.create_user("ann"))
        self.assertEqual((use.max_size, use.max_documents), (5_000_000_000, 5_000))
        with self.assertRaises(UploadRefused) as refused:
            claim(User.objects.get(), 5_000_000_001)
        self.assertIn("Your documents may take 4.7\N{NO-BREAK SPACE}GB.", refused.exception.message)


@override_settings(USER_MAX_DOCUMENTS=2, USER_MAX_BYTES=1_000)
class QuotaTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.user = User.objects.create_user("ann", password="p")
        self.client.force_login(self.user)

    def upload(self, *files):
        sent = [SimpleUploadedFile(name, data) for name, data in files]
        data = {"who": "me", "file": sent}
        return self.client.post(reverse("ingestion:add"), data, headers={"Accept": "application/json"}).json()

    def refused(self, *files):
        return [refusal["message"] for refusal in self.upload(*files)["refused"]]

    def test_a_document_beyond_the_quota_is_refused_with_limit_and_use(self):
        said = self.refused(("a.md", b"One."), ("b.md", b"Two."), ("c.md", b"Three."))
        self.assertEqual(said, ["You may keep 2 documents and have 2. Delete some first."])
        self.assertEqual(Document.objects.count(), 2)

    def test_a_file_beyond_the_remaining_quota_is_refused_and_a_smaller_one_accepted(self):
        said = self.refused(("a.md", b"x" * 600), ("b.md", b"x" * 401), ("c.md", b"x" * 400))
        self.assertEqual(
            said,
            ["Your documents may take 1000\N{NO-BREAK SPACE}bytes."
             " They take 600\N{NO-BREAK SPACE}bytes, and this file has 401\N{NO-BREAK SPACE}bytes."
             " Delete some first."],
        )  # fmt: skip
        self.assertEqual(sorted(Document.objects.values_list("name", flat=True)), ["a.md", "c.md"])

    def test_a_replacement_counts_the_difference_in_size_and_no_document(self):
        self.upload(("a.md", b"x" * 900), ("b.md", b"x" * 50))
        self.assertEqual(self.refused(("a.md", b"y" * 950)), [])

    def test_waiting_replacements_count(self):
        self.upload(("a.md", b"x" * 100), ("b.md", b"x" * 100))
        self.assertEqual(self.refused(("a.md", b"y" * 800)), [])
        self.assertEqual(len(self.refused(("b.md", b"y" * 200))), 1)

    def test_a_file_waiting_behind_another_counts(self):
        self.upload(("a.md", b"x" * 100), ("b.md", b"x" * 100))
        for text in (b"y" * 300, b"z" * 400):
            self.assertEqual(self.refused(("a.md", text)), [])
        document = Document.objects.get(name="a.md")
        jobs = ProcrastinateJob.objects.filter(lock=documents.lock_name(document.pk))
        first = jobs.exclude(args__replacement=None).order_by("pk")[0].args["replacement"]
        documents.read_document(document.pk, first)
        documents.remove_jobs(document, first)
        self.assertEqual(usage_of(self.user).size, 100 + 300 + 400)
        Document.objects.filter(pk=document.pk).update(status="failed")
        self.assertEqual(usage_of(self.user).size, 100 + 300 + 400)

    def test_deleting_makes_room(self):
        self.upload(("a.md", b"One."), ("b.md", b"Two."))
        documents.delete_document(Document.objects.first())
        self.assertEqual(self.refused(("c.md", b"Three.")), [])

    def test_a_file_that_could_not_be_read_counts_until_it_is_removed_and_the_page_says_so(self):
        self.upload(("a.pdf", b"%PDF-1.7 broken"), ("b.md", b"Two."))
        failed = Document.objects.get(name="a.pdf")
        documents.read_document(failed.pk)
        failed.refresh_from_db()
        self.assertEqual((failed.status, failed.version), ("failed", 0))
        self.assertEqual(usage_of(self.user).size, 15 + 4)  # the original is stored
        self.assertEqual(len(self.refused(("c.md", b"Three."))), 1)
        words = "1 of these documents could not be read."
        page = self.client.get(reverse("ingestion:documents"))
        self.assertContains(page, words)
        self.assertContains(page, 'href="?show=failed"')
        self.assertContains(self.client.get(reverse("ingestion:add")), words)
        self.client.post(reverse("ingestion:several"), {"failed": "", "act": "delete", "confirmed": "yes"})
        self.assertEqual(self.refused(("c.md", b"Three.")), [])
        self.assertNotContains(self.client.get(reverse("ingestion:documents")), words)

    def test_broken_files_cannot_exceed_the_quota(self):
        for number in range(3):
            self.upload((f"{number}.pdf", b"%PDF-1.7 broken"))
            for document in Document.objects.filter(status="waiting"):
                documents.read_document(document.pk)
        self.assertEqual(Document.objects.count(), 2)

    def test_staff_and_commands_have_no_quota(self):
        User.objects.update(is_staff=True)
        self.assertEqual(self.refused(("a.md", b"x" * 2_000), ("b.md", b"1"), ("c.md", b"2")), [])
        User.objects.update(is_staff=False)
        self.add(owner=self.user, read=False)

    def test_the_pages_show_the_used_quota(self):
        self.upload(("a.md", b"x" * 600))
        words = "1 of 2 documents, 600\N{NO-BREAK SPACE}bytes of 1000\N{NO-BREAK SPACE}bytes"
        self.assertContains(self.client.get(reverse("ingestion:documents")), words)
        self.assertContains(self.client.get(reverse("ingestion:add")), words)
        with override_settings(USER_MAX_DOCUMENTS=0, USER_MAX_BYTES=0):
            self.assertNotContains(self.client.get(reverse("ingestion:documents")), "You keep")


@override_settings(USER_MAX_DOCUMENTS=5)
class AtOnceTests(MediaMixin, TransactionTestCase):
    def test_concurrent_uploads_cannot_exceed_the_quota(self):
        forget_all_jobs()  # jobs of an earlier test
        self.addCleanup(forget_all_jobs)
        user = User.objects.create_user("ann")
        outcomes = []

        def add(number):
            try:
                documents.upsert(
                    ContentFile(b"Words."), f"{number}.md", owner=user, audience=Audience(), within_quota=True
                )
                outcomes.append("added")
            except documents.UploadRefused as refusal:
                outcomes.append(refusal.code)
            finally:
                connection.close()

        threads = [threading.Thread(target=add, args=[number]) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(outcomes), ["added"] * 5 + ["too_many_documents"] * 5)
        kept = [f"document-{document_id}" for document_id in Document.objects.values_list("pk", flat=True)]
        self.assertEqual(len(kept), 5)
        # The queue may also have periodic tasks of a worker in an earlier test.
        jobs = ProcrastinateJob.objects.filter(task_name=fair_queue.TASK).values_list("lock", flat=True)
        self.assertEqual(sorted(jobs), sorted(kept))
