"""Which questions consist of several, and how these are searched and answered one by one."""

import asyncio

from django.test import SimpleTestCase, TestCase

from chat.engine.searching import as_source, search_for
from chat.llm import Prompt
from chat.quoting.questions.question_parts import parts_of
from chat.quoting.quoted_answer import OTHERS
from chat.quoting.quoting_model import QuotingModel, quote, search_query
from chat.requests import EarlierMessage
from chatsite.accounts.principal import Principal
from ingestion.tests.factories import make_document, make_user

SEVERAL = {
    "How many days of leave do I get, and can I carry them over?": [
        "How many days of leave do I get",
        "can I carry them over?",
    ],
    "How long is probation? And how much notice must I give?": [
        "How long is probation?",
        "And how much notice must I give?",
    ],
    "I am ill. Who must I call and when do I need a certificate?": [
        "I am ill. Who must I call",
        "when do I need a certificate?",
    ],
    "Wie viele Tage Urlaub habe ich und kann ich sie übertragen?": [
        "Wie viele Tage Urlaub habe ich",
        "kann ich sie übertragen?",
    ],
    "Combien de jours ai-je, et puis-je les reporter ?": ["Combien de jours ai-je", "puis-je les reporter ?"],
    "¿Cuántos días tengo y cuándo puedo pedirlos?": ["¿Cuántos días tengo", "cuándo puedo pedirlos?"],
}
ONE = (
    "What are the rules for staff who travel and have a private car?",
    "Who decides, and when?",
    "What is allowed and what?",
    "What do I do if I am ill and can prove it?",
    "How are health and safety organised?",
    "Leave and pay",
    "What? Why? How? When? Where?",
    "A table and how it is read",
    "How long is it and how wide and how high and how heavy is the box?",
    f"How many {'very ' * 100}long days are there, and when do they begin?",
    "",
)


class PartsTests(SimpleTestCase):
    def test_several_questions_are_separated(self):
        for question, parts in SEVERAL.items():
            self.assertEqual(list(parts_of(question)), parts)

    def test_one_question_stays_whole(self):
        for question in ONE:
            self.assertEqual(parts_of(question), (question,))

    def test_a_part_is_searched_for_with_the_part_that_it_depends_on(self):
        query = search_query("How many days of leave do I get, and can I carry them over?", ())
        self.assertEqual(query.text, "How many days of leave do I get, and can I carry them over?")
        first, second = query.parts
        self.assertEqual(first.text, "How many days of leave do I get")
        self.assertEqual(second.text, "How many days of leave do I get can I carry them over?")
        self.assertEqual(search_query("How many days of leave do I get?", ()).parts, ())

    def test_a_follow_up_of_two_parts_depends_on_the_conversation(self):
        earlier = [EarlierMessage("user", "How much parental leave is there?")]
        query = search_query("And who decides on it, and when is it paid?", earlier)
        self.assertEqual(
            [part.text.startswith("How much parental leave") for part in query.parts], [True, True]
        )


LEAVE = "Full-time staff have 27 days of annual leave in a year."
CARRIED = "Up to five days can be carried over until the end of March."
CAR = "The mileage rate for a private car is 45p a mile."
QUESTION = "How many days of annual leave do I have, and what is the mileage rate for a private car?"


class AnswerTests(TestCase):
    def setUp(self):
        user = make_user("ann")
        self.principal = Principal(user.pk, "command")
        make_document("leave.md", [LEAVE, "Leave is asked for in the portal.", CARRIED], everyone=True)
        make_document("travel.md", [CAR, "Tickets are booked by the office."], everyone=True)

    def answer(self, question):
        found = search_for(self.principal, search_query(question, ()))
        sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, start=1)]
        return found, quote(Prompt(question, (), sources, 0.0, fit=found.fit, synonyms=found.synonyms))

    def test_each_part_gets_its_passage_and_its_quotation(self):
        found, quoted = self.answer(QUESTION)
        contents = [passage.content for passage in found.passages]
        self.assertEqual(contents[:2], [LEAVE, CAR])
        self.assertEqual(len(contents), len({passage.passage_id for passage in found.passages}))
        self.assertEqual(len(contents), min(5, len(contents)))
        self.assertTrue(quoted.is_sure)
        self.assertIn("27 days", quoted.texts[0])
        self.assertIn("45p", quoted.texts[1])

    def test_a_part_that_nothing_answers_makes_the_answer_unsure(self):
        question = "How many days of annual leave do I have, and who painted the ceiling of the chapel?"
        found, quoted = self.answer(question)
        self.assertFalse(found.sure and quoted.is_sure)
        self.assertIn("27 days", " ".join(quoted.texts))

    def test_closest_passages_of_one_part_come_after_answers_of_the_others(self):
        question = "How many days of annual leave do I have, and who changes tickets for trains?"
        _, quoted = self.answer(question)
        self.assertEqual((quoted.is_sure, quoted.is_likely), (False, True))
        self.assertIn("27 days", quoted.texts[0])
        self.assertEqual(quoted.texts[1], OTHERS)
        self.assertIn("Tickets are booked", " ".join(quoted.texts[2:]))

    def test_nothing_is_found_where_no_part_finds_anything(self):
        question = "Who painted the ceiling of the chapel, and which poet wrote about volcanoes?"
        found, quoted = self.answer(question)
        self.assertEqual((found.passages, quoted.texts), ((), ()))

    def test_a_german_question_is_answered_from_an_english_document(self):
        _, quoted = self.answer("Wie viele Tage Urlaub habe ich im Jahr?")
        self.assertIn("27 days", quoted.texts[0])

    def test_the_model_searches_by_its_parts(self):
        self.assertEqual(len(asyncio.run(QuotingModel().search_query(QUESTION, ())).parts), 2)
