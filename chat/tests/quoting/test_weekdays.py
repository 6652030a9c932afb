"""Rows of tables for some days of the week."""

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote
from chat.quoting.table_rows.weekdays import days_named, days_of_row
from chat.requests import EarlierMessage
from chat.tests.sources import source

TRIPS = (
    "Trip: B1; Days: Mon-Fri; From: Hill Farm; Depart: 07:40; To: Old Mill; Remarks: No bicycles",
    "Trip: B2; Days: Daily; From: Hill Farm; Depart: 10:20; To: Old Mill",
    "Trip: B3; Days: Daily; From: Hill Farm; Depart: 19:40; To: Old Mill; Remarks: Last bus",
    "Trip: B4; Days: Mon-Sat; From: Hill Farm; Depart: 21:15; To: Old Mill; Remarks: Last bus",
    *(f"Trip: C{hour}; Days: Daily; From: Station; Depart: {hour}:05; To: Market" for hour in range(6, 22)),
)
BUSES = source(1, "buses.xlsx#sheet=Winter", "\n".join(TRIPS), title="Buses", heading="Winter")
LAST = "When is the last bus from Hill Farm to Old Mill in winter?"


def answer(question, *earlier):
    said = [EarlierMessage("user", each) for each in earlier]
    return "\n".join(quote(Prompt(question, said, [BUSES], 0.3, fit=5.0)).texts)


class DaysTests(SimpleTestCase):
    def test_cells_of_days_are_read_as_single_days_and_ranges(self):
        for cell, days in (
            ("Mon-Fri", {0, 1, 2, 3, 4}),
            ("Fri-Mon", {4, 5, 6, 0}),
            ("Tue, Fri", {1, 4}),
            ("Saturday and Sunday", {5, 6}),
            ("Daily", set(range(7))),
            ("Mo–Fr", {0, 1, 2, 3, 4}),
            ("Montag bis Donnerstag", {0, 1, 2, 3}),
            ("Di, Do, So", {1, 3, 6}),
            ("mittwochs", {2}),
        ):
            with self.subTest(cell):
                self.assertEqual(days_of_row(f"Trip: B1; Days: {cell}"), days)

    def test_a_row_without_a_cell_of_days_is_for_no_days(self):
        for cell in ("Sunday roast", "Money", "08:00-14:00", "Friday 08:00-14:00", "Solid"):
            self.assertIsNone(days_of_row(f"Trip: B1; Remarks: {cell}"))

    def test_days_are_named_in_full_in_english_and_german(self):
        self.assertEqual(days_named("and on Sundays or Tuesday?"), {6, 1})
        self.assertEqual(days_named("und mittwochs, am Samstag?"), {2, 5})
        self.assertEqual(days_named("The sun sat on my money, so do it."), set())


class RowsOfDaysTests(SimpleTestCase):
    def test_a_follow_up_for_a_day_gives_no_row_for_other_days_first(self):
        text = answer("and on Sundays?", LAST)
        self.assertIn("| B3 |", text)
        self.assertNotIn("| B1 |", text)
        self.assertNotIn("| B4 |", text)

    def test_the_day_of_an_earlier_question_still_counts(self):
        text = answer("and with a bicycle?", LAST.replace("last bus", "last bus on Sundays"))
        self.assertNotIn("| B1 |", text)
        self.assertNotIn("| B4 |", text)

    def test_a_question_for_exceptions_of_a_day_may_be_answered_by_other_rows(self):
        self.assertIn("| B1 |", answer("Which trip with no bicycles does not run on Sundays?"))
