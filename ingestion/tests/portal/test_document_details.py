"""Title, labels, source and last day of a document: in search, when it is read, and on its page."""

from datetime import timedelta
from unittest import mock

import pytest
from django.core.files.base import ContentFile
from django.test import TestCase
from django.utils import timezone

from ingestion import documents
from ingestion.access.lists import Audience
from ingestion.models import Document
from ingestion.search import retrieval
from ingestion.search.ranking import plans
from ingestion.tests.factories import command_principal, make_document, make_user
from ingestion.tests.media import MediaMixin
from ingestion.tests.search.test_sql_files import PLANS


def day(days):
    return timezone.localdate() + timedelta(days=days)


class ValidityTests(TestCase):
    def setUp(self):
        self.user = make_user("ada")
        self.document = make_document(
            "guide.md", owner=self.user, everyone=True, source_url="https://wiki.example/guide"
        )
        self.principal = command_principal(self.user)

    def end(self, days):
        Document.objects.filter(pk=self.document.pk).update(valid_until=day(days))

    def found(self, **options):
        return retrieval.search(self.principal, "carry over leave", **options).passages

    def test_search_finds_a_document_until_its_last_day_in_each_plan_and_mode(self):
        for days, number in ((0, 1), (-1, 0)):
            self.end(days)
            for plan, most in PLANS.items():
                for mode in ("hybrid", "text", "vectors"):
                    with self.subTest(days=days, plan=plan, mode=mode), mock.patch.multiple(plans, **most):
                        self.assertEqual(len(self.found(mode=mode)), number)
            scope = f"document:{self.document.public_id}"
            self.assertEqual(len(self.found(scope=scope)), number)
            self.assertEqual(retrieval.count_readable(self.principal), number)
            self.assertEqual(Document.objects.searchable().count(), number)

    def test_search_results_name_their_source(self):
        self.assertEqual(self.found()[0].source_url, "https://wiki.example/guide")

    @pytest.mark.slow
    def test_the_owner_is_reminded_and_then_sees_that_the_document_is_no_longer_valid(self):
        self.client.force_login(self.user)
        path = f"/documents/{self.document.public_id}/"
        self.end(31)
        self.assertNotContains(self.client.get(path), "After that, search no longer finds it")
        self.assertNotContains(self.client.get("/documents/"), "No longer valid, or soon")
        self.end(30)
        self.assertContains(self.client.get(path), "After that, search no longer finds it")
        self.assertContains(self.client.get("/documents/"), "No longer valid, or soon <span>1</span>")
        self.end(-1)
        self.assertContains(self.client.get(path), "search no longer finds it, and answers do not cite it")
        self.assertContains(self.client.get("/documents/?show=ending"), "Expired")
        self.client.force_login(make_user("eve"))
        self.assertNotContains(self.client.get("/documents/"), "No longer valid, or soon")
        self.assertNotContains(self.client.get("/documents/?show=ending"), "guide.md")


@pytest.mark.slow
class DetailsPageTests(TestCase):
    def setUp(self):
        self.user = make_user("ada")
        self.document = make_document("guide.md", owner=self.user, everyone=True)
        self.path = f"/documents/{self.document.public_id}/"

    def save(self, **values):
        self.client.force_login(self.user)
        form = {"title": "", "labels": "", "source_url": "", "valid_until": ""}
        return self.client.post(f"{self.path}details/", form | values)

    def test_editors_change_the_details_and_readers_see_them(self):
        source = "https://wiki.example/guide?a=1&b=2"
        values = {"labels": "hr, <b>sea</b>", "source_url": source, "valid_until": "2126-01-31"}
        self.assertRedirects(self.save(**values), self.path)
        document = Document.objects.get(pk=self.document.pk)
        self.assertEqual((document.labels, document.status), (["hr", "<b>sea</b>"], "ready"))
        page = self.client.get(self.path)
        self.assertContains(page, 'value="2126-01-31"')
        self.client.force_login(make_user("eve"))
        page = self.client.get(self.path)
        self.assertContains(page, 'href="https://wiki.example/guide?a=1&amp;b=2"')
        self.assertContains(page, "<bdi>&lt;b&gt;sea&lt;/b&gt;</bdi>")
        self.assertContains(page, "31 Jan 2126")
        self.assertNotContains(page, "Save details")

    def test_invalid_details_are_refused_with_a_message_and_change_nothing(self):
        for values in (
            {"source_url": "javascript:alert(1)"},
            {"source_url": "https://"},
            {"valid_until": "soon"},
            {"labels": ",".join(map(str, range(21)))},
            {"labels": "x" * 51},
            {"title": "x" * 501},
        ):
            with self.subTest(values):
                answer = self.save(**values)
                self.assertContains(answer, 'role="alert"', status_code=422)
        document = Document.objects.get(pk=self.document.pk)
        self.assertEqual((document.source_url, document.labels, document.valid_until), ("", [], None))


class TitleTests(MediaMixin, TestCase):
    def test_a_custom_title_replaces_that_of_the_file_until_it_is_removed(self):
        user = make_user("ada")
        put = documents.upsert(
            ContentFile(b"# Leave\n\nFive days of it."),
            "leave.md",
            owner=user,
            audience=Audience(),
            details={"title": "Days off"},
        )
        row = Document.objects.filter(pk=put.document.pk)
        titles = []
        for title in (None, "", "Holidays"):
            if title is not None:
                documents.change_details(row.get(), {"title": title})
            documents.read_document(put.document.pk)
            titles.append(row.get().title)
        self.assertEqual(titles, ["Days off", "Leave", "Holidays"])
        self.assertEqual(
            [each["version"] for each in row.get().versions], [1, 2, 3], "each reading is a version"
        )
        found = retrieval.search(command_principal(user), "holidays")
        self.assertEqual([passage.title for passage in found.passages], ["Holidays"])

    def test_a_title_set_while_the_file_is_being_read_is_kept(self):
        user = make_user("ada")
        put = documents.upsert(ContentFile(b"Five days."), "leave.md", owner=user, audience=Audience())

        def meanwhile(*_):
            documents.change_details(put.document, {"title": "Days off"})
            return []

        with mock.patch("ingestion.indexing.reading._questions", meanwhile):
            documents.read_document(put.document.pk)
        self.assertEqual(Document.objects.get(pk=put.document.pk).status, "waiting")
        documents.read_document(put.document.pk)
        document = Document.objects.get(pk=put.document.pk)
        self.assertEqual((document.status, document.title), ("ready", "Days off"))
