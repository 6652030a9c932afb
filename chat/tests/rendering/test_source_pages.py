"""Passages with a table across a page break: each row is shown on its own page."""

import pytest
from django.test import SimpleTestCase, TestCase

from chat.portal.source_panel import panel_of
from chat.tests.conversations import answered
from history.models import Source
from ingestion.models import Passage
from ingestion.parsing.boxes import boxes_of
from ingestion.search import retrieval
from ingestion.search.passage_completion import complete_passages
from ingestion.tests.building import drawn
from ingestion.tests.factories import command_principal, make_user
from ingestion.tests.media import MediaMixin
from ingestion.tests.parsing.test_reading_pdf import table_page

FIRST = [("Service", "Person", "Times"), ("Cleaning", "Mina Orlow", "52"), ("Windows", "Jo Fenn", "12")]
NEXT = [("Pest control", "Mina Orlow", "12"), ("Lift inspection", "Ada Quill", "2")]


class RowTests(SimpleTestCase):
    def test_the_words_of_a_row_of_another_page_are_not_marked_in_other_rows(self):
        text = "Service Person Times\nCleaning Mina Orlow 52\nWindows Jo Fenn 12"
        page = {"text": text, "boxes": [[10 * at, 0, 10 * at + 9, 10] for at in range(len(text))]}
        row = "Service: Pest control; Person: Mina Orlow; Times: 12"
        for content in (row, f"Service: Cleaning; Person: Mina Orlow; Times: 52\n{row}"):
            start = content.index(row)
            self.assertEqual(boxes_of(page, content, [(start, len(content))]), [])
            name = content.index("Mina", start)
            self.assertEqual(boxes_of(page, content, [(name, name + len("Mina Orlow"))]), [])

    def test_the_rows_of_a_text_are_found_one_by_one(self):
        text = "Jo Fenn 8\nWindows Jo Fenn 12"
        page = {"text": text, "boxes": [[10 * at, 0, 10 * at + 9, 10] for at in range(len(text))]}
        content = "Service: Pests; Person: Mina\nService: Windows; Person: Jo Fenn; Times: 12"
        start = content.index("Jo Fenn")
        left = 10 * text.rindex("Jo Fenn")
        self.assertEqual(boxes_of(page, content, [(start, start + 7)]), [(left, 0, left + 69, 10)])


@pytest.mark.slow
class SourcePageTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.user = make_user("asker")
        self.client.force_login(self.user)

    def cited(self, document):
        """The source of an answer that cites the first passage, completed with its whole table."""
        label = "facilities.pdf#page=1"
        text = f"The services [{label}]."
        self.conversation, answer = answered(self.user, document, text=text, citations=[label])
        reader = command_principal(self.user)
        first = Passage.objects.get(document=document, position=0)
        (whole,) = complete_passages(reader, retrieval.load(reader, [first.pk]))
        source = answer.sources.get()
        source.label, source.page, source.content = label, 1, whole.content
        source.passage_id, source.document_version = first.pk, document.version
        source.save()
        return source

    def panel(self, source, words, page=""):
        start = source.content.index(words)
        Source.objects.filter(pk=source.pk).update(quotes=[[start, start + len(words)]])
        return panel_of(command_principal(self.user), self.conversation, "1.1", "page", page)

    def test_a_row_is_marked_only_on_its_own_page(self):
        source = self.cited(self.add("facilities.pdf", drawn(table_page(FIRST), table_page(NEXT))))
        row = "Service: Pest control; Person: Mina Orlow; Times: 12"
        self.assertIn(row, source.content)
        panel = self.panel(source, row)
        self.assertEqual((panel.page, len(panel.page_boxes.boxes)), (2, 3))
        self.assertIn("Page 2 of 2", panel.where)
        self.assertIsNone(self.panel(source, row, page="1").page_boxes)
        panel = self.panel(source, "Person: Mina Orlow; Times: 52")
        self.assertEqual((panel.page, len(panel.page_boxes.boxes)), (1, 2))
        self.assertIsNone(self.panel(source, "Times: 52", page="2").page_boxes)
        panel = self.panel(source, source.content)
        self.assertEqual(panel.page, 1)
        self.assertEqual(len(panel.page_boxes.boxes), 6)
        self.assertEqual(len(self.panel(source, source.content, page="2").page_boxes.boxes), 6)

    def test_the_list_of_sources_names_the_pages(self):
        self.cited(self.add("facilities.pdf", drawn(table_page(FIRST), table_page(NEXT))))
        url = f"/c/{self.conversation.pk}/"
        self.assertContains(self.client.get(url), "<bdi>Pages 1–2")

    def test_a_source_on_one_page_or_of_another_version_follows_its_label(self):
        source = self.cited(self.add("facilities.pdf", drawn(table_page(FIRST))))
        url = f"/c/{self.conversation.pk}/"
        self.assertContains(self.client.get(url), "<bdi>Page 1<", html=False)
        self.assertEqual(self.panel(source, "Jo Fenn").page, 1)
        Source.objects.filter(pk=source.pk).update(document_version=source.document_version + 1)
        self.assertEqual(self.panel(source, "Jo Fenn").page, 1)
