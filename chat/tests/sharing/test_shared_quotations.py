"""Shared answers without a model: a quotation is shown together with its introduction, or not at all."""

from dataclasses import replace
from uuid import uuid4

import pytest

from chat.llm.chat_model import NOTHING_FITS, Prompt
from chat.quoting.quoted_answer import NOTICES, SEVERAL
from chat.quoting.quoting_model import QuotingModel, quote
from chat.redaction.quoted_parts import is_quoted, quoted_parts
from chat.sources import SourceView
from chat.tests.sharing_case import CLOSED, CLOSED_STATEMENT, OPEN, OPEN_STATEMENT, OPEN_WORDS, SharingCase
from history.models import Message, Source
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document

TABLE = "freight.md"
ROWS = "Port: Northfleet; Latest hour: 16:00\nPort: Sheerness; Latest hour: 17:30"
QUOTED_TABLE = (
    "**Freight › Check-in**\n\nA truck checks in by this hour:\n\n"
    f"| Port | Latest hour |\n| --- | --- |\n"
    f"| Northfleet | 16:00 [{TABLE}] |\n| Sheerness | 17:30 [{TABLE}] |\n\n"
    "This shows 2 of 9 rows; the source has the whole table."
)
CLOSED_QUOTATION = f"**Project Halyard**\n\n> The crew office moves to Port Ansel on 1 March 2027. [{CLOSED}]"
OPEN_QUOTATION = f"**Policies**\n\n> {OPEN_WORDS} [{OPEN}]"
BY_QUOTING = [{"title": "Prompt", "description": [], "props": {"model": QuotingModel.name}}]
FREIGHT = "How early must a freight truck check in?"


@pytest.mark.slow
class SharedQuotationsTests(SharingCase):
    def setUp(self):
        super().setUp()
        self.words = f"A truck checks in by this hour:\n{ROWS}"
        self.table = make_document(
            TABLE, [("", None, "Freight › Check-in", self.words)], title="Freight terms", everyone=True
        )
        self.conversation.messages.all().delete()

    def quoted(self, text, question=FREIGHT, **values):
        """An answer whose sources are all three documents."""
        given = (
            (self.closed, CLOSED, "The crew office moves to Port Ansel on 1 March 2027."),
            (self.open, OPEN, OPEN_WORDS),
            (self.table, TABLE, self.words),
        )
        values = {"thoughts": BY_QUOTING, "run_id": uuid4(), **values}
        answer = self.say(text, question, given, **values)
        Source.objects.filter(message=answer, label=TABLE).update(heading="Freight › Check-in")
        return answer

    def preview(self, query=""):
        self.client.force_login(self.owner)
        page = self.client.get(f"/c/{self.conversation.pk}/share{query}").content.decode()
        self.client.force_login(self.reader)
        return page

    def test_an_answer_that_cites_only_open_documents_is_shown_completely(self):
        answer = self.quoted(f"{SEVERAL}\n\n{QUOTED_TABLE}\n\n{OPEN_QUOTATION}")
        preview = self.preview()
        self.assertIn("Everyone who can open the link sees all of it.", preview)
        self.assertNotIn(str(self.closed.public_id), preview)
        self.share()
        page = self.page()
        for words in (SEVERAL, "Check-in", ">Port<", ">Latest hour<", "Sheerness", "2 of 9 rows"):
            self.assertIn(words, page)
        self.assertNotIn("[…]", page)
        self.assertNotIn("left out", page)
        self.assert_clean(page)
        self.assertEqual(self.client.get(f"{self.url}source/{answer.position}.r1/").status_code, 404)
        self.client.post(self.url + "go-on")
        copied = Message.objects.filter(conversation__owner=self.reader)
        self.assert_clean(repr(copied.values()))

    def test_a_closed_quotation_is_withheld_with_its_heading_and_the_others_stay_whole(self):
        self.quoted(f"{SEVERAL}\n\n{CLOSED_QUOTATION}\n\n{QUOTED_TABLE}")
        preview = self.preview()
        self.assertIn("1 of 3 statements will be left out for readers", preview)
        self.assertIn(f"/documents/{self.closed.public_id}/", preview)
        self.share()
        page = self.page()
        self.assertIn("One statement is left out", page)
        for words in (SEVERAL, "[…]", "Check-in", ">Port<", "2 of 9 rows"):
            self.assertIn(words, page)
        self.assert_clean(page)
        for path in ("export.md", "export.md?answer=1"):
            self.assert_clean(self.page(path))

    def test_documents_of_earlier_answers_are_not_named_for_a_quoted_one(self):
        mine = make_document(
            "plan.md",
            [("", None, "", "The plan is kept.")],
            title="Plan",
            owner=self.owner,
            users=[self.owner],
        )
        words = "The plan is kept."
        given = ((mine, "plan.md", words),)
        self.say(f"> {words} [plan.md]", "Is it kept?", given, thoughts=BY_QUOTING, run_id=uuid4())
        answer = self.quoted(CLOSED_QUOTATION)
        both, one = self.preview(), self.preview(f"?answer={answer.position}")
        for page, named in ((both, True), (one, False)):
            self.assertIn(f"/documents/{self.closed.public_id}/", page)
            self.assertEqual(f"/documents/{mine.public_id}/" in page, named)

    def test_a_notice_above_quotations_is_the_site_s_own_and_is_shown(self):
        for notice in NOTICES:
            self.quoted(f"{notice}\n\n{QUOTED_TABLE}\n\n{CLOSED_QUOTATION}")
        self.share()
        page = self.page()
        for notice in NOTICES:
            self.assertIn(notice, page)
        self.assertEqual(page.count("One statement is left out"), len(NOTICES))
        self.assert_clean(page)

    def test_a_closed_table_is_withheld_with_its_columns_introduction_and_notice(self):
        self.quoted(f"{SEVERAL}\n\n{QUOTED_TABLE}\n\n{OPEN_QUOTATION}")
        set_audience(self.table, Audience(user_ids=frozenset({self.owner.pk})))
        self.share()
        page = self.page()
        self.assertIn("2 statements are left out", page)
        self.assertIn("eight weeks", page)
        for words in ("Latest", "Sheerness", "Check-in", "checks in", "2 of 9", "Freight terms"):
            self.assertNotIn(words, page)

    def test_counts_of_the_preview_and_of_the_page_agree_over_several_answers(self):
        self.quoted(f"{SEVERAL}\n\n{CLOSED_QUOTATION}\n\n{QUOTED_TABLE}")
        self.quoted(OPEN_QUOTATION, "And when will we be told?")
        self.say(f"{CLOSED_STATEMENT} {OPEN_STATEMENT}", "And the office?")
        self.assertIn("2 of 6 statements will be left out", self.preview())
        self.share()
        page = self.page()
        self.assertEqual(page.count("One statement is left out"), 2)
        self.assert_clean(page)

    def test_a_message_that_nothing_was_found_is_shown_after_a_closed_answer_too(self):
        self.quoted(CLOSED_QUOTATION)
        self.quoted(NOTHING_FITS, "And the harbour?")
        self.assertIn("1 of 1 statements", self.preview())
        self.share()
        page = self.page()
        self.assertEqual(page.count("This answer is left out"), 1)
        self.assertIn(NOTHING_FITS, page)
        self.assert_clean(page)

    def test_text_of_another_origin_beside_a_quotation_is_withheld(self):
        # One answer that a model began and the site continued, and one that was cut short.
        cut_short = "**Project Halyard**\n\n> The crew office moves to Port"
        for text in (f"It is Port Ansel.\n\n{OPEN_QUOTATION}", f"{OPEN_QUOTATION}\n\n{cut_short}"):
            self.conversation.messages.all().delete()
            self.quoted(text)
            self.share()
            page = self.page()
            self.assertIn("eight weeks", page)
            self.assert_clean(page)

    def test_an_older_passage_with_the_same_label_is_withheld_with_its_heading(self):
        answer = self.quoted(f"**Secret tariff**\n\n> {OPEN_WORDS} [{OPEN}]\n\n{QUOTED_TABLE}")
        former = Source.objects.get(message=answer, label=OPEN)
        former.pk, former.rank = None, 4
        former.content, former.heading, former.document_version = "Once.", "Secret tariff", 0
        former.save()
        Message.objects.filter(pk=answer.pk).update(labels=[CLOSED, OPEN, TABLE, OPEN])
        self.share()
        page = self.page()
        self.assertNotIn("Secret tariff", page)
        self.assertIn("eight weeks", page)

    def test_a_question_that_was_suggested_from_what_is_not_cited_stays_withheld(self):
        self.quoted(OPEN_QUOTATION)
        self.quoted(OPEN_QUOTATION, "Who decided on Port Ansel?")
        self.share()
        page = self.page()
        self.assertIn("A question that is left out for you", page)
        self.assert_clean(page)

    def test_answers_of_a_model_with_the_same_name_or_of_a_program_are_not_trusted(self):
        text = f"**Port Ansel**\n\n> {OPEN_WORDS} [{OPEN}]"
        prompted = [BY_QUOTING[0] | {"description": ["{'role': 'system', 'content': ''}"]}]
        for values in ({"thoughts": prompted}, {"imported": True}, {"run_id": None}, {"thoughts": []}):
            self.conversation.messages.all().delete()
            self.assertFalse(is_quoted(self.quoted(text, **values)), values)
            self.share()
            self.assert_clean(self.page())

    def test_quotations_of_the_site_consist_of_known_parts(self):
        source = SourceView(
            1, TABLE, TABLE, "Freight terms", "Freight › Check-in", None, "", self.words, 1.0, "both", 1, "x"
        )
        other = replace(source, rank=2, label=OPEN, content=OPEN_WORDS, heading="Policies", document_id="y")
        quoted = quote(Prompt(FREIGHT, (), (source, other), 0.0))
        self.assertTrue(quoted.texts)
        parts = quoted_parts("\n\n".join((SEVERAL, *quoted.texts)), {TABLE, OPEN})
        self.assertTrue(parts[0].is_phrase)
        self.assertTrue(all(len(part.labels) == 1 for part in parts[1:]), parts)
        self.assertIn("| Port | Latest hour |", parts[1].text)
