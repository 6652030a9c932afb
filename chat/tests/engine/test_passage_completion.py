"""Tables in quoted answers are complete, or say how many rows are left out."""

import json

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import AsyncClient, SimpleTestCase, TestCase, TransactionTestCase, override_settings

from chat.engine.searching import search_for
from chat.llm.chat_model import Prompt, SearchQuery
from chat.portal.rendering.markdown import Citations, render
from chat.quoting.quoting_model import quote
from chat.quoting.table_rows.table_notices import ROWS_SHOWN, notice
from chat.tests.sources import source
from chatsite.accounts.models import ApiKey
from chatsite.db.threads import in_database
from chatsite.demo import SAMPLES
from history.models import Message
from ingestion.access.lists import Audience, set_audience
from ingestion.models import Passage
from ingestion.search import retrieval
from ingestion.search.passage_completion import UNKNOWN, complete_passages, without_repeated
from ingestion.tests.documents import principal_of
from ingestion.tests.factories import command_principal, make_document, make_user
from ingestion.tests.media import MediaMixin

ROUND = ("Anyone may take part.", "Members give £7.50 each month.", "Priya cleans the machine on Fridays.")
BANDS = [f"Grade: G{number}; Salary: £{number}1,000" for number in range(1, 15)]


def answer_from(question, rows, table_rows=0):
    page = source(1, "bands.md", "\n".join(rows))
    return "\n\n".join(
        quote(Prompt(question, [], [page], 0.0, table_rows={page.passage_id: table_rows})).texts
    )


class QuotedTableTests(SimpleTestCase):
    def test_a_short_table_is_quoted_whole(self):
        answer = answer_from("What is the salary of grade G4?", BANDS[:6])
        self.assertEqual(answer.count("[bands.md]"), 6)
        self.assertNotIn("This shows", answer)

    def test_the_matching_row_of_a_long_table_is_quoted_with_the_number_of_rows(self):
        answer = answer_from("What is the salary of grade G14?", BANDS)
        self.assertIn("| G14 | £141,000 [bands.md] |", answer)
        shown = answer.count("[bands.md]")
        self.assertLess(shown, 14)
        self.assertTrue(answer.endswith(f"This shows {shown} of 14 rows; the source has the whole table."))

    def test_a_part_of_a_table_is_not_quoted_as_the_whole(self):
        for total, words in ((40, "of 40 rows"), (UNKNOWN, "of the rows")):
            answer = answer_from("What is the salary of grade G4?", BANDS[:5], total)
            self.assertIn("| G4 | £41,000 [bands.md] |", answer)
            self.assertIn(words, answer)

    @override_settings(LANGUAGE_CODE="de")
    def test_omissions_are_stated_in_the_readers_language(self):
        self.assertIn("2 von 14 Zeilen", render(notice(2, 14), Citations()))
        self.assertIn('class="rows-shown"', render(notice(2, 0), Citations()))
        self.assertTrue(ROWS_SHOWN.fullmatch(notice(2, 0)))


@override_settings(JOURNAL_FLUSH_SECONDS=0.02, QUOTING_WORDS_PER_SECOND=0)
class WholeTableTests(MediaMixin, TransactionTestCase):
    def setUp(self):
        super().setUp()
        cache.clear()
        self.user = make_user("asker")
        self.key, self.secret = ApiKey.objects.issue(self.user, "test")

    def ingest(self, name):
        call_command("ingest", str(SAMPLES / "everyone" / name), everyone=True, verbosity=0)

    async def ask(self, question):
        body = {"messages": [{"role": "user", "content": question}]}
        headers = {"Authorization": f"Bearer {self.secret}"}
        answer = await AsyncClient().post("/chat", json.dumps(body), "application/json", headers=headers)
        return answer.json()["message"]["content"]

    @pytest.mark.slow
    async def test_rows_in_the_next_passage_are_quoted_too_and_found_in_the_source(self):
        await in_database(self.ingest, "employee-handbook.pdf")
        for question, rows in (
            ("How long is company sick pay paid?", ("Under 1 year", "3 to 5 years", "More than 5 years")),
            ("How many days of annual leave do I get?", ("4 days", "3 days", "2 days")),
            ("When does an absence trigger a review?", ("3 separate absences", "28 days without a break")),
        ):
            answer = await self.ask(question)
            for row in rows:
                self.assertIn(f"| {row} |", answer, question)
            message = await Message.objects.filter(role="assistant").order_by("-created_at").afirst()
            verdicts = {each["verdict"] for each in message.verification}
            self.assertLessEqual(verdicts, {"quoted", "supported"}, question)

    async def test_the_note_on_a_partly_quoted_table_is_not_verified_as_a_statement(self):
        await in_database(self.ingest, "fleet-and-timetable-2026.xlsx")
        answer = await self.ask("When does sailing W04 from Carrow Quay depart in winter?")
        self.assertRegex(answer, r"This shows \d+ of 22 rows; the source has the whole table\.")
        message = await Message.objects.filter(role="assistant").order_by("-created_at").afirst()
        self.assertLessEqual({each["verdict"] for each in message.verification}, {"quoted", "supported"})

    def test_neighbours_come_from_readable_documents_only(self):
        texts = [
            "How sick pay grows.\nYears: 1; Weeks: 4",
            "Years: 2; Weeks: 8\nAsk first.",
            "Years: 3; Weeks: 9",
        ]
        document = make_document("pay.md", texts, users=[self.user])
        reader, stranger = command_principal(self.user), command_principal(make_user("other"))
        first = Passage.objects.get(document=document, position=0)
        [passage] = retrieval.load(reader, [first.pk])
        [whole] = complete_passages(reader, [passage])
        self.assertEqual(whole.content, "\n".join(texts[:2]))
        self.assertEqual(complete_passages(stranger, [passage]), (passage,))

    def test_a_short_section_is_quoted_whole(self):
        texts = ["Telephone an hour before the shift.", "If ill on board, report to the", "Master."]
        document = make_document("sick.md", texts, users=[self.user])
        reader, stranger = command_principal(self.user), command_principal(make_user("other"))
        Passage.objects.filter(document=document).update(heading="Reporting sick")
        ids = list(
            Passage.objects.filter(document=document).order_by("-position").values_list("pk", flat=True)
        )
        passages = retrieval.load(reader, ids)
        [whole] = without_repeated(complete_passages(reader, passages))
        self.assertEqual(whole.content, f"{texts[0]}\n\n{texts[1]}\n{texts[2]}")
        self.assertEqual(complete_passages(stranger, passages), tuple(passages))

    def test_a_list_that_continues_in_the_next_passage_is_quoted_whole(self):
        texts = [
            "Each of these is enough:",
            "- A new paper",
            "- A new grant\n- New software\n\nAsk the head of the lab about anything else that you did.",
        ]
        document = make_document("grades.md", texts, users=[self.user])
        reader, stranger = command_principal(self.user), command_principal(make_user("other"))
        middle = Passage.objects.get(document=document, position=1)
        [passage] = retrieval.load(reader, [middle.pk])
        [whole] = complete_passages(reader, [passage])
        items = ["- A new paper", "- A new grant", "- New software"]
        self.assertEqual(whole.content.split("\n"), [texts[0], *items])
        self.assertEqual(complete_passages(stranger, [passage]), (passage,))

    def test_a_sentence_that_announces_a_list_gets_it_from_the_next_passage(self):
        reader = command_principal(self.user)
        for lead, has_list in (
            ("There are three ways of getting a desk.", True),
            ("Please do the following.", True),
            ("Desks are on three floors.", False),
        ):
            document = make_document(
                "desks.md", [lead, "- Book one online\n- Ask the porter"], users=[self.user]
            )
            first = Passage.objects.get(document=document, position=0)
            [whole] = complete_passages(reader, retrieval.load(reader, [first.pk]))
            self.assertEqual("Ask the porter" in whole.content, has_list, lead)

    def test_a_list_gets_its_lead_in_from_the_passage_before(self):
        texts = [
            "Some words.\n\nEach of these is enough:\n- A new paper",
            "- A new grant",
            "- " + "word " * 200,
        ]
        document = make_document("grades.md", texts, users=[self.user])
        reader = command_principal(self.user)
        second = Passage.objects.get(document=document, position=1)
        [whole] = complete_passages(reader, retrieval.load(reader, [second.pk]))
        self.assertEqual(whole.content, "Each of these is enough:\n- A new paper\n- A new grant")

    def test_a_sentence_across_a_page_break_is_quoted_whole(self):
        texts = [
            "The bakers begin at four. Anybody who cannot come to the bakery because of an illness",
            "rings the oven room before three. The shop opens at six, and whoever sells bread there",
            "comes at half past five. Aprons hang in the hall.",
        ]
        document = make_document("bakery.pdf", texts, users=[self.user])
        reader, stranger = command_principal(self.user), command_principal(make_user("other"))
        second = Passage.objects.get(document=document, position=1)
        [passage] = retrieval.load(reader, [second.pk])
        [whole] = complete_passages(reader, [passage])
        before = "Anybody who cannot come to the bakery because of an illness"
        self.assertEqual(whole.content, f"{before}\n{texts[1]}\ncomes at half past five.")
        self.assertEqual(complete_passages(stranger, [passage]), (passage,))

    def test_a_question_at_the_end_of_a_passage_gets_its_answer_from_the_next_one(self):
        texts = ["The oven is old.\n\nMay I open it?", "Only when it is cold. Ask the baker.\n\nIt is big."]
        document = make_document("oven.md", texts, users=[self.user])
        reader, stranger = command_principal(self.user), command_principal(make_user("other"))
        [passage] = retrieval.load(reader, [Passage.objects.get(document=document, position=0).pk])
        [whole] = complete_passages(reader, [passage])
        self.assertEqual(whole.content, f"{texts[0]}\nOnly when it is cold.")
        self.assertEqual(complete_passages(stranger, [passage]), (passage,))

    def test_a_passage_of_complete_sentences_stays_unchanged(self):
        texts = ["The bakers begin at four.", "The shop opens at six", "Aprons hang in the hall."]
        document = make_document("bakery.pdf", texts, users=[self.user])
        reader = command_principal(self.user)
        second = Passage.objects.get(document=document, position=1)
        [passage] = retrieval.load(reader, [second.pk])
        self.assertEqual(complete_passages(reader, [passage]), (passage,))

    def test_a_passage_contained_in_a_better_one_is_left_out(self):
        document = make_document("pay.md", ["Years: 1; Weeks: 4", "Years: 2; Weeks: 8"], users=[self.user])
        reader = command_principal(self.user)
        ids = list(
            Passage.objects.filter(document=document).order_by("-position").values_list("pk", flat=True)
        )
        found = without_repeated(complete_passages(reader, retrieval.load(reader, ids)))
        self.assertEqual([each.passage_id for each in found], ids[:1])

    def test_the_rows_of_an_overlong_table_are_counted(self):
        rows = [f"Row: {number}; Text: {'word ' * 60}" for number in range(30)]
        document = make_document("long.md", rows, users=[self.user])
        reader = command_principal(self.user)
        passages = {each.position: each.pk for each in Passage.objects.filter(document=document)}
        middle, first = complete_passages(reader, retrieval.load(reader, [passages[15], passages[0]]))
        self.assertEqual((middle.table_rows, middle.content), (30, rows[15]))
        self.assertEqual(first.table_rows, UNKNOWN)

    def page(self, number, *rows, heading="Pay"):
        return f"page={number}", number, heading, "\n".join(rows)

    def joined(self, *pages):
        """The first passage of a document with this table, completed with the whole table."""
        document = make_document("pay.pdf", pages, users=[self.user])
        reader = command_principal(self.user)
        first = Passage.objects.get(document=document, position=0)
        return complete_passages(reader, retrieval.load(reader, [first.pk]))[0]

    def test_a_table_that_continues_on_the_next_page_is_joined(self):
        whole = self.joined(self.page(1, "Years grow.", *BANDS[:2]), self.page(2, *BANDS[2:4], "In euros."))
        self.assertEqual(whole.content.splitlines(), ["Years grow.", *BANDS[:4], "In euros."])

    def test_another_table_on_the_next_page_is_not(self):
        other = self.page(2, "Grade: G1; Bonus: 5", "Grade: G2; Bonus: 6")
        whole = self.joined(self.page(1, *BANDS[:2]), other)
        self.assertEqual((whole.content.splitlines(), whole.table_rows), (BANDS[:2], 0))
        whole = self.joined(self.page(1, *BANDS[:2]), self.page(2, *BANDS[:2], heading="Former pay"))
        self.assertEqual((whole.content.splitlines(), whole.table_rows), (BANDS[:2], 0))

    def test_a_table_that_continues_after_a_page_number_has_more_rows(self):
        whole = self.joined(self.page(1, *BANDS[:2], "Page 1 of 2"), self.page(2, *BANDS[2:4]))
        self.assertEqual(whole.table_rows, UNKNOWN)
        whole = self.joined(self.page(1, *BANDS[:2], "Page 1 of 2"), self.page(2, "It is paid monthly."))
        self.assertEqual(whole.table_rows, 0)

    def test_a_table_of_some_twenty_rows_is_read_whole(self):
        rows = [f"Office: {number}; Work: {120 * 'x'}; Telephone: {number}" for number in range(21)]
        whole = self.joined(*(self.page(1 + at // 3, *rows[at : at + 3]) for at in range(0, 21, 3)))
        self.assertEqual((whole.content.splitlines(), whole.table_rows), (rows, 0))

    def test_the_pages_of_a_long_table_are_counted_together(self):
        pages = [
            self.page(number, *BANDS, *(f"Grade: H{number}{row}; Salary: {200 * 'x'}" for row in range(9)))
            for number in (1, 2)
        ]
        self.assertEqual(self.joined(*pages).table_rows, 2 * (len(BANDS) + 9))


class ShortDocumentTests(TestCase):
    """A chosen document of few passages is read whole."""

    def setUp(self):
        self.principal = principal_of(make_user("asker"))
        pages = [(f"page={number}", number, "", text) for number, text in enumerate(ROUND, 1)]
        self.chosen = make_document("round.md", pages, everyone=True)

    def found(self, top=5, **options):
        query = SearchQuery("Who cleans the machine?")
        options.setdefault("scope", f"document:{self.chosen.public_id}")
        return search_for(self.principal, query, top=top, **options).passages

    def test_all_passages_are_read_with_the_found_ones_first(self):
        found = self.found()
        self.assertEqual(len(found), len(ROUND))
        self.assertIn("cleans", found[0].content)
        self.assertEqual({(each.score, each.found_by) for each in found[1:]}, {(0.0, "scope")})

    def test_a_longer_document_is_not_read_whole(self):
        self.assertEqual(len(self.found(top=2)), 1)

    def test_without_a_scope_or_below_a_minimum_nothing_is_added(self):
        self.assertEqual(len(self.found(scope="")), 1)
        self.assertEqual(len(self.found(minimum_score=0.1)), 1)

    def test_nothing_is_added_if_nothing_is_found(self):
        query = SearchQuery("What is the boiling point of ethanol?")
        scope = f"document:{self.chosen.public_id}"
        self.assertEqual(search_for(self.principal, query, top=5, scope=scope).passages, ())

    def test_a_document_closed_meanwhile_adds_nothing(self):
        set_audience(self.chosen, Audience())
        reader = principal_of(make_user("reader"))
        query = SearchQuery("Who cleans the machine?")
        scope = f"document:{self.chosen.public_id}"
        self.assertEqual(search_for(reader, query, top=5, scope=scope).passages, ())
