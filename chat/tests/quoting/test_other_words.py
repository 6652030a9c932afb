"""Suggested questions that were asked already in other words."""

from django.test import SimpleTestCase

from chat.quoting.questions.question import is_in_other_words


class OtherWordsTests(SimpleTestCase):
    def test_a_question_that_names_the_same_was_asked(self):
        for question, asked in (
            ("What is the rate for dinner?", "How much for dinner?"),
            ("What should I know about unpaid leave?", "What about the unpaid leave?"),
        ):
            self.assertTrue(is_in_other_words(question, asked), question)

    def test_a_question_that_names_more_or_something_else_was_not(self):
        for question, asked in (
            ("What should I know about unpaid leave?", "How much leave do I get?"),
            ("What is the rate for dinner?", "What is the rate for lunch?"),
            ("What is the rate?", "What is the price?"),
        ):
            self.assertFalse(is_in_other_words(question, asked), question)
