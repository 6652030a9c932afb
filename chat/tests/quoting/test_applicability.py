"""Whether a text applies to the case that a question is about."""

from django.test import SimpleTestCase

from chat.quoting.questions.applicability import condition_of, directions_of, is_opposite, outsiders_in
from chat.quoting.questions.question import Question
from ingestion.search.rough_stems import stems


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
