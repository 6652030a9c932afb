"""The panel of a source: its passages, its views, and what it shows after the source has changed."""

import re
from unittest.mock import patch

import pytest

from chat.llm.chat_model import NOTHING_FITS
from chat.portal.source_panel import panel_of
from chat.tests.conversations import LABEL, WORDS, answered
from chat.tests.portal_case import PortalCase, compact_text_of, text_of
from history.models import Message
from ingestion.access.lists import (
    Audience,
    access_list_for,
    set_audience,
)
from ingestion.models import Document, FormerVersion
from ingestion.tests.factories import command_principal, make_document, make_user


class PanelTests(PortalCase):
    def test_the_passage_has_the_cited_words_marked_and_a_reason_for_access(self):
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn("Employees</mark> may carry over", page)
        self.assertIn("Everyone who signs in may read it.", page)
        self.assertNotIn("<html", page)

    def test_the_deep_link_opens_the_whole_page(self):
        page = text_of(self.client.get(f"{self.url}?source=1.1&view=support"))
        self.assertIn('<html lang="en"', page)
        self.assertIn("match 90 of 100", page)

    def test_each_view_of_a_source_exists(self):
        for view in ("passage", "page", "thoughts", "support", "nonsense", ""):
            self.assertEqual(self.client.get(f"{self.url}source/1.1/?view={view}").status_code, 200)
        self.assertEqual(self.client.get(f"{self.url}source/1.r1/").status_code, 200)

    def test_only_a_document_with_pages_has_the_view_of_the_page(self):
        views = re.compile(r'id="tab-(\w+)"')
        self.answer.sources.update(page=4)
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertEqual(views.findall(page), ["passage", "page", "thoughts", "support"])
        self.answer.sources.update(page=None)
        for view in ("passage", "page"):
            page = text_of(self.client.get(f"{self.url}source/1.1/?view={view}"))
            self.assertEqual(views.findall(page), ["passage", "thoughts", "support"])
            self.assertIn('data-view="passage" aria-current="true"', page)

    def test_a_closed_source_has_no_views_of_its_own(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        for view in ("passage", "page"):
            page = text_of(self.client.get(f"{self.url}source/1.1/?view={view}"))
            self.assertIn('aria-labelledby="source-title"', page)
            self.assertNotIn("tab-", page)
        page = text_of(self.client.get(f"{self.url}source/1.1/?view=support"))  # what the steps lead to
        self.assertEqual(re.findall(r'id="tab-(\w+)"', page), ["thoughts", "support"])

    def test_of_the_passages_of_a_page_those_with_the_quoted_words_are_cited(self):
        cited = self.answer.sources.get()
        for rank, quotes in ((2, []), (3, [[0, 5]])):
            cited.pk, cited.rank, cited.quotes = None, rank, quotes
            cited._state.adding = True
            cited.content = f"Other words {rank}."
            cited.save()
        Message.objects.filter(pk=self.answer.pk).update(labels=3 * self.answer.labels)
        page = compact_text_of(self.client.get(f"{self.url}source/1.1/?view=support"))
        self.assertIn("2 are cited.", page)
        self.assertEqual(page.count("</svg> Cited"), 2)
        self.assertEqual(page.count("Same place as a cited one"), 1)
        self.assertIn('data-source="1.1"', page)
        for rank in (2, 3):
            self.assertIn(f'data-source="1.r{rank}"', page)

    def test_without_an_answer_the_owners_of_the_closest_documents_are_named(self):
        owner = make_user("keeper", first_name="Kim", last_name="Keeper")
        closed = make_document("closed.md", title="Closed plan", owner=make_user("withheld"))
        Document.objects.filter(pk=self.document.pk).update(owner=owner)
        source = self.answer.sources.get()
        source.pk, source.rank, source.document = None, 2, closed
        source._state.adding = True
        source.save()
        Message.objects.filter(pk=self.answer.pk).update(
            content=NOTHING_FITS, citations=[], labels=[LABEL, "closed.md"]
        )
        page = compact_text_of(self.client.get(self.url))
        self.assertIn(f'href="/documents/{self.document.public_id}/"><bdi>Leave guide</bdi></a>', page)
        self.assertIn("owner: <bdi>Kim Keeper</bdi>", page)
        for word in ("Closed plan", "withheld"):
            self.assertNotIn(word, page)
        self.assertIn("owner: <bdi>Kim Keeper</bdi>", compact_text_of(self.client.get("/documents/")))

    def test_a_table_joined_from_several_passages_is_shown_once(self):
        rows = [f"Years: {number}; Weeks: {10 * number}" for number in range(1, 5)]
        document = make_document("pay.md", [("pay", None, "", row) for row in rows], everyone=True)
        conversation, answer = answered(self.user, document)
        passages = list(document.passages.all())
        answer.sources.update(passage_id=passages[1].pk, content="\n".join(rows[1:3]), quotes=[[7, 8]])
        url = f"/c/{conversation.pk}/source/1.1/"
        page = compact_text_of(self.client.get(f"{url}?view=page"))
        self.assertEqual([page.count(f"<td>{10 * number}</td>") for number in range(1, 5)], [1, 1, 1, 1])
        panel = panel_of(command_principal(self.user), conversation, "1.1", "passage")
        self.assertEqual((panel.surroundings.before, panel.surroundings.after), ([], []))
        (table,) = panel.parts
        self.assertEqual([row[0][0].text for row in table.rows], ["1", "2", "3", "4"])
        self.assertEqual([is_marked for is_marked, _ in table.named_rows], [False, True, False, False])
        with patch("chat.portal.citing.surroundings.MAX_TABLE", 70):
            panel = panel_of(command_principal(self.user), conversation, "1.1", "passage")
            self.assertEqual(
                [part.rows[0][0][0].text for part in (*panel.surroundings.before, *panel.surroundings.after)],
                ["1", "4"],
            )

    def test_a_withdrawn_source_shows_neither_title_nor_text(self):
        set_audience(self.document, Audience(user_ids=frozenset({self.other.pk})))
        for path in (self.url, f"{self.url}?source=1.1", f"{self.url}?source=1.1&view=support",
                     f"{self.url}?source=1.1&view=page", f"{self.url}export.md"):  # fmt: skip
            page = text_of(self.client.get(path))
            self.assertNotIn("Leave guide", page)
            self.assertNotIn(WORDS, page)
            self.assertNotIn(LABEL, page)
        self.assertEqual(self.client.get(f"{self.url}source/1.r1/").status_code, 404)

    def test_a_step_names_the_documents_that_were_searched_as_the_reader_may_see_them(self):
        for scope, words in (
            (f"document:{self.document.public_id}", "searched in: “Leave guide”"),
            ("folder:Secret", "searched in: a folder with nothing that you can read"),
        ):
            thoughts = [
                {"title": "Generated search query", "description": "Leave", "props": {"scope": scope}}
            ]
            Message.objects.filter(pk=self.answer.pk).update(thoughts=thoughts)
            page = text_of(self.client.get(f"{self.url}?source=1.1&view=thoughts"))
            self.assertIn(words, page)
            self.assertNotIn(scope, page)

    def test_a_deleted_document_shows_neither_title_nor_text(self):
        thoughts = [{"title": "Prompt", "description": [f"Five days [{LABEL}]."], "props": None}]
        Message.objects.filter(pk=self.answer.pk).update(thoughts=thoughts)
        self.assertIn(LABEL, text_of(self.client.get(f"{self.url}?source=1.1&view=thoughts")))
        self.document.delete()
        self.assertNotIn(LABEL, text_of(self.client.get(f"{self.url}?source=1.1&view=thoughts")))
        page = text_of(self.client.get(f"{self.url}?source=1.1"))
        self.assertIn("cite gone", page)
        self.assertIn("The text above was written when you could still open it.", page)
        self.assertNotIn("Leave guide", page)

    def test_an_older_version_is_indicated(self):
        type(self.document).objects.filter(pk=self.document.pk).update(version=2)
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn("There is a newer one.", page)
        self.assertNotIn("/changes/", page)

    def test_an_older_version_with_its_text_links_to_the_changes(self):
        FormerVersion.objects.create(
            document=self.document,
            access_list=self.document.access_list,
            since=1,
            version=1,
            content="Five days.",
            size=10,
        )
        type(self.document).objects.filter(pk=self.document.pk).update(version=2)
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn(f"/documents/{self.document.public_id}/changes/?from=1", page)
        FormerVersion.objects.update(access_list=access_list_for(Audience(), None))
        page = text_of(self.client.get(f"{self.url}source/1.1/"))
        self.assertIn("There is a newer one.", page)
        self.assertNotIn("/changes/", page)

    @pytest.mark.slow
    def test_unknown_sections_are_not_found(self):
        for place in ("1.2", "0.1", "9.1", "1.0", "x", "1.r9", "1", "99999999999.1", "1.99999999999"):
            self.assertEqual(self.client.get(f"{self.url}source/{place}/").status_code, 404, place)
            self.assertEqual(self.client.get(f"{self.url}?source={place}").status_code, 404, place)
