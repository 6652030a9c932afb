"""Documents in the admin: sorted by their use in answers, and those that could be deleted."""

from datetime import timedelta

import pytest
from django.test import TestCase
from django.utils import timezone
from django.utils.formats import date_format

from chat.overview.counting import PLACE
from chat.overview.models import CountedUntil, DocumentUse
from chatsite.accounts.models import User
from ingestion.models import Document
from ingestion.tests.factories import make_document

LIST = "/admin/ingestion/document/"


@pytest.mark.slow
class DocumentsAdminTests(TestCase):
    def setUp(self):
        self.client.force_login(User.objects.create_superuser("root"))
        self.today = timezone.localdate()
        self.used, self.old, self.never = (make_document(f"{name}.md") for name in ("used", "old", "never"))
        Document.objects.update(created_at=timezone.now() - timedelta(days=200))
        for document, days, cited in (
            (self.used, 3, 2),
            (self.used, 50, 1),
            (self.old, 120, 1),
            (self.never, 1, 0),
        ):
            DocumentUse.objects.create(
                document=document, day=self.today - timedelta(days=days), found=2, cited=cited
            )

    def listed(self, query=""):
        return [document.name for document in self.client.get(f"{LIST}?{query}").context["cl"].result_list]

    def test_the_list_says_when_each_was_last_cited_and_sorts_by_it(self):
        page = self.client.get(LIST)
        self.assertContains(page, "never")
        columns = page.context["cl"].list_display
        place = columns.index("last_cited")
        self.assertEqual(self.listed(f"o={place}")[:2], ["old.md", "used.md"])
        self.assertEqual(self.listed(f"o=-{place}")[-2:], ["used.md", "old.md"])
        latest = {each.name: each.last_use for each in page.context["cl"].result_list}
        self.assertEqual(latest["used.md"], self.today - timedelta(days=3))

    def test_the_list_says_up_to_what_time_answers_are_counted(self):
        self.assertContains(self.client.get(LIST), "Citations are not counted yet")
        counted = timezone.now()
        CountedUntil.objects.create(pk=PLACE, finished_at=counted, counted_at=counted)
        moment = date_format(timezone.localtime(counted), "j M Y, H:i")
        self.assertContains(self.client.get(LIST), f"counts answers as of {moment};", count=1)

    def test_documents_that_no_answer_cites_are_found(self):
        self.assertEqual(self.listed("use=never"), ["never.md"])
        self.assertCountEqual(self.listed("use=lately"), ["old.md", "never.md"])
        Document.objects.filter(pk=self.never.pk).update(created_at=timezone.now())
        self.assertEqual(self.listed("use=lately"), ["old.md"])

    def test_copies_and_last_days_are_found(self):
        Document.objects.filter(pk__in=[self.used.pk, self.old.pk]).update(sha256="a" * 64)
        Document.objects.filter(pk=self.never.pk).update(sha256="b" * 64)
        self.assertCountEqual(self.listed("stale=copy"), ["used.md", "old.md"])
        Document.objects.filter(pk=self.used.pk).update(valid_until=self.today - timedelta(days=1))
        Document.objects.filter(pk=self.old.pk).update(valid_until=self.today + timedelta(days=30))
        self.assertEqual(self.listed("stale=past"), ["used.md"])
        self.assertEqual(self.listed("stale=soon"), ["old.md"])
