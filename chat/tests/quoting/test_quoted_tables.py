"""Answers without a model from tables: rows selected by conditions, and each row shown once."""

import csv
import re

from django.conf import settings
from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoted_answer import PARTLY, UNSURE
from chat.quoting.quoting_model import quote
from chat.quoting.table_rows.row_conditions import excludes, select_rows
from chat.tests.sources import source

SEATS = (16, 7, 8, 20, 24, 14, 10, 30, 12)
ROWS = [
    f"Room: R{number}; Floor: {1 + number % 3}; Seats: {SEATS[number % 9]}; Price per day: £{40 + number}"
    for number in range(1, 61)
]
ROOMS = [
    source(1 + at // 12, f"rooms.pdf#page={1 + at // 36}", "\n".join(ROWS[at : at + 12]), title="Rooms")
    for at in range(0, 60, 12)
]


def asked(question, sources=ROOMS, rows=60):
    cut = {each.passage_id: rows for each in sources}
    return quote(Prompt(question, [], sources, 0.3, fit=5.0, table_rows=cut))


def shown(quoted):
    return re.findall(r"^\| (R\d+) \|", "\n".join(quoted.texts), re.MULTILINE)


def having(meets):
    cells = {number: (1 + number % 3, SEATS[number % 9]) for number in range(1, 61)}
    return [f"R{number}" for number, each in cells.items() if meets(*each)]


def contacts():
    """The 21 rows of the sample telephone list, two in each passage."""
    with (settings.BASE_DIR / "ingestion/samples/everyone/port-contacts.csv").open() as file:
        rows = [
            "; ".join(f"{name}: {cell}" for name, cell in row.items() if cell) for row in csv.DictReader(file)
        ]
    return [
        source(1 + at // 2, "ports.csv", "\n".join(rows[at : at + 2]), score=0.9)
        for at in range(0, len(rows), 2)
    ]


class ConditionTests(SimpleTestCase):
    def test_a_row_without_a_number_is_below_the_numbered_row_that_names_its_group(self):
        fees = ["Item: 1; Service: Bench in the park; Fee: 80.00", "Item: 2; Service: Cleaning of borders"]
        fees += ["Service: Single plot; Fee: 201.00", "Service: Double plot; Fee: 357.00"]
        fees += [
            f"Item: {number}; Service: Planting of kind {number}; Fee: {number}0.00"
            for number in range(3, 12)
        ]
        table = source(1, "fees.odt#fees", "\n".join(["Charged are:", *fees]), heading="Fees of the park")
        quoted = asked("What is the fee for a double plot?", [table], len(fees))
        self.assertRegex(
            quoted.texts[0], r"\*\*Fees of the park\*\*[^|]*\|(.|\n)*\| 2 \| Cleaning(.|\n)*Double plot"
        )
        self.assertNotIn("Single plot", quoted.texts[0])

    def test_a_number_beside_a_column_selects_all_rows_with_it_in_that_column(self):
        quoted = asked("Which rooms have 20 seats?")
        self.assertEqual(shown(quoted), having(lambda floor, seats: seats == 20))
        self.assertEqual(quoted.notice, "")

    def test_comparisons_with_a_column_are_computed_and_conditions_are_joined(self):
        quoted = asked("Which rooms on floor 2 have more than 15 seats?")
        self.assertEqual(shown(quoted), having(lambda floor, seats: floor == 2 and seats > 15))
        self.assertEqual(quoted.notice, "")
        quoted = asked("Which rooms with 24 or more seats are above floor 1?")
        self.assertEqual(shown(quoted), having(lambda floor, seats: floor > 1 and seats >= 24))

    def test_a_cell_with_both_separators_has_the_value_of_its_decimal_sign(self):
        for cell, below, above in (
            ("1,249.00", 1248, 1250),
            ("1.249,50 €", 1249, 1250),
            ("1,200,000.00", 1_199_999, 1_200_001),
            ("1,249", 1248, 1250),
            ("1.200.000", 1_199_999, 1_200_001),
            ("0.125", 0, 1),
            ("0,125 kg", 0, 1),
            ("12,50 €", 12, 13),
        ):
            for least, rows in ((below, 1), (above, 0)):
                question = f"Which articles have a price above {least}?"
                selected = select_rows(question, [f"Article: Saw; Price: {cell}"])
                self.assertEqual(len(selected.rows), rows, (cell, question))

    def test_a_german_question_selects_rows_of_a_german_table(self):
        rows = "\n".join(
            f"Raum: R{number}; Etage: {number % 3}; Plätze: {number % 4}" for number in range(1, 13)
        )
        quoted = asked(
            "Welche Räume haben mindestens 2 Plätze?", [source(1, "a.md", rows, title="Räume")], rows=0
        )
        self.assertEqual(shown(quoted), ["R2", "R3", "R6", "R7", "R10", "R11"])

    def test_rows_with_a_property_are_those_whose_cell_does_not_say_no(self):
        branches = "\n".join(
            f"Branch: B{number}; Manager: Jo; Saturday: 9–12; Sunday: {'10–14' if number % 3 else 'closed'}"
            for number in range(1, 13)
        )
        page = [source(1, "branches.csv", branches, title="Opening hours")]
        for question, meets in (
            ("Which branches are open on Sunday?", lambda number: number % 3),
            ("Which branches are closed on Sunday?", lambda number: not number % 3),
            ("Which branches are open on Saturday and Sunday?", lambda number: number % 3),
        ):
            with self.subTest(question):
                quoted = asked(question, page, rows=0)
                numbers = re.findall(r"^\| B(\d+) \|", "\n".join(quoted.texts), re.MULTILINE)
                self.assertEqual(numbers, [str(n) for n in range(1, 13) if meets(n)])
                self.assertEqual(quoted.notice, "")

    def test_rows_with_a_property_are_those_with_its_word_in_a_cell(self):
        for column, yes, no in (
            ("Equipment", "projector, screen", "whiteboard"),
            ("Projector", "yes", "no"),
            ("Projector", "1", "–"),
        ):
            rows = [f"Room: R{n}; Floor: {n % 3}; {column}: {no if n % 4 else yes}" for n in range(1, 49)]
            pages = [
                source(1 + at // 12, f"rooms.pdf#page={at}", "\n".join(rows[at : at + 12]), title="Rooms")
                for at in range(0, 48, 12)
            ]
            quoted = asked("Which rooms have a projector?", pages, rows=48)
            self.assertEqual(shown(quoted), [f"R{n}" for n in range(4, 49, 4)])
            self.assertEqual(quoted.notice, "")
            self.assertEqual(asked("Which rooms have a projector?", pages[:2], rows=48).notice, PARTLY)
            self.assertEqual(asked("Which rooms have a sauna?", pages, rows=48).is_sure, False)

    def test_a_question_about_all_rows_is_not_answered_by_some(self):
        for question in (
            "How many rooms are there?",
            "How many rooms have 24 seats?",
            "Which rooms have between 10 and 20 seats?",
            "Which rooms have 20 seats and cost less than 50?",
            "Which rooms do not have 20 seats?",
            "Which rooms have 23 seats?",
            "Which rooms in Carrow Quay have 20 seats?",
        ):
            with self.subTest(question):
                self.assertEqual(asked(question).notice, UNSURE)

    def test_rows_of_an_incomplete_table_may_not_be_all(self):
        self.assertEqual(asked("Which rooms have 20 seats?", ROOMS[:3]).notice, PARTLY)
        self.assertEqual(asked("Which rooms have 20 seats?", rows=-1).notice, PARTLY)

    def test_the_answer_says_if_there_are_more_rows(self):
        quoted = asked("Which rooms have at least 7 seats?")
        self.assertEqual((len(shown(quoted)), quoted.notice), (20, PARTLY))

    def test_a_named_row_is_still_the_answer(self):
        quoted = asked("How many seats does R20 have?")
        self.assertEqual((shown(quoted), quoted.notice), (["R20"], ""))

    def test_a_row_that_the_question_may_exclude_is_not_called_the_answer(self):
        places = [
            "France (Paris)",
            "France (elsewhere)",
            "Italy (outside Rome)",
            *map("Land{}".format, range(30)),
        ]
        rows = [
            f"Country: {place}; Full day (EUR): {20 + at}; Overnight allowance (EUR): {100 + at}"
            for at, place in enumerate(places)
        ]
        table = source(1, "rates.csv", "\n".join(rows), title="Allowances", score=1.0)
        for question, is_sure in (
            ("What is the overnight allowance in Paris?", True),
            ("What is the overnight allowance in France outside Paris?", False),
            ("How high is the overnight allowance except in Paris?", False),
            ("What is the overnight allowance in Italy outside Rome?", True),
        ):
            with self.subTest(question):
                prompt = Prompt(question, [], [table], 0.3, fit=5.0, table_rows={})
                self.assertEqual(quote(prompt).is_sure, is_sure)

    def test_a_number_sign_or_a_missing_thing_excludes_no_row(self):
        for question in (
            "What is the price of part no. 4711?",
            "What is the price of a ticket without a reservation?",
            "Was kostet eine Fahrt ohne Reservierung?",
            "Why can't I see the price?",
        ):
            self.assertFalse(excludes(question), question)
        for question in ("the rate in France, not in Paris", "der Satz außer in Paris", "nicht am Montag"):
            self.assertTrue(excludes(question), question)

    def test_a_row_in_another_part_of_the_table_that_search_prefers_is_the_answer(self):
        early, late = (
            "\n".join(
                f"Trip: R{hour}; From: Old Mill; Depart: {hour}:40; To: Lime Wharf; Remarks: {remark}"
                for hour, remark in trips
            )
            for trips in (
                ((10, "Full"), (11, "Full"), (12, "No bicycles")),
                ((13, "Full"), (15, "Full"), (19, "Last coach")),
            )
        )
        question = "When is the last bus from Old Mill to Lime Wharf in winter?"
        for place, notice in (("buses.xlsx#sheet=Winter", ""), ("coaches.xlsx#sheet=Winter", UNSURE)):
            with self.subTest(place):
                parts = [
                    source(1, place, early, title="Timetable", heading="Winter", score=0.99),
                    source(
                        2, "buses.xlsx#sheet=Winter", late, title="Timetable", heading="Winter", score=0.9
                    ),
                ]
                cut = dict.fromkeys((1, 2), 30)
                words = {"bus": ("coach",)}
                quoted = quote(Prompt(question, [], parts, 0.3, fit=5.0, table_rows=cut, synonyms=words))
                self.assertEqual(re.findall(r"^\| (R19) \|", quoted.texts[0], re.MULTILINE), ["R19"])
                self.assertEqual(quoted.notice, notice)

    def test_years_are_compared_in_the_column_beside_them(self):
        rows = "\n".join(f"Room: R{number}; Built: {2000 + number}" for number in range(5, 15))
        page = [source(1, "a.md", rows, title="Rooms")]
        self.assertEqual(shown(asked("Which rooms were built after 2012?", page, rows=0)), ["R13", "R14"])

    def test_rows_that_the_question_does_not_distinguish_are_shown_together(self):
        tickets = ("Child", "Adult", "Bicycle")
        rows = [
            f"Ticket: {ticket}; Route: R{route}; Summer fare (GBP): {4 + place + route}"
            for route in (1, 2, 3)
            for place, ticket in enumerate(tickets)
        ]
        pages = [
            source(1 + at // 3, f"fares.csv#row={at}", "\n".join(rows[at : at + 3]), title="Fares")
            for at in (0, 3, 6)
        ]
        text = "\n".join(asked("How much is a child ticket in summer?", pages, rows=9).texts)
        self.assertEqual(
            re.findall(r"^\| (\w+) \| (R\d)", text, re.MULTILINE)[:3], [("Child", f"R{n}") for n in (1, 2, 3)]
        )
        self.assertEqual(text.count("| Child | R1 |"), 1)

    def test_a_row_without_the_price_does_not_come_first_for_that_of_the_next_row(self):
        offices = (
            "Port: Port Ellery; Office: Child ticket office; Notes: Open in summer\n"
            "Port: Port Ellery; Office: Cargo; Notes: Child seats cost GBP 12"
        )
        fares = (
            "Ticket: Child; Route: R1; Summer fare (GBP): 14\nTicket: Child; Route: R3; Summer fare (GBP): 11"
        )
        pages = [source(1, "a.csv", offices), source(2, "fares.csv", fares, score=0.85)]
        text = "\n".join(asked("How much is a child ticket to Port Ellery in summer?", pages, rows=9).texts)
        self.assertLess(
            text.index("| Child |"),
            text.index("Child ticket office") if "Child ticket office" in text else len(text),
        )


class RepeatedRowTests(SimpleTestCase):
    def test_a_row_is_shown_once(self):
        quoted = asked("Where is lost property at Port Ellery and when is it open?", contacts(), rows=21)
        self.assertEqual("\n".join(quoted.texts).count("| Port Ellery | Lost property |"), 1)


class EqualRowTests(SimpleTestCase):
    """Rows that answer equally well are quoted together, wherever they are found, and no others."""

    def test_rows_of_one_name_in_several_passages_are_one_table(self):
        quoted = asked("Which radio channel does the quay supervisor use?", contacts(), rows=21)
        text = "\n".join(quoted.texts)
        self.assertEqual(re.findall(r"\| Radio channel (\d+) ", text), ["12", "14", "9"])
        self.assertEqual((text.count("| port |"), quoted.notice), (1, ""))
        self.assertIn("This shows 3 of 21 rows", text)

    def test_more_rows_may_be_in_passages_that_were_not_read(self):
        pages = [page for page in contacts() if "Radio channel 9" not in page.content]
        quoted = asked("Which radio channel does the quay supervisor use?", pages, rows=21)
        self.assertEqual(quoted.notice, PARTLY)

    def test_rows_that_lack_a_cell_belong_to_the_same_table(self):
        quoted = asked("What is the telephone number of Port Ellery?", contacts(), rows=21)
        text = "\n".join(quoted.texts)
        self.assertEqual((text.count("| Port Ellery |"), text.count("| port |")), (7, 1))
        self.assertIn("This shows 7 of 21 rows", text)

    def test_rows_with_fewer_of_the_words_are_left_out(self):
        rates = (
            "Item: Own car, first miles; Rate: 45p a mile",
            "Item: Own car, further miles; Rate: 25p a mile",
            "Item: Motorcycle; Rate: 24p a mile",
            "Item: Bicycle; Rate: 20p a mile",
            "Item: Breakfast; Rate: £9",
            "Item: Lunch; Rate: £11",
            "Item: Dinner; Rate: £24",
            "Item: Hotel; Rate: £105 a night",
        )
        page = source(1, "travel.docx", "\n".join(rates), title="Rates of mileage", heading="Rates for 2026")
        text = "\n".join(asked("What is the mileage rate for a private car?", [page], rows=0).texts)
        self.assertEqual(re.findall(r"^\| ([A-Z]\w+)", text, re.MULTILINE), ["Item", "Own", "Own"])

    def test_rows_that_have_the_words_only_jointly_are_not_likely(self):
        page = source(1, "ports.csv", "\n".join(each.content for each in contacts()), score=0.6)
        pets = source(
            2, "pets.md", "Passengers' dogs travel free in all areas.", title="Passengers", score=0.93
        )
        question = "Darf ich meinen Hund mit ins Büro bringen?"
        quoted = quote(Prompt(question, [], [pets, page], 0.3, fit=3.1, synonyms={"dog": ["animal", "pet"]}))
        self.assertEqual(quoted.notice, UNSURE)
