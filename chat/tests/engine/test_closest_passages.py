"""The closest passages, quoted without a model if nothing clearly answers."""

import re

from django.test import TestCase

from chat.engine.searching import as_source, search_for
from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote, search_query
from chatsite.accounts.models import User
from ingestion.tests.documents import make_document, principal_of

CAMP = {
    "carers.md": "A carer who comes with you gets a ticket. Write to us with the name of your carer.",
    "hire.md": "Scooters and wheelchairs can be hired. They are delivered to the gate.",
    "trains.md": "The station has steps and no lift. A wheelchair cannot reach the platform.",
    "meals.md": "After each shift you are given a token.\n\nIt is exchanged for a meal in the lounge.",
    "quiet.md": "Loud music ends at midnight. Quiet camping is behind the lake.",
    "dogs.md": "The site does not allow dogs or other animals. Horses stay at the stables.",
}


class ClosestPassagesTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.principal = principal_of(User.objects.create_user("reader"))
        for name, text in CAMP.items():
            make_document(name, [text])

    def asked(self, question):
        """The labels of the search results and of the quotations, and the answer."""
        found = search_for(self.principal, search_query(question, ()), top=5)
        sources = [as_source(rank, passage) for rank, passage in enumerate(found.passages, 1)]
        quoted = quote(Prompt(question, (), sources, 0.0, fit=found.fit, synonyms=found.synonyms))
        labels = [label for text in quoted.texts for label in re.findall(r"\[([^\]]+)\]", text)]
        return [each.label for each in found.passages], labels, quoted

    def test_the_passage_ranked_first_is_among_the_closest(self):
        for question in (
            "can my wheelchair go by train with my helper",
            "who helps in my wheelchair when trains stop",
            "does my carer pay for wheelchair hire",
            "is there dinner for shift helpers",
        ):
            ranked, labels, quoted = self.asked(question)
            self.assertFalse(quoted.is_sure, question)
            self.assertIn(ranked[0], labels, question)

    def test_the_closest_passages_are_quoted_whole(self):
        *_, quoted = self.asked("which dinner is there for a shift")
        self.assertFalse(quoted.is_sure)
        self.assertTrue(
            any("given a token" in text and "exchanged for a meal" in text for text in quoted.texts),
            quoted.texts,
        )

    def test_nothing_is_shown_for_a_subject_that_no_document_names(self):
        for question in ("How do I order stationery?", "what is the boiling point of ethanol"):
            self.assertEqual(self.asked(question)[-1].texts, (), question)
