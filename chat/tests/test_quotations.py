from django.test import SimpleTestCase

from chat.quotations import best_span, quotes
from chat.tests.sources import source

CONTENT = "Leave is planned in March. Staff may carry over\nfive days until 31 March. Ask your manager."


class QuotationTests(SimpleTestCase):
    def test_a_quotation_is_found_word_for_word_whatever_the_white_space(self):
        start, end = best_span("> Staff may carry over five days until 31 March.", CONTENT)
        self.assertEqual(CONTENT[start:end], "Staff may carry over\nfive days until 31 March.")

    def test_a_paraphrase_marks_the_sentence_that_shares_most_words(self):
        start, end = best_span("You can carry over five days of leave, until 31 March", CONTENT)
        self.assertIn("five days until 31 March.", CONTENT[start:end])

    def test_a_statement_about_something_else_marks_nothing(self):
        self.assertIsNone(best_span("The ferry sails at noon on Sundays", CONTENT))

    def test_each_cited_source_gets_its_own_spans(self):
        first, second = (
            source(rank=1, content=CONTENT),
            source(rank=2, label="b.md", content="Boats sail at nine o’clock daily."),
        )
        found = quotes(
            "Five days carry over until 31 March [a.md#x]. Boats sail at nine daily [b.md].", [first, second]
        )
        self.assertEqual(set(found), {1, 2})
