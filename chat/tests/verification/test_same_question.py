"""Whether two questions ask for the same: the pairs of the benchmark, and pairs that must never match."""

import re
from pathlib import Path

from django.conf import settings
from django.test import SimpleTestCase

from chat.verification.same_question import MAX_CHARACTERS, asks_the_same, beginnings
from ingestion.search.tokens import plain_words

PAIRS = Path(settings.BASE_DIR) / "benchmarks" / "verified_answers"
RECALL = 45  # number of the 66 equivalent pairs that match


class SameQuestionTests(SimpleTestCase):
    def pairs(self, *kinds):
        files = [PAIRS / f"{name}.tsv" for name in ("pairs", "pairs_second")]
        rows = (line.split("\t") for file in files for line in file.read_text("utf-8").splitlines())
        return [(one, other) for kind, one, other in rows if kind in kinds]

    def test_questions_with_another_number_name_or_negation_never_match(self):
        wrong = [pair for pair in self.pairs("number", "name", "not", "other") if asks_the_same(*pair)]
        self.assertEqual(wrong, [])

    def test_many_paraphrases_match(self):
        found = [pair for pair in self.pairs("same") if asks_the_same(*pair)]
        self.assertGreaterEqual(len(found), RECALL)

    def test_what_asks_the_same_contains_the_beginnings_of_the_words(self):
        for one, other in self.pairs("same", "number", "name", "not", "other"):
            for asked, pattern in ((one, other), (other, one), (one, one), (other.upper(), other)):
                if asks_the_same(asked, pattern):
                    said = plain_words(asked).split()
                    for wanted in filter(None, beginnings(pattern).split(" & ")):
                        stems = tuple(re.findall(r"'(\w+)':\*", wanted))
                        self.assertTrue(any(word.startswith(stems) for word in said), (asked, wanted))

    def test_the_beginnings_are_those_of_all_forms_and_synonyms(self):
        self.assertIn("'us':*", beginnings("May I use it?"))
        self.assertIn("'transport':*", beginnings("May I carry it?"))
        self.assertIn(") & (", beginnings("How do I report a lost laptop?"))
        for pattern in ("5?", "Is it C++?", "In welcher Straße?"):
            self.assertEqual(beginnings(pattern), "", pattern)

    def test_matching_is_symmetric_and_reflexive(self):
        for one, other in self.pairs("same", "number", "name", "not", "other"):
            self.assertEqual(asks_the_same(one, other), asks_the_same(other, one), (one, other))
            self.assertTrue(asks_the_same(one, one), one)
        for one, other in (("The fund?", "What is the fund for?"), ("What is the fund for?", "The fund?")):
            self.assertFalse(asks_the_same(one, other), (one, other))

    def test_subject_and_object_must_match(self):
        for one, other in (
            ("How am I evaluated?", "How do I evaluate?"),
            ("Can trainees be supervised?", "Can trainees supervise?"),
            ("Who do I call about noise?", "Who calls about noise?"),
            ("Who reports to me?", "Whom do I report to?"),
            ("Which suppliers do we pay?", "Which suppliers pay us?"),
            ("How do I cancel?", "How do they cancel?"),
            ("Who pays the driver?", "By whom does the driver pay?"),
            ("How does a guest change the password?", "How do I change the password of a guest?"),
            ("Where do I get a key?", "Where do I have a key?"),
        ):
            self.assertFalse(asks_the_same(one, other), (one, other))

    def test_the_passive_of_a_question_matches(self):
        for one, other in (
            ("How do I cancel a booking?", "How is a booking cancelled?"),
            ("How can I export a book as PDF?", "How can a book be exported as PDF?"),
            ("Who approves overtime?", "By whom is overtime approved?"),
            ("Which tools are used?", "Which tools do we use?"),
            ("Wer genehmigt Überstunden?", "Von wem werden Überstunden genehmigt?"),
        ):
            self.assertTrue(asks_the_same(one, other), (one, other))
            self.assertTrue(asks_the_same(other, one), (other, one))

    def test_prepositions_particles_tense_and_degree_count(self):
        for one, other in (
            ("How do I send parcels to customers?", "How do I send parcels with customers?"),
            ("Can I work for a customer?", "Can I work with a customer?"),
            ("What is the fund for?", "What is the fund?"),
            ("Wie schalte ich die Heizung ein?", "Wie schalte ich die Heizung aus?"),
            ("Wann wurde das Büro renoviert?", "Wann wird das Büro renoviert?"),
            ("Who will be the director?", "Who is the director?"),
            ("Which of the two is cheaper?", "Which of the two is cheap?"),
            ("How long can I stay?", "How long do I stay?"),
            ("What is the fax number?", "What is the number of faxes?"),
        ):
            self.assertFalse(asks_the_same(one, other), (one, other))

    def test_courtesy_case_and_punctuation_are_ignored(self):
        for asked in ("WHO APPROVES OVERTIME", "Hello, can you please tell me who approves overtime??"):
            self.assertTrue(asks_the_same(asked, "Who approves overtime?"), asked)

    def test_the_parts_of_what_one_thing_is_called_may_be_in_another_order(self):
        for one, other in (
            ("What is the bicycle mileage rate?", "What is the mileage rate for bicycles?"),
            ("How much is the bicycle mileage rate?", "What is the mileage rate for a bicycle?"),
            ("bicycle mileage rate", "What is the mileage rate for bicycles?"),
            ("What is the sick leave report deadline?", "What is the report deadline for sick leave?"),
            ("Wie hoch ist der Fahrrad Kilometersatz?", "Wie hoch ist der Kilometersatz für das Fahrrad?"),
        ):
            self.assertTrue(asks_the_same(one, other), (one, other))
            self.assertTrue(asks_the_same(other, one), (other, one))

    def test_a_time_or_place_may_be_put_in_front_of_the_question(self):
        for one, other in (
            ("On Sundays, when does the last ferry leave?", "When does the last ferry leave on Sundays?"),
            ("In Hamburg, who approves overtime?", "Who approves overtime in Hamburg?"),
            ("Im Sommer, wann öffnet die Kantine?", "Wann öffnet die Kantine im Sommer?"),
        ):
            self.assertTrue(asks_the_same(one, other), (one, other))
            self.assertTrue(asks_the_same(other, one), (other, one))

    def test_another_order_with_another_meaning_does_not_match(self):
        for one, other in (
            ("What is the bicycle mileage rate?", "What is the mileage rate for cars?"),
            ("What is the bicycle mileage rate?", "What is the mileage rate without bicycles?"),
            ("What is the bicycle mileage rate?", "What is not the mileage rate for bicycles?"),
            ("What is the bicycle rate of 2026?", "What is the rate of 2025 for bicycles?"),
            ("What was the bicycle mileage rate?", "What is the mileage rate for bicycles?"),
            ("What is the company car insurance?", "What is the car insurance company?"),
            ("What is the company car insurance?", "What is the car company insurance?"),
            ("What is the price list of the canteen?", "What is the list price of the canteen?"),
            ("What is the price for cars with bicycles?", "What is the price for bicycles with cars?"),
            ("What is the fee for guests of members?", "What is the fee for members of guests?"),
            (
                "What is the fare from Carrow Quay to Port Ellery?",
                "What is the fare from Port Ellery to Carrow Quay?",
            ),
            (
                "To Port Ellery, when does the ferry leave from Carrow Quay?",
                "When does the ferry leave from Port Ellery to Carrow Quay?",
            ),
            ("On Sundays, when does the ferry leave?", "When does the ferry not leave on Sundays?"),
            ("On Sundays, when does the ferry leave?", "When does the ferry leave on Mondays?"),
            ("In which building is the office?", "Which office is in the building?"),
            ("Can managers in finance see employees?", "Can managers see employees in finance?"),
            ("What is the price change?", "What is the change of the price that is planned?"),
        ):
            self.assertFalse(asks_the_same(one, other), (one, other))
            self.assertFalse(asks_the_same(other, one), (other, one))

    def test_symbols_must_match(self):
        self.assertFalse(asks_the_same("Who teaches C++?", "Who teaches C#?"))

    def test_empty_and_overlong_questions_never_match(self):
        for text in ("", "?", "a" * (MAX_CHARACTERS + 1)):
            self.assertFalse(asks_the_same(text, text))
