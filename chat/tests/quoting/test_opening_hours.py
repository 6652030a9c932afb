"""Answers without a model: which rows of opening hours are open at a time."""

import re

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote
from chat.tests.sources import source


def page(*rows, **values):
    return source(
        1, "hours.xlsx#sheet=Desks", "\n".join(rows), title="Desks", heading="Opening hours", **values
    )


BY_DAY = page(
    "Desk: Parcels; Monday: 8:00am - 6:00pm; Friday: 8:00am - 4:00pm; Sunday: closed",
    "Desk: Tickets; Monday: 7:30am - 10:00pm; Friday: 7:30am - 11:30pm; Sunday: 10:00am - 5:00pm",
    "Desk: Security; Monday: ALL DAY; Friday: ALL DAY; Sunday: 6:00am - 12:00am",
)
ONE_COLUMN = page(
    "Desk: Parcels; Hours: 8–18", "Desk: Tickets; Hours: 7:30–22:00", "Desk: Post; Hours: 9-12 Uhr"
)
TWO_COLUMNS = page(
    "Desk: Parcels; Days: Mon-Fri; Opens: 08:00; Closes: 18:00",
    "Desk: Tickets; Days: Daily; Opens: 07:30; Closes: 22:00",
)


def asked(question, table, cut=0):
    return quote(Prompt(question, [], [table], 0.3, fit=5.0, table_rows={1: cut} if cut else {}))


def shown(quoted):
    return " ".join(
        re.findall(r"^\| (Parcels|Tickets|Security|Post) \|", "\n".join(quoted.texts), re.MULTILINE)
    )


class OpeningHoursTests(SimpleTestCase):
    def test_the_rows_that_are_open_at_a_time_are_the_answer(self):
        for table, question, rows in (
            (BY_DAY, "Which desks are open after 6 pm on Monday?", "Tickets Security"),
            (BY_DAY, "Which desk is open after 5 pm on Friday?", "Tickets Security"),
            (BY_DAY, "Which desks are open on Sunday before 9 am?", "Security"),
            (BY_DAY, "Which desks are open at 8 pm on Sunday?", "Security"),
            (BY_DAY, "Which desks are open after 6 pm?", "Tickets Security"),
            (ONE_COLUMN, "Which desk is open after 6 pm?", "Tickets"),
            (ONE_COLUMN, "Which desks are open before 8 am?", "Tickets"),
            (TWO_COLUMNS, "Which desks are open after 6 pm?", "Tickets"),
            (TWO_COLUMNS, "Which desks are open at noon on Saturday?", "Tickets"),
        ):
            with self.subTest(question):
                quoted = asked(question, table)
                self.assertEqual((shown(quoted), quoted.is_sure), (rows, True))

    def test_a_question_whether_a_place_is_open_is_answered_by_its_row(self):
        for table, question, row in (
            (BY_DAY, "Is the parcels desk open at 6 pm on Friday?", "Parcels"),
            (BY_DAY, "Is the tickets desk still open on Sunday?", "Tickets"),
            (TWO_COLUMNS, "Are tickets open after 9 pm?", "Tickets"),
        ):
            with self.subTest(question):
                quoted = asked(question, table)
                self.assertEqual((shown(quoted), quoted.is_sure), (row, True))
        self.assertEqual(shown(asked("Is the desk open on Friday?", BY_DAY)), "Parcels Tickets Security")

    def test_a_german_question_reads_the_same_hours(self):
        table = page("Schalter: Parcels; Zeiten: 8–18 Uhr", "Schalter: Tickets; Zeiten: 7:30–22:00 Uhr")
        quoted = asked("Welche Schalter sind nach 18 Uhr geöffnet?", table)
        self.assertEqual((shown(quoted), quoted.is_sure), ("Tickets", True))

    def test_part_of_a_table_and_an_unclear_time_are_only_the_closest(self):
        self.assertFalse(asked("Which desk is open after 6 pm?", ONE_COLUMN, cut=30).is_sure)
        self.assertFalse(asked("Which desks are open after 6?", ONE_COLUMN).is_sure)
        other = page(
            "Desk: Parcels; Monday: 9-18", "Desk: Post; Monday: 9-22", "Desk: Tickets; Monday: on request"
        )
        quoted = asked("Which desks are open after 6 pm on Monday?", other)
        self.assertEqual((shown(quoted), quoted.is_sure), ("Post", False))

    def test_conditions_without_a_matching_row_select_none(self):
        self.assertNotEqual(shown(asked("Which pharmacies are open after 6 pm?", ONE_COLUMN)), "Tickets")
        self.assertNotEqual(shown(asked("Which desks are open until 10 pm?", ONE_COLUMN)), "Parcels")
