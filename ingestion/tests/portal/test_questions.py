"""The questions that a document's headings and definitions suggest."""

from django.test import SimpleTestCase

from ingestion.suggested_questions import questions_about

TEXT = "Annual leave is counted in working days, and the days that you have are shown in the portal. " * 2


class QuestionsTests(SimpleTestCase):
    def about(self, heading, text=TEXT, language="english"):
        return questions_about("Handbook", language, [(heading, text)])

    def test_a_heading_becomes_a_question_about_its_subject(self):
        self.assertEqual(self.about("3.2 Annual leave"), ["What should I know about annual leave?"])
        self.assertEqual(self.about("Can leave be carried over?"), ["Can leave be carried over?"])
        self.assertEqual(self.about("What is this leave?"), [])

    def test_a_longer_heading_is_quoted_in_the_question(self):
        self.assertEqual(
            self.about("4.1 Timetable of leave"), ["What should I know about “Timetable of leave”?"]
        )
        self.assertEqual(
            self.about("2 Urlaub in Teilzeit", "Der Urlaub in Teilzeit. " * 9, "german"),
            ["Was sollte ich über „Urlaub in Teilzeit“ wissen?"],
        )

    def test_a_heading_like_a_question_is_asked_in_the_first_person(self):
        for heading, question in {
            "How much leave you have": "How much leave do I have?",
            "How to count your days": "How do I count my days?",
            "Where you can see the days": "Where can I see the days?",
            "Which days you must bring with you": "Which days must I bring with me?",
        }.items():
            self.assertEqual(self.about(heading), [question])

    def test_a_heading_that_cannot_become_a_question_is_left_out(self):
        for heading in ("How leave is counted", "What happens next", "Contents"):
            self.assertEqual(self.about(heading), [])

    def test_a_definition_is_asked_for(self):
        found = self.about(
            "", "A muster is a meeting of all persons on board. It takes place before departure."
        )
        self.assertEqual(found, ["What is a muster?"])
