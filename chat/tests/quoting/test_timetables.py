"""Answers without a model from timetables: the rows of the way, the time and the days that are asked for."""

import re
from dataclasses import replace

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote
from chat.requests import EarlierMessage
from chat.tests.sources import source

SAILINGS = (
    ("A1", "Mon-Fri", "Tarn Quay", "06:15", "Old Mill", "07:00"),
    ("A2", "Daily", "Tarn Quay", "10:40", "Old Mill", "11:25"),
    ("A3", "Daily", "Tarn Quay", "16:20", "Old Mill", "17:05"),
    ("A4", "Fri, Sun", "Tarn Quay", "21:50", "Old Mill", "22:35"),
    ("B1", "Mon-Sat", "Old Mill", "07:30", "Tarn Quay", "08:15"),
    ("B2", "Daily", "Old Mill", "12:10", "Tarn Quay", "12:55"),
    ("B3", "Daily", "Old Mill", "18:35", "Tarn Quay", "19:20"),
    ("C1", "Fri-Mon", "Old Mill", "09:05", "Fern Isle", "09:55"),
    ("C2", "Fri-Mon", "Fern Isle", "17:40", "Old Mill", "18:30"),
)
COLUMNS = ("Sailing", "Days", "From", "Depart", "To", "Arrive")


def table(sailings=SAILINGS, columns=COLUMNS):
    return "\n".join(
        "; ".join(f"{column}: {cell}" for column, cell in zip(columns, cells, strict=True))
        for cells in sailings
    )


def page(rows, heading="Winter timetable", **values):
    return source(1, "boats.xlsx#sheet=Winter", rows, title="Boats", heading=heading, **values)


WINTER = page(table())


def asked(question, *sources, cut=0, earlier=()):
    found = sources or (WINTER,)
    table_rows = {each.passage_id: cut for each in found} if cut else {}
    turns = [EarlierMessage("user", text) for text in earlier]
    return quote(Prompt(question, turns, found, 0.3, fit=5.0, table_rows=table_rows))


def shown(quoted):
    return " ".join(re.findall(r"^\| ([A-Z]\d) \|", "\n".join(quoted.texts), re.MULTILINE))


class TimetableTests(SimpleTestCase):
    def assert_rows(self, expected, *, is_sure=True, sources=(), cut=0):
        for question, rows in expected.items():
            with self.subTest(question):
                quoted = asked(question, *sources, cut=cut)
                self.assertEqual((shown(quoted), quoted.is_sure), (rows, is_sure))

    def test_rows_of_a_time_are_in_the_requested_direction(self):
        self.assert_rows(
            {
                "How do I get from Old Mill to Tarn Quay after 6 pm in winter?": "B3",
                "Which boats go from Tarn Quay to Old Mill before noon?": "A1 A2",
                "Is there a boat from Tarn Quay to Old Mill between 4 and 6?": "A3",
                "Boats from Old Mill to Tarn Quay in the morning": "B1",
                "next boat after 11:30 from Old Mill to Tarn Quay": "B2",
                "Boat from Tarn Quay to Old Mill around 5 pm": "A3",
                "Welche Schiffe fahren nach 12 Uhr von Tarn Quay nach Old Mill?": "A3 A4",
                "Wie komme ich vormittags von Old Mill nach Tarn Quay?": "B1",
            }
        )

    def test_first_and_last_departures_respect_the_day_and_the_time(self):
        self.assert_rows(
            {
                "When is the last boat to Old Mill from Tarn Quay on a Sunday in winter?": "A4",
                "When is the last boat from Tarn Quay to Old Mill on Tuesdays?": "A3",
                "Wann fährt das letzte Schiff von Old Mill nach Tarn Quay im Winter?": "B3",
                "Wann legt die erste Fähre sonntags in Old Mill nach Tarn Quay ab?": "B2",
                "When is the first ferry from Tarn Quay to Old Mill?": "A1 A2",  # on weekdays, on Sundays
                "When does the last boat leave Old Mill?": "B3",
                "I must arrive in Old Mill by 11:30, which boat from Tarn Quay?": "A1 A2",
            }
        )

    def test_a_follow_up_keeps_omitted_conditions(self):
        summer = page(
            table([("S1", "Daily", "Old Mill", "21:25", "Tarn Quay", "22:10"), *SAILINGS[1:3]]), "Summer"
        )
        first = "When does the last boat from Old Mill to Tarn Quay leave on a winter evening?"
        for question, row in (
            ("and in summer?", "S1"),
            ("and back?", "A4"),
            ("and the first?", "B3"),
            ("und sonntags?", "B3"),
            ("and when does it arrive?", "B3"),
        ):
            with self.subTest(question):
                quoted = asked(question, WINTER, replace(summer, rank=2, passage_id=2), earlier=[first])
                self.assertEqual((shown(quoted), quoted.is_sure), (row, True))
        self.assertNotEqual(shown(asked("and how long does it take?", earlier=[first])), "B3")

    def test_without_a_matching_row_the_nearest_ones_are_the_closest(self):
        self.assert_rows(
            {
                "Is there a boat from Fern Isle to Old Mill on Wednesdays in winter?": "C2",
                "Is there a boat from Old Mill to Tarn Quay after 19:00?": "B3",
                "Is there a boat from Tarn Quay to Old Mill between 12:00 and 15:00?": "A2 A3",
                "When does the last boat go from Old Mill to Tarn Quay in summer?": "B3",
                "When is the last boat from Old Mill to Tarn Quay tomorrow?": "B3",
            },
            is_sure=False,
        )

    def test_rows_of_the_way_and_time_may_answer_a_question_for_a_date(self):
        for question in (
            "I have to be in Old Mill by noon in January, which boat do I take from Tarn Quay?",
            "Wann fährt morgen die letzte Fähre von Old Mill nach Tarn Quay?",
        ):
            quoted = asked(question)
            self.assertEqual((quoted.is_sure, quoted.is_likely), (False, True), question)
        for question in (
            "When is the last boat from Old Mill to Tarn Quay in summer?",
            "Is there a boat from Fern Isle to Old Mill tomorrow after 20:00?",
            "Ferry Tarn Quay Old Mill tomorrow after 18:00",
        ):
            self.assertFalse(asked(question).is_likely, question)
        rest = asked("When does the last boat go from Old Mill to Tarn Quay tomorrow?", cut=30)
        self.assertFalse(rest.is_likely)

    def test_the_verb_may_is_not_the_month(self):
        self.assert_rows(
            {
                "Which boat from Tarn Quay to Old Mill may I take after 16:00 on Monday?": "A3",
                "May I take a boat from Tarn Quay to Old Mill after 16:00 on Monday?": "A3",
            }
        )
        for month in ("in May", "on 3 May", "in may"):
            question = f"Which boat goes from Tarn Quay to Old Mill after 16:00 {month}?"
            self.assertFalse(asked(question).is_sure, question)

    def test_going_home_is_not_a_condition(self):
        self.assertEqual(shown(asked("When is the last ferry home from Old Mill to Tarn Quay?")), "B3")

    def test_without_a_clear_direction_or_time_no_row_is_quoted(self):
        self.assert_rows({"Ferry Tarn Quay Old Mill after 18:00": "B3 A4"}, is_sure=False)
        self.assert_rows({"Boats from Tarn Quay to Old Mill after 6": "A1 A2 A3 A4"}, is_sure=False)

    def test_the_opposite_direction_is_never_quoted(self):
        rows = page(table(SAILINGS[4:7]))
        for question in (
            "When is the last boat from Tarn Quay to Old Mill?",
            "How long does the boat from Tarn Quay to Old Mill take?",
            "Wann fährt die letzte Fähre von Tarn Quay nach Old Mill?",
        ):
            quoted = asked(question, rows)
            self.assertFalse(quoted.is_sure or quoted.is_likely, question)

    def test_rows_of_an_incomplete_table_are_only_the_closest(self):
        self.assert_rows({"When is the last boat from Old Mill to Tarn Quay?": "B3"}, is_sure=False, cut=30)

    def test_words_for_another_cell_select_rows_and_unknown_ones_none(self):
        columns = (*COLUMNS, "Vessel")
        rows = page(table([(*cells, "Heron" if cells[3] > "12" else "Gull") for cells in SAILINGS], columns))
        self.assert_rows({"When does the Heron go from Tarn Quay to Old Mill?": "A3 A4"}, sources=[rows])
        self.assertFalse(asked("When does the Puffin go from Tarn Quay to Old Mill?", rows).is_sure)

    def test_a_heading_names_the_places(self):
        rows = page(
            table([(each[0], each[3], each[5]) for each in SAILINGS[:4]], ("Ferry", "Dep Time", "Arv Time")),
            "Schedule for Tarn Quay to Old Mill",
        )
        self.assert_rows({"Which ferries go from Tarn Quay to Old Mill after 4 pm?": "A3 A4"}, sources=[rows])
        self.assertFalse(asked("When is the last ferry from Old Mill to Tarn Quay?", rows).is_sure)

    def test_the_places_are_columns(self):
        trips = [
            ("T1", "08:10", "08:25", "08:40"),
            ("T2", "17:30", "17:45", "18:00"),
            ("T3", "09:55", "09:40", "09:25"),
        ]
        rows = page(table(trips, ("Trip", "Market", "Bridge", "Hospital")), "Bus 7")
        self.assert_rows(
            {
                "When is the last bus from Market to Hospital?": "T2",
                "Is there a bus from Hospital to Bridge in the morning?": "T3",
            },
            sources=[rows],
        )

    def test_other_tables_with_times_are_not_timetables(self):
        hours = page(
            table(
                [("Help desk", "08:00", "18:00"), ("Library", "09:00", "21:00")], ("Desk", "Open", "Close")
            ),
            "Opening hours",
        )
        self.assertIn("21:00", " ".join(asked("When does the library close?", hours).texts))
        meetings = page(
            table([("R1", "09:00", "10:00"), ("R2", "14:00", "15:00")], ("Room", "From", "To")), "Meetings"
        )
        self.assertIn("14:00", " ".join(asked("From when is R2 booked?", meetings).texts))
