"""Whether a text applies to the case that a question is about."""

from django.test import SimpleTestCase

from chat.quoting.questions.applicability import (
    case_of,
    condition_of,
    directions_of,
    is_opposite,
    offices_in,
    outsiders_in,
)
from chat.quoting.questions.question import Question
from ingestion.search.rough_stems import stems, weak_stems


class ApplicabilityTests(SimpleTestCase):
    def test_a_month_or_a_case_at_the_beginning_is_a_condition(self):
        self.assertEqual(condition_of("In December everyone is paid on the 19th."), {"decemb"})
        self.assertEqual(condition_of("After a stillbirth the full leave applies."), stems("stillbirth"))
        self.assertEqual(condition_of("After a stillbirth leave is paid."), frozenset())
        for text in (
            "In exceptional cases two bags are allowed.",
            "By way of exception two bags are allowed.",
            "Ausnahmsweise sind zwei Taschen erlaubt.",
            "In begründeten Ausnahmefällen sind zwei Taschen erlaubt.",
        ):
            self.assertTrue(condition_of(text), text)
        self.assertEqual(condition_of("Exceptions are listed below."), frozenset())

    def test_a_row_in_the_other_direction_is_opposite_also_by_the_whole_name_of_a_place(self):
        there = directions_of("From: Carrow Quay; Depart: 18:35; To: Sennick Harbour")
        for question in ("When does the last boat leave Sennick?", "The last boat from Sennick Harbour?"):
            self.assertTrue(is_opposite(directions_of(question), there), question)
        for question in ("When does the boat leave Carrow for Sennick?", "The last boat to Sennick?"):
            self.assertFalse(is_opposite(directions_of(question), there), question)
        self.assertFalse(is_opposite(directions_of("Who comes from Senn?"), there))

    def test_a_text_about_passengers_does_not_apply_unless_the_question_names_them(self):
        passengers = outsiders_in("If passengers have to wait, we pay for a hotel. Delays")
        self.assertTrue(Question("What is the hotel limit?").is_for_others(passengers))
        self.assertFalse(Question("What is the hotel limit of a passenger?").is_for_others(passengers))
        self.assertFalse(Question("What is the hotel limit?").is_for_others(outsiders_in("We pay. Delays")))

    def test_a_question_or_sentence_names_a_case_at_its_beginning_or_end(self):
        for text, case in (
            ("What happens if I delete a library?", {"delet", "librari"}),
            ("After a library is deleted, shares are cancelled.", {"delet", "librari"}),
            ("When the alarm rings, go out.", {"alarm", "ring"}),
            ("When is the alarm tested?", set()),
            ("Until when can I cancel?", set()),
        ):
            self.assertEqual(case_of(text) - weak_stems(), stems(" ".join(case)) - weak_stems(), text)

    def test_an_office_acts_or_is_addressed_and_its_noun_has_no_other_role(self):
        for text in ("The travel desk may approve more.", "Book through the travel desk, extension 3250."):
            self.assertEqual(offices_in(text), {("desk", frozenset({"travel"}))}, text)
        for text in (
            "A standing desk costs £300.",
            "The desk may cost £300.",
            "Ask the travel desk for a desk.",
        ):
            self.assertEqual(offices_in(text), frozenset(), text)

    def test_the_name_of_an_office_does_not_answer_what_a_thing_costs(self):
        offices = offices_in("The travel desk may approve up to 30 per cent more.")
        for question, is_about in (
            ("How much can I spend on a desk?", True),
            ("How much may the travel desk charge?", False),
            ("Who may approve a desk?", False),
        ):
            self.assertEqual(Question(question).is_about_office(offices), is_about, question)
