"""How surely a quotation answers a question."""

from django.test import SimpleTestCase

from chat.quoting.confidence import SURE, _lacks_number, answers, confidence, is_sure
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.question import Question

ROW = "Vessel: Sennick Bay; Class: B; Built: 2011; Passengers: 320; Cars: 62"
FOUND = {"score": 1.3, "fit": 4.0}


class ConfidenceTests(SimpleTestCase):
    def sure(self, question, *quoted, synonyms=None, **found):
        asked = Question(question, synonyms=synonyms or {})
        return confidence(QuotedText(asked, quoted), **{**FOUND, **found})

    def test_a_quotation_with_everything_asked_for_is_the_answer(self):
        self.assertGreaterEqual(self.sure("How many passengers does Sennick Bay carry?", ROW), SURE)
        self.assertGreaterEqual(self.sure("When was Sennick Bay built?", ROW), SURE)

    def test_the_name_in_the_question_must_occur_completely(self):
        question = "How many passengers does {} carry?"
        whole = self.sure(question.format("Sennick Bay"), ROW)
        for other in ("Carrow Bay", "Bay Sennick"):
            self.assertLess(self.sure(question.format(other), ROW), whole, other)

    def test_numbers_of_the_question_must_occur(self):
        text = "In 2026 the exercise takes place at Sennick Harbour."
        asked = self.sure("Where is the exercise in 2026?", text)
        self.assertLess(self.sure("Where is the exercise in 2029?", text), asked)

    def test_the_number_of_a_thing_must_be_in_the_sentence(self):
        """The heading has the number, but the sentence is about another one."""
        other = "No meeting in week 6, which is independent learning week."
        for week, text, says in (
            ("5", other, False),
            ("6", other, True),
            ("5", "We meet in weeks 5/6.", True),
        ):
            question = f"Do we meet in week {week}?"
            lacks = _lacks_number(QuotedText(Question(question), (text, "Seminars › Week 5 – Scales")))
            self.assertEqual(not lacks, says, (week, text))

    def test_a_duration_must_occur_with_its_number(self):
        question = "Can I work abroad for {}?"
        text = "Work abroad is possible for {}."
        same = self.sure(question.format("four weeks"), text.format("4 weeks"))
        for other in ("each complete week", "two days if you ask four weeks beforehand", "four years"):
            self.assertLess(self.sure(question.format("four weeks"), text.format(other)), same, other)
        self.assertLess(
            self.sure(question.format("a month"), text.format("each month")),
            self.sure(question.format("a month"), text.format("one month")),
        )

    def test_the_subject_asked_about_a_name_must_occur_too(self):
        self.assertLess(
            self.sure("Which shipyard painted Sennick Bay?", ROW),
            self.sure("When was Sennick Bay built?", ROW),
        )

    def test_document_words_match_everyday_words(self):
        question, text = "Has my boss turned it down?", "Whether the line manager refused it."
        synonyms = {"boss": ("line manager", "supervisor"), "turned down": ("refused",)}
        self.assertGreater(self.sure(question, text, synonyms=synonyms), self.sure(question, text))

    def test_a_better_search_score_and_sentence_give_more_confidence(self):
        question = "How many passengers does Sennick Bay carry?"
        weak = self.sure(question, ROW, score=0.3, fit=0.0)
        self.assertLess(weak, self.sure(question, ROW))

    def test_other_languages_and_empty_questions_cause_no_errors(self):
        for question, text in (
            ("年假多少天?", "年假二十七天。"),
            ("?", ""),
            ("Wer ist der Kapitän?", "Kapitän"),
        ):
            with self.subTest(question=question):
                self.assertTrue(0 <= self.sure(question, text) <= 1)

    def test_a_date_is_not_a_telephone_number(self):
        question = Question("What is the phone number for a cab?")
        for heading, has in (('Policy number "2006-01-02"', False), ("Number: 2006 01", True)):
            self.assertEqual(answers(QuotedText(question, ("A cab is paid for.", heading))), has, heading)

    def test_the_only_translated_word_of_several_is_not_the_subject(self):
        asked = {"is_translated": True, "original": "Wie hoch ist der Monatsbeitrag im Verein?"}
        text = ("Dale will match any contribution up to 5%.", "Pension", "")
        one = QuotedText(Question("how much contribution", **asked), text)
        both = QuotedText(Question("how much contribution match", **asked), text)
        self.assertEqual([is_sure(each, 1.5, 8.0) for each in (one, both)], [False, True])


class AnswerTests(SimpleTestCase):
    """Texts that have the words of a question, and something else than it asks for."""

    def answers(self, question, text, heading):
        return answers(QuotedText(Question(question), (text, "Bylaws", heading)))

    def test_a_number_of_another_thing_is_not_a_count(self):
        question = "How many votes does it take to change the bylaws?"
        elected = (
            "If there is more than one (1) candidate, the one with the highest number of votes is elected."
        )
        self.assertFalse(self.answers(question, elected, "Elections"))
        self.assertTrue(self.answers(question, "The bylaws are changed by a vote of two thirds.", "Changes"))
        self.assertTrue(self.answers(question, "A vote of two thirds is needed.", "Change of the bylaws"))

    def test_two_words_in_the_opposite_order_name_another_thing(self):
        question = "Can I get a company car?"
        self.assertFalse(self.answers(question, "Rental car companies offer an upgrade.", "Travel"))
        self.assertTrue(self.answers(question, "A company car is for managers.", "Travel"))
        self.assertTrue(self.answers(question, "Managers get a car of the company.", "Travel"))
        self.assertTrue(self.answers(question, "Who: Managers; Car company: Acme; Since: 2020", "Travel"))
