"""Which files a question without a model is answered from, each by itself."""

from django.test import SimpleTestCase

from chat.quoting.questions.asked_files import asked_files
from chat.tests.sources import source

SOURCES = [
    source(1, "visitor-policy-2025.md#parking", title="Visitor policy 2025"),
    source(2, "canteen.md", title="Canteen"),
    source(3, "visitor-policy-2026.md#parking", title="Visitor policy 2026"),
]
POLICIES = ("visitor-policy-2025.md", "visitor-policy-2026.md")


class AskedFilesTests(SimpleTestCase):
    def test_files_are_named_by_their_number_and_kind_or_by_their_names(self):
        for question, rest in (
            (
                "What do the two visitor policies say about parking?",
                "What do visitor say about parking?",
            ),
            ("What do both of the visitor policies say?", "What do visitor say?"),
            ("visitor-policy-2025 or visitor-policy-2026.md: is parking free?", "or is parking free?"),
        ):
            asked = asked_files(question, SOURCES, chosen=False)
            self.assertEqual((asked.files, asked.are_named), (POLICIES, True), question)
            self.assertEqual(asked.question.split(), rest.split())

    def test_if_the_words_match_no_two_files_all_files_are_meant(self):
        for question in ("What do the three files say?", "Was sagen die beiden Dateien?"):
            self.assertEqual(len(asked_files(question, SOURCES, chosen=False).files), 3)

    def test_both_followed_by_something_else_names_no_files(self):
        for question in ("Do both parents get leave?", "Is it open on the two days?", "both"):
            asked = asked_files(question, SOURCES[:2], chosen=False)
            self.assertEqual((asked.files, asked.question), ((), question))

    def test_chosen_files_and_editions_of_one_document_are_compared(self):
        self.assertEqual(len(asked_files("Is it free?", SOURCES[:2], chosen=True).files), 2)
        asked = asked_files("Is it free?", SOURCES, chosen=False)
        self.assertEqual((asked.files, asked.are_named), (POLICIES, False))
