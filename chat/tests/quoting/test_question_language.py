"""Passages in the language of the question come before those in another one."""

from dataclasses import replace

from django.test import SimpleTestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote
from chat.tests.sources import source

ENGLISH = [
    source(
        rank,
        f"staff-{rank}.md#pay",
        "Your fees are paid by the office for the months that you were away, and you will be told when.",
        heading="Pay",
        score=score,
    )
    for rank, score in ((2, 0.45), (3, 0.4), (4, 0.35))
]
GERMAN = source(
    1,
    "verein.md#beitrag",
    "Wer seit drei Monaten keine Beiträge gezahlt hat, wird vom Vorstand aus dem Verein ausgeschlossen.",
    heading="Beitrag",
    score=1.0,
)
QUESTION = "Ich habe seit Monaten keine Beiträge gezahlt. Werde ich ausgeschlossen?"


class QuestionLanguageTests(SimpleTestCase):
    def quoted(self, question, *sources, **values):
        return quote(Prompt(question, [], list(sources), 0.3, fit=1.5, **values))

    def test_passages_in_another_language_are_left_out_beside_good_ones_in_its_own(self):
        texts = "\n".join(self.quoted(QUESTION, GERMAN, *ENGLISH).texts)
        self.assertIn("aus dem Verein ausgeschlossen", texts)
        self.assertNotIn("Your fees", texts)

    def test_a_poor_passage_in_its_own_language_does_not_hide_the_others(self):
        poor = source(2, "verein.md#ort", "Der Verein hat seinen Sitz in der Stadt.", score=0.3)
        better = source(1, "staff.md#pay", ENGLISH[0].content, heading="Pay", score=1.0)
        texts = "\n".join(self.quoted("Wann werden meine Gebühren bezahlt?", better, poor).texts)
        self.assertIn("Your fees", texts)

    def test_a_question_in_an_unclear_language_is_answered_from_all(self):
        fees = replace(ENGLISH[0], score=0.9)
        texts = "\n".join(self.quoted("Beiträge Monaten fees", GERMAN, fees).texts)
        self.assertIn("Your fees", texts)

    def test_passages_of_chosen_documents_are_all_used(self):
        texts = "\n".join(self.quoted(QUESTION, GERMAN, *ENGLISH, narrowed=True).texts)
        self.assertIn("aus dem Verein ausgeschlossen", texts)

    def test_the_object_of_a_german_question_may_be_part_of_a_compound(self):
        rule = source(
            1,
            "verein.md#tiere",
            "Vor der Aufnahme ist der Nachweis eines Impfschutzes gegen Tollwut vorzulegen.",
            heading="Tiere",
            score=0.9,
        )
        question = "Welche Impfung muss ich nachweisen?"
        self.assertIn("Tollwut", "\n".join(self.quoted(question, rule).texts))
        self.assertFalse(quote(Prompt(question, [], [rule], 0.3, fit=0.4)).texts)
