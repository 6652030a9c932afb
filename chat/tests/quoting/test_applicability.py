"""Whether a text applies to the case that a question is about."""

from django.test import SimpleTestCase

from chat.quoting.questions.applicability import condition_of, outsiders_in
from chat.quoting.questions.question import Question
from ingestion.search.rough_stems import stems


class ApplicabilityTests(SimpleTestCase):
    def test_a_month_or_a_case_at_the_beginning_is_a_condition(self):
        self.assertEqual(condition_of("In December everyone is paid on the 19th."), {"decemb"})
        self.assertEqual(condition_of("After a stillbirth the full leave applies."), stems("stillbirth"))
        self.assertEqual(condition_of("After a stillbirth leave is paid."), frozenset())

    def test_a_text_about_passengers_is_for_others_unless_the_question_names_them(self):
        passengers = outsiders_in("If passengers have to wait, we pay for a hotel. Delays")
        self.assertTrue(Question("What is the hotel limit?").is_for_others(passengers))
        self.assertFalse(Question("What is the hotel limit of a passenger?").is_for_others(passengers))
        self.assertFalse(Question("What is the hotel limit?").is_for_others(outsiders_in("We pay. Delays")))
