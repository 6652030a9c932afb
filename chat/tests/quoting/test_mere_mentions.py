"""Texts that have all words of a question, but say something else about them."""

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.confidence import answers
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.question import Question
from chat.quoting.quoting_model import quote
from chat.tests.sources import source


class MereMentionTests(SimpleTestCase):
    def assert_answers(self, question, *texts):
        for text in texts:
            self.assertTrue(answers(QuotedText(Question(question), (text, "Guide", ""))), text)

    def assert_no_answer(self, question, *texts):
        for text in texts:
            self.assertFalse(answers(QuotedText(Question(question), (text, "Guide", ""))), text)

    def test_mentioning_an_action_is_not_a_permission(self):
        question = "Can I sleep in the boathouse?"
        self.assert_no_answer(question, "Tell the warden when somebody is sleeping in the boathouse.")
        self.assert_answers(
            question,
            "Nobody may sleep in the boathouse.",
            "Sleeping in the boathouse is prohibited.",
            "You can sleep in the boathouse after a race.",
            "Sleep in the boathouse only after a race.",
        )

    def test_the_time_at_which_something_begins_is_not_that_at_which_it_ends(self):
        question = "When does the market end?"
        self.assert_no_answer(question, "The market: 7:00")
        self.assert_answers(
            question, "The market ends at 13:00.", "End of the market: 1 pm", "The market ends: 7:00–13:00"
        )
        self.assert_answers("When does the market begin?", "The market begins: 7:00")

    def test_an_event_before_a_time_is_not_one_within_it(self):
        question = "Wann schließt das Schwimmbad in den Ferien?"
        before = "Zwei Wochen vor den Ferien verkauft das Schwimmbad Karten bis zum Schließen um 20 Uhr."
        self.assert_no_answer(question, before)
        self.assert_answers(question, "In den Ferien schließt das Schwimmbad um 22 Uhr.")
        self.assert_no_answer(
            "When are we paid during the holidays?", "Everybody is paid on Monday before the holidays."
        )

    def test_becoming_something_is_not_answered_by_a_definition(self):
        question = "Wie werde ich Imker?"
        self.assert_no_answer(question, "Imker können durch Beschluss aus dem Verein ausgeschlossen sein.")
        self.assert_answers(question, "Imker wird, wer schriftlich einen Antrag stellt und Bienen hat.")
        question = "How do I become a beekeeper?"
        self.assert_no_answer(question, "Please keep away from beekeepers who work.")
        self.assert_answers(question, "Please apply to the office to become a beekeeper.")

    def test_two_words_far_from_each_other_do_not_name_one_thing(self):
        question = "What is the sick pay?"
        self.assert_no_answer(question, "The firm may be paying dues, reporting sick staff and the like.")
        self.assert_answers(
            question,
            "The sick pay is the whole wage.",
            "The pay of the sick is the wage.",
            "Sick staff get full pay.",
        )

    def test_a_passage_that_answers_comes_before_one_that_only_has_the_words(self):
        other = source(
            1,
            "pool.md#signing",
            "Zwei Wochen vor den Ferien kann man sich im Schwimmbad nur noch am Montag abmelden.",
            heading="Abmelden",
            score=0.86,
        )
        right = source(
            2,
            "pool.md#hours",
            "Das Schwimmbad ist in den Ferien vom 3. August bis zum 20. August geschlossen.",
            heading="Zeiten",
            score=0.8,
        )
        texts = quote(
            Prompt("Wann macht das Schwimmbad in den Ferien zu?", [], [other, right], 0.3, fit=5.0)
        ).texts
        self.assertIn("geschlossen", texts[0])
