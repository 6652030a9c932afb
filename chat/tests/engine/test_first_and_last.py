"""Questions for the first or last of several things, answered without a model."""

from django.test import TestCase

from chat.engine.searching import as_source, search_for
from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote, search_query
from chatsite.accounts.models import User
from ingestion.search.passage_completion import cut_tables
from ingestion.tests.documents import make_document, principal_of

TIMES = ("07:40", "09:30", "12:00", "15:15", "18:50", "19:25", "20:10", "21:25")
SAILINGS = [
    f"Sailing: S{number}; From: {place}; Depart: {time}; Season: summer; Remarks: {remark}"
    for place in ("Sennick", "Carrow")
    for number, time in enumerate(TIMES, 10)
    for remark in ("Last sailing of the day" if time == TIMES[-1] else "bar open",)
]
HANDBOOK = (
    "Reviews are after 8 and 16 weeks. Leave can be taken from the first month, and in summer for two weeks.",
    "Notice lasts a week. Leave that is left on the last day is paid.",
)


class FirstAndLastTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.principal = principal_of(User.objects.create_user("reader"))
        halves = ["\n".join(SAILINGS[start : start + 4]) for start in range(0, len(SAILINGS), 4)]
        make_document("timetable.csv", halves, title="Summer timetable")
        make_document("handbook.md", HANDBOOK, title="Marlowe Ferries staff handbook")

    def quoted(self, question):
        found = search_for(self.principal, search_query(question, ()), top=5)
        sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, 1)]
        cut = cut_tables(found.passages)
        return quote(
            Prompt(question, (), sources, 0.0, fit=found.fit, synonyms=found.synonyms, table_rows=cut)
        )

    def test_a_row_of_a_long_table_is_the_first_only_if_it_says_so(self):
        self.assertFalse(self.quoted("When is the first sailing from Sennick in summer?").is_sure)
        last = self.quoted("When is the last sailing from Sennick in summer?")
        self.assertTrue(last.is_sure)
        self.assertIn("Last sailing of the day", last.texts[0])

    def test_another_sense_of_the_verb_does_not_answer(self):
        for question in ("When does the first sailing leave in summer?", "When does the last ferry leave?"):
            self.assertFalse(self.quoted(question).is_sure, question)

    def test_a_german_question_keeps_its_direction_and_its_last_in_english_rows(self):
        rows = [
            f"Sailing: W{number}; From: {start}; Depart: {time}; To: {end}; Season: winter"
            for start, end in (("Ellery Quay", "Tarn Harbour"), ("Tarn Harbour", "Ellery Quay"))
            for number, time in enumerate(TIMES, 10)
        ]
        halves = ["\n".join(rows[start : start + 4]) for start in range(0, len(rows), 4)]
        make_document("winter.csv", halves, title="Winter timetable")
        quoted = self.quoted("Wann fährt die letzte Fähre von Tarn Harbour nach Ellery Quay im Winter?")
        self.assertTrue(quoted.is_sure)
        self.assertIn("| W17 | Tarn Harbour | 21:25 |", quoted.texts[0])
        self.assertNotIn("| Ellery Quay | 21:25 |", quoted.texts[0])
