"""The row of a table with the least or greatest value."""

import re

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoted_answer import UNSURE
from chat.quoting.quoting_model import quote
from chat.quoting.table_rows.row_conditions import select_rows
from chat.tests.sources import source

LORRIES = (
    ("Anna", 2009, 12.5, 18, "North depot", 90, 95),
    ("Berta", 2002, 9, 24, "South depot", 80, 85),
    ("Clara", 2017, 12.5, 7.5, "South depot", 110, 99),
    ("Dora", 2011, 8, 12, "North depot", 70, 75),
)
ROWS = [
    f"Lorry: {name}; Built: {built}; Length (m): {length}; Load (t): {load}; Depot: {depot}; "
    f"Winter price (GBP): {winter}; Summer price (GBP): {summer}"
    for name, built, length, load, depot, winter, summer in LORRIES
]
TABLE = source(1, "lorries.xlsx#sheet=Lorries", "\n".join(ROWS), title="Lorries", heading="Lorries")
RULES = source(2, "rules.md#x", "Each vehicle is washed once a week. The oldest drivers may start at nine.")


def asked(question, rows=0, **values):
    cut = {1: rows} if rows else {}
    return quote(Prompt(question, [], [TABLE, RULES], 0.3, fit=5.0, table_rows=cut, **values))


def shown(quoted):
    return re.findall(r"^\| (Anna|Berta|Clara|Dora) \|", "\n".join(quoted.texts), re.MULTILINE)


class ExtremeRowTests(SimpleTestCase):
    def test_the_row_with_the_extreme_value_of_the_matching_column_is_the_answer(self):
        for question, names in (
            ("Which lorry is the oldest?", ["Berta"]),
            ("What is the newest lorry?", ["Clara"]),
            ("Welcher Lkw hat den höchsten Preis im Winter?", ["Clara"]),
            ("Which is the longest lorry?", ["Anna", "Clara"]),
            ("Which lorry carries the highest load?", ["Berta"]),
            ("Which lorry is the cheapest in summer?", ["Dora"]),
            ("Which lorry is the most expensive in winter?", ["Clara"]),
            ("Which lorry of the North depot is the oldest?", ["Anna"]),
            ("When was the oldest lorry built?", ["Berta"]),
            ("Welcher Lorry ist der älteste?", ["Berta"]),
        ):
            with self.subTest(question):
                quoted = asked(question)
                self.assertEqual((shown(quoted), quoted.notice), (names, ""))

    def test_units_are_converted_or_there_is_no_extreme(self):
        question = "Which project has the {} {}?"
        for column, cells, least, greatest in (
            ("Duration", ("3 weeks", "10 days", "15 days"), "P1", "P0"),
            ("Duration", ("2 Jahre", "18 Monate", "1 Jahr"), "P2", "P0"),
            ("Budget", ("€1.2m", "€900k", "€1,000,000"), "P1", "P0"),
            ("Budget", ("1,100,000", "900k", "2 Mio."), "P1", "P2"),
            ("Budget", ("2 Millionen", "900 Tausend", "1,5 Mio."), "P1", "P0"),
            ("Budget", ("1 Milliarde", "2 Milliarden", "900 mn"), "P2", "P1"),
            ("Weight", ("12 kg", "900 g", "2 kg"), "", ""),
            ("Weight", ("12 stone", "900 ounces", "20 stone"), "", ""),
            ("Weight", ("12 stone", "9 *", "20 stone"), "P1", "P2"),
            ("Budget", ("€12", "$11", "€13"), "", ""),
            ("Seats", ("1 seat", "12 seats", "7 seats"), "P0", "P1"),
        ):
            rows = "\n".join(f"Project: P{at}; {column}: {cell}" for at, cell in enumerate(cells))
            for superlative, name in (("lowest", least), ("highest", greatest)):
                selected = select_rows(question.format(superlative, column.lower()), [rows])
                names = [row.split(";")[0].removeprefix("Project: ") for row in selected.rows]
                self.assertEqual(names, [name] if name else [], (cells, superlative))

    def test_a_german_question_selects_a_row_of_a_german_table(self):
        rows = "\n".join(
            f"Lkw: {name}; Baujahr: {built}; Preis (Euro): {price}" for name, built, *_, price in LORRIES
        )
        for question, name in (
            ("Welcher Lkw ist der älteste?", "Berta"),
            ("Welcher Lkw hat den höchsten Preis?", "Clara"),
            ("Welcher Lkw ist der günstigste?", "Dora"),
        ):
            table = source(1, "lkw.xlsx#sheet=Lkw", rows, title="Lkw", heading="Lkw")
            quoted = quote(Prompt(question, [], [table], 0.3, fit=5.0, table_rows={}))
            self.assertEqual((shown(quoted), quoted.is_sure), ([name], True), question)

    def test_a_thing_may_have_another_name_in_the_table(self):
        quoted = asked("What is the oldest truck?", synonyms={"truck": ("lorry",)})
        self.assertEqual((shown(quoted), quoted.notice), (["Berta"], ""))

    def test_rows_are_not_compared_for_another_question(self):
        for question in (
            "Which lorry is the cheapest?",  # in winter or in summer
            "Which lorry is the second oldest?",
            "Which lorry is the heaviest?",
            "Which lorry is not the oldest?",
            "Which lorry of the West depot is the oldest?",
            "Who drives the oldest lorry?",
            "Which employee is the oldest?",
        ):
            with self.subTest(question):
                quoted = asked(question)
                self.assertFalse(quoted.is_sure and len(shown(quoted)) == 1, quoted.texts)

    def test_rows_of_an_incomplete_table_are_not_compared(self):
        for rows in (9, -1):
            self.assertEqual(asked("Which lorry is the oldest?", rows).notice, UNSURE)
        self.assertEqual(shown(asked("Which lorry is the oldest?", 4)), ["Berta"])

    def test_rows_of_a_column_with_text_are_not_compared(self):
        rows = "\n".join(
            [
                *ROWS,
                "Lorry: Emma; Built: unknown; Length (m): 20; Load (t): 20; Depot: North depot; "
                "Winter price (GBP): 1; Summer price (GBP): 1",
            ]
        )
        table = source(1, "lorries.xlsx#sheet=Lorries", rows, title="Lorries")
        quoted = quote(Prompt("Which lorry is the oldest?", [], [table], 0.3, fit=5.0))
        self.assertEqual(quoted.notice, UNSURE)
