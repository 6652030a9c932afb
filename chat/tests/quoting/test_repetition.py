"""Suggested questions that were asked or suggested already, in other words or another language."""

from django.test import SimpleTestCase

from chat.quoting.questions.repetition import repeats


class RepetitionTests(SimpleTestCase):
    def test_a_question_about_the_same_subject_counts_as_asked(self):
        for question, asked in (
            ("What is the rate for dinner?", "How much for dinner?"),
            ("What should I know about unpaid leave?", "What about the unpaid leave?"),
            ("What do I do if my laptop is lost or stolen?", "My laptop was stolen on the train"),
            ("Wie früh muss ein Auto beim Check-in sein?", "Wann muss ich mit dem Auto zum Check-in?"),
            ("Was sollte ich über „Unbezahlter Urlaub“ wissen?", "Bekomme ich unbezahlten Urlaub?"),
        ):
            self.assertTrue(repeats(question, ["Where is the canteen?", asked]), question)

    def test_a_question_asked_in_the_other_language_counts_as_asked(self):
        for question, asked in (
            ("How do I report sick?", "Wie melde ich mich krank?"),
            ("Wie melde ich mich krank?", "How do I report sick?"),
            (
                "What do I do if my laptop is lost or stolen?",
                "Was mache ich, wenn mein Laptop gestohlen wurde?",
            ),
        ):
            self.assertTrue(repeats(question, [asked]), question)

    def test_a_question_that_names_more_or_something_else_counts_as_new(self):
        for question, asked in (
            ("What should I know about unpaid leave?", "How much leave do I get?"),
            ("What is the rate for dinner?", "What is the rate for lunch?"),
            ("What is the rate?", "What is the price?"),
            ("Was sollte ich über „Reise“ wissen?", "Was sollte ich über „Urlaub“ wissen?"),
        ):
            self.assertFalse(repeats(question, [asked]), question)

    def test_the_opposite_direction_counts_as_new(self):
        there, back = (
            f"When does the ferry leave from {start} to {end}?"
            for start, end in (("Port Ellery", "Carrow Quay"), ("Carrow Quay", "Port Ellery"))
        )
        self.assertFalse(repeats(back, [there]))
        self.assertTrue(repeats(there, [back, there]))

    def test_nothing_counts_as_asked_before_the_first_question(self):
        self.assertFalse(repeats("What is the rate for dinner?", []))
