"""Answers without a model from German and English documents."""

from django.test import TestCase

from chat.llm.chat_model import Prompt
from chat.quoting.quoting_model import quote, search_query
from chat.requests import EarlierMessage
from chat.tests.sources import source
from chatsite.accounts.models import User
from history.tally import UNSURE
from ingestion.indexing.passages import NewPassage
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of

ENGLISH = (
    "You have five paid days after the death of a relative. The office closes at noon on Fridays.",
    "The vehicle deck is fully lashed, open decks are closed, and hot drinks from the kitchen are not sold.",
    "Bow doors are closed and locked before the lines are let go. Opening begins when the vessel is moored.",
    "For journeys above £250 you may ask for an advance of up to 80 per cent of the expected cost.",
    "Meals are refunded up to the limit for the country, the cost of drinks is not.",
)
KITCHEN = NewPassage(
    "k",
    None,
    "Kantine › Küche",
    "Montags schließt sie um 14:15 Uhr. Freitags schließt die Küche um 13:45 Uhr.",
)
PRICES = NewPassage(
    "p", None, "Kantine › Preise", "Das Schnitzel kostet 7,90 €. Die Currywurst kostet 5,20 €."
)
DAYS = (
    "Tag: Montag; Geöffnet: 8–16 Uhr\nTag: Mittwoch; Geöffnet: geschlossen\nTag: Freitag; Geöffnet: 8–12 Uhr"
)
BRANCHES = (
    "Branch: Stanwick; Manager: Olga Penn; Sunday: closed\nBranch: Harwick; Manager: Bob Lane; Sunday: 10–14"
)


class MixedLanguagesTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.principal = principal_of(User.objects.create_user("reader"))
        make_document("handbook.md", ENGLISH)
        make_document("kantine.md", [KITCHEN, PRICES], language="german")
        make_document("zeiten.csv", [DAYS], language="german", title="Öffnungszeiten")
        make_document("branches.csv", [BRANCHES], title="Branch opening hours")

    def asked(self, question, *before):
        earlier = [EarlierMessage("user", each) for each in before]
        query = search_query(question, earlier)
        found = search(self.principal, query.text, context=query.context)
        sources = [
            source(
                rank,
                each.label,
                each.content,
                title=each.title,
                heading=each.heading,
                score=each.score,
                passage_id=each.passage_id,
            )
            for rank, each in enumerate(found.passages, 1)
        ]
        return quote(Prompt(question, earlier, sources, 0.3, fit=found.fit, synonyms=found.synonyms))

    def test_a_german_question_is_answered_in_its_own_words_beside_english_passages(self):
        for question, answer in (
            ("Wann schließt die Küche freitags?", "13:45"),
            ("Ist mittwochs geöffnet?", "| Mittwoch | geschlossen"),
            ("Ist am Mittwoch geöffnet?", "| Mittwoch | geschlossen"),
        ):
            with self.subTest(question):
                quoted = self.asked(question)
                self.assertIn(answer, quoted.texts[0])
                self.assertNotEqual(quoted.notice, UNSURE)

    def test_a_german_question_is_answered_by_an_english_row(self):
        for question in ("Wer leitet die Filiale Stanwick?", "Wer leitet Stanwick?"):
            with self.subTest(question):
                self.assertIn("Olga Penn", self.asked(question).texts[0])

    def test_a_question_about_something_else_is_answered_as_in_a_new_conversation(self):
        question = "Wie teuer ist das Schnitzel?"
        alone = self.asked(question)
        self.assertIn("7,90", alone.texts[0])
        for before in ("Wann schließt die Küche freitags?", "Which rooms have a projector?"):
            with self.subTest(before):
                self.assertIn("7,90", self.asked(question, before).texts[0])
