"""Questions for a definition are answered by the definition."""

from django.test import SimpleTestCase, TestCase

from ingestion.search import retrieval
from ingestion.search.definitions import defines
from ingestion.tests.factories import command_principal, make_document, make_user


class DefinitionTests(SimpleTestCase):
    def test_definitions_are_distinguished_from_other_sentences_with_the_same_words(self):
        for question, heading, content in (
            ("What is a covered work?", "", "A “covered work” means the program or a work based on it."),
            ("What does propagate mean?", "", 'To "propagate" a work means to do anything with it.'),
            (
                "What is an aggregate?",
                "",
                'Such a compilation is called an "aggregate" if nothing limits it.',
            ),
            ("What is /srv used for?", "", "/srv contains data which is served by this system."),
            ("What is the /run directory for?", "3.15 /run", "This directory contains data of this start."),
        ):
            self.assertTrue(defines(question, heading, content), question)
        for question, heading, content in (
            ("What is a covered work?", "", "If you convey a covered work, you offer its source."),
            ("Is this a covered work?", "", "A “covered work” means the program."),
            ("What is /srv used for?", "", "The names below /srv are not specified here."),
        ):
            self.assertFalse(defines(question, heading, content), question)


class SearchTests(TestCase):
    def test_the_passage_that_defines_comes_first(self):
        texts = [f"If covered work number {number} is a covered work, ask." for number in range(6)]
        make_document("a.md", [*texts, "A “covered work” means the program."], everyone=True)
        found = retrieval.search(command_principal(make_user()), "What is a covered work?")
        self.assertIn("means", found.passages[0].content)
