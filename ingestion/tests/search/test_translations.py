"""German questions find English documents, and English ones German documents, by a list of words."""

from dataclasses import fields

from django.test import SimpleTestCase, TestCase

from ingestion.search.retrieval import FoundPassage, SearchResult, _is_better_in_english, search
from ingestion.search.rough_stems import stem
from ingestion.search.stopwords import without_question_words
from ingestion.search.translations import (
    in_english,
    language_of,
    question_in_english,
    stems_of_question,
    translations_of,
    translations_of_form,
    without_grammar,
)
from ingestion.tests.documents import make_document, principal_of
from ingestion.tests.factories import make_user

LEAVE = "Full-time staff have 27 days of annual leave in a year."
NOTICE = "During probation the contract can be ended with a notice of one week."
OTHER = [
    "The ferry to the island sails at nine.",
    "Invoices are kept for ten years in the archive.",
    "The canteen is open from eleven to two.",
]


class ChoiceTests(SimpleTestCase):
    """The result of the German question, or that of its translation."""

    def result(self, language, fit):
        values = dict.fromkeys((each.name for each in fields(FoundPassage)), "")
        return SearchResult((FoundPassage(**{**values, "language": language}),), "", 9, fit=fit)

    def test_english_passages_that_fit_much_better_replace_german_ones(self):
        """Each case is (fit in German, fit in English, whether the English result is better)."""
        for german, english, is_better in ((1.3, 8.0, True), (4.4, 8.0, False), (1.3, 4.0, False)):
            found, again = self.result("german", german), self.result("english", english)
            self.assertEqual(_is_better_in_english(again, found), is_better, (german, english))
        self.assertFalse(_is_better_in_english(self.result("german", 8.0), self.result("german", 1.3)))

    def test_a_translation_replaces_english_passages_and_nothing(self):
        english, nothing = self.result("english", 1.3), SearchResult((), "", 9)
        self.assertTrue(_is_better_in_english(english, self.result("english", 4.0)))
        self.assertTrue(_is_better_in_english(english, nothing))
        self.assertFalse(_is_better_in_english(nothing, english))


class WordsTests(SimpleTestCase):
    def test_the_list_is_read_in_both_directions(self):
        self.assertIn("leave", translations_of("urlaub"))
        self.assertIn("urlaub", translations_of("leave"))
        self.assertEqual(translations_of("quetzalcoatlus"), ())

    def test_a_superlative_is_translated(self):
        self.assertEqual(question_in_english("Welches Schiff nimmt die meisten Autos mit?"), "ship most car")
        self.assertEqual(question_in_english("Welcher Raum hat die wenigsten Plätze?"), "room fewest seat")
        self.assertIn("dearest", question_in_english("Welche Fahrkarte ist die teuerste?"))

    def test_similar_words_are_told_apart(self):
        self.assertEqual(question_in_english("Wie alt müssen Mitglieder sein?"), "old member")
        self.assertEqual(question_in_english("Welches ist das älteste Schiff?"), "oldest ship")
        self.assertEqual(question_in_english("Wie lange darf ich das Buch behalten?"), "how long book keep")
        self.assertEqual(question_in_english("Wie kann ich einen Raum buchen?"), "room booking")

    def test_how_many_is_translated_in_every_case_of_german(self):
        asked = "Nach wie vielen Versuchen wird das Konto gesperrt?"
        self.assertEqual(question_in_english(asked, {stem("locked")}), "how many attempt account locked")
        self.assertEqual(" ".join(without_question_words(asked).split()), asked.replace("wie vielen ", ""))

    def test_other_forms_and_compounds_are_translated(self):
        self.assertIn("stolen", translations_of_form("gestohlenen"))
        self.assertIn("hotel", translations_of_form("hotelzimmern"))
        self.assertLessEqual({"lost", "property"}, {*" ".join(translations_of("fundbüro")).split()})
        # a compound is translated by its last part, or by the first if the last is too general
        self.assertEqual(translations_of_form("personalbericht"), translations_of("bericht"))
        self.assertIn("sick", translations_of_form("krankheitstage"))
        self.assertEqual(translations_of_form("quetzalcoatlus"), ())
        self.assertEqual(translations_of_form("personal" * 100_000), ())

    def test_the_language_of_a_question_is_detected_if_it_is_clear(self):
        for question in ("Wie viele Tage Urlaub habe ich?", "Was darf ich mitnehmen?", "Wer ist mein Chef?"):
            self.assertEqual(language_of(question), "german")
        for question in ("How many days of leave do I get?", "Who is the man in the bin?"):
            self.assertEqual(language_of(question), "english")
        for question in (
            "Die Hard",
            "¿Cuántos días tengo?",
            "Combien de jours de congé ai-je?",
            "Urlaub",
            "",
        ):
            self.assertEqual(language_of(question), "")

    def test_the_subject_of_a_question_is_translated_into_english(self):
        self.assertEqual(without_grammar(["urlaub", "habe", "ich"], "german"), ["urlaub"])
        for question in ("Wo sehe ich meinen Urlaub?", "Was bleibt von meinem Urlaub?"):
            self.assertEqual(stems_of_question(question), {"urlaub"})
        self.assertEqual(without_grammar(["days", "of", "leave"], "english"), ["days", "leave"])
        self.assertEqual(without_grammar(["ich"], "german"), ["ich"])
        self.assertEqual(without_grammar(["ich"], ""), ["ich"])
        self.assertEqual(in_english(["urlaub", "ferien", "zebra"]), ["leave"])

    def test_only_the_beginning_of_a_very_long_question_is_translated(self):
        words = ["urlaub", *(f"krankheitstage{number}" for number in range(100_000))]
        self.assertEqual(in_english(words)[0], "leave")
        self.assertLess(len(question_in_english(f"Was ist {' '.join(words)}?").split()), 200)

    def test_a_german_question_is_translated_into_english_words(self):
        for question, words in (
            ("Wie viele Tage Urlaub habe ich im Jahr?", "how many days leave do year"),
            ("Wie viele Urlaubstage bekommen Partner?", "how many days annual leave do partner"),
            ("Wer genehmigt meinen Urlaub auf der Aurora?", "who approve leave aurora"),
            ("Wie viel Kilometergeld bekomme ich?", "how much mileage do"),
            ("Wann bekomme ich mein Gehalt?", "when get pay"),
            ("Wann ist Zahltag?", "when pay day"),
            ("Ab wann brauche ich eine Krankmeldung?", "when need medical certificate"),
            ("Wo ist der Notausgang?", "where is exit"),
            ("How many days?", ""),
        ):
            self.assertEqual(question_in_english(question), words)

    def test_of_several_translations_the_one_in_the_passages_is_used(self):
        question = "Wie hoch ist das Kilometergeld?"
        self.assertEqual(question_in_english(question), "how much mileage")
        self.assertEqual(question_in_english(question, {stem("miles")}), "how much mile")
        held = {stem("pay"), stem("salary")}
        self.assertEqual(question_in_english("Wann wird das Gehalt gezahlt?", held), "when salary paid")

    def test_words_without_a_translation_that_are_not_names_are_left_out(self):
        self.assertEqual(question_in_english("Wie melde ich einen verlorenen Laptop?"), "report lost laptop")
        self.assertEqual(
            question_in_english("Wann wird Auroras Kilometergeld säumig?"), "when auroras mileage"
        )
        self.assertEqual(question_in_english("Kilometergeld"), "mileage")


class SearchTests(TestCase):
    def setUp(self):
        self.principal = principal_of(make_user("ann"))

    def first(self, question):
        found = search(self.principal, question).passages
        return found[0].content if found else None

    def test_a_german_question_finds_an_english_document(self):
        make_document("handbook.txt", [LEAVE, NOTICE, *OTHER], language="english")
        self.assertEqual(self.first("Wie viele Tage Urlaub habe ich im Jahr?"), LEAVE)
        self.assertEqual(self.first("Welche Kündigungsfrist gilt in der Probezeit?"), NOTICE)

    def test_an_english_question_finds_a_german_document(self):
        text = "Der Urlaub beträgt 30 Tage im Jahr."
        texts = [text, "Die Kantine öffnet um elf.", "Rechnungen werden zehn Jahre aufbewahrt."]
        make_document("handbuch.txt", texts, language="german")
        self.assertEqual(self.first("How many days of leave are there in a year?"), text)

    def test_a_german_question_prefers_a_german_document(self):
        make_document("handbook.txt", [LEAVE, *OTHER], language="english")
        text = "Der Urlaub beträgt 30 Tage im Jahr."
        make_document("handbuch.txt", [text], language="german")
        self.assertEqual(self.first("Wie viele Tage Urlaub habe ich im Jahr?"), text)

    def test_a_german_question_about_something_else_finds_nothing(self):
        make_document("handbook.txt", [LEAVE, NOTICE, *OTHER], language="english")
        self.assertIsNone(self.first("Wer hat die Decke der Kapelle gemalt?"))
