"""Times of day in cells and questions."""

from django.test import SimpleTestCase

from chat.quoting.table_rows.clock_times import asked_times, minutes_of

SPANS = {
    "after 6 pm": ["18:00-24:00"],
    "nach 18 Uhr": ["18:00-24:00"],
    "next boat after 14:30": ["14:30-24:00"],
    "before noon": ["00:00-11:59"],
    "vor acht Uhr": ["00:00-07:59"],
    "by 13:30": ["00:00-13:30"],
    "at 17:25": ["17:25-17:25"],
    "around 3 pm": ["14:00-16:00"],
    "gegen Mittag": ["11:00-13:00"],
    "between 4 and 6 pm": ["16:00-18:00"],
    "between 11 and 2 pm": ["11:00-14:00"],
    "zwischen 12 und 15 Uhr": ["12:00-15:00"],
    "between 4 and 6": ["04:00-06:00", "16:00-18:00"],
    "after six": ["06:00-24:00", "18:00-24:00"],
    "in the afternoon after three": ["15:00-17:59"],
    "vormittags": ["00:00-11:59"],
    "on a winter evening": ["18:00-23:59"],
    "before midnight": ["00:00-23:59"],
    "after half past six": [],
    "from 2026": [],
    "after 5 % more": [],
}


def written(minutes):
    return f"{minutes // 60:02}:{minutes % 60:02}"


class ClockTimeTests(SimpleTestCase):
    def test_a_question_asks_for_spans_of_the_day(self):
        for question, spans in SPANS.items():
            with self.subTest(question):
                found = asked_times(question).spans
                self.assertEqual([f"{written(first)}-{written(last)}" for first, last in found], spans)

    def test_the_rest_of_the_question_remains(self):
        self.assertEqual(
            asked_times("Which desk is open after 6 pm on Friday?").rest.split()[-2:], ["on", "Friday?"]
        )

    def test_a_cell_is_a_time_if_it_is_nothing_else(self):
        cells = {
            "18:35": 1115,
            "6 pm": 1080,
            "5:35 AM": 335,
            "12:05 am": 5,
            "7.30": 450,
            "08:00:00": 480,
            "12 Uhr": 720,
        }
        for cell, minutes in cells.items():
            self.assertEqual(minutes_of(cell), minutes, cell)
        for cell in ("14", "18:35 on Fridays", "25:10", "9:75", "", "£7"):
            self.assertIsNone(minutes_of(cell), cell)
