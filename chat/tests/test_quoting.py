"""Answers without a model: what is quoted, and how sure the site says it is."""

import asyncio

from django.test import SimpleTestCase, override_settings

from chat.llm.base import (
    NOTHING_FITS,
    Prompt,
    Text,
)
from chat.llm.quoting import NOTICE, UNSURE, QuotingModel
from chat.requests import EarlierMessage
from chat.tests.sources import source

LEAVE = source(
    label="handbook.pdf#page=3",
    content="Annual leave is taken between 1 January and 31 December. Boots are cleaned weekly.",
)


@override_settings(QUOTING_WORDS_PER_SECOND=1_000_000)
class QuotingTests(SimpleTestCase):
    def answer(self, question, *earlier, sources=(LEAVE,)):
        async def collected():
            turns = [EarlierMessage("user", text) for text in earlier]
            parts = QuotingModel().answer(Prompt(question, turns, list(sources), 0.3))
            return "".join([part.text async for part in parts if isinstance(part, Text)])

        return asyncio.run(collected())

    def test_a_follow_up_is_answered_from_what_it_leans_on(self):
        answer = self.answer("And until when do I use it?", "How much annual leave is there?")
        self.assertIn(
            "> Annual leave is taken between 1 January and 31 December. [handbook.pdf#page=3]", answer
        )

    def test_a_follow_up_leans_on_the_question_that_stood_alone_not_on_other_follow_ups(self):
        earlier = [EarlierMessage("user", text) for text in ("How much leave is there?", "And for crews?")]
        query = asyncio.run(QuotingModel().search_query("What if I was ill?", earlier))
        self.assertEqual(query.text, "How much leave is there? What if I was ill?")

    def test_asking_whether_there_is_something_leans_on_nothing(self):
        earlier = [EarlierMessage("user", "How much leave do I get?")]
        for question, query in (
            ("Is there a company gym?", "Is there a company gym?"),
            ("How do I get there by bus?", "How much leave do I get? How do I get there by bus?"),
        ):
            self.assertEqual(asyncio.run(QuotingModel().search_query(question, earlier)).text, query)

    def test_what_the_last_question_asks_counts_more_than_what_it_leans_on(self):
        self.assertIn("Boots", self.answer("And the boots?", "When is leave taken?").split("> ")[1])

    def test_a_clear_answer_and_a_doubtful_one_are_told_apart(self):
        self.assertIn(NOTICE, self.answer("When is annual leave taken?"))
        self.assertIn(UNSURE, self.answer("How long is the winter discount on boots?"))

    @override_settings(QUOTING_WORDS_PER_SECOND=0)
    def test_an_answer_comes_in_one_piece_unless_a_pace_is_set(self):
        async def texts():
            parts = QuotingModel().answer(Prompt("When is annual leave taken?", [], [LEAVE], 0.3))
            return [part.text async for part in parts if isinstance(part, Text)]

        [text] = asyncio.run(texts())
        self.assertTrue(text.startswith(NOTICE))

    def test_nothing_is_quoted_where_nothing_fits(self):
        self.assertEqual(self.answer("Which quark is heaviest?"), NOTHING_FITS)

    def test_what_a_cited_page_holds_besides_is_asked_about_next(self):
        page, rule = "handbook.pdf#page=3", "Annual leave is taken between 1 January and 31 December."
        sources = [
            source(1, page, rule, heading="4 Leave › 4.1 The rule"),
            source(2, page, "Sick leave is no annual leave.", heading="4 Leave › 4.2 Long-term sickness"),
            source(3, page, "It may be carried over.", heading="4 Leave › 4.1 The rule"),
        ]
        prompt = Prompt("When is annual leave taken?", [], sources, 0.3)
        questions = asyncio.run(QuotingModel().followups(prompt, f"{NOTICE}\n\n> {rule} [{page}]"))
        self.assertEqual(questions, ["What does “A” say about “Long-term sickness”?"])
