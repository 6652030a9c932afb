"""The order of passages, the number of passages of one page, and the bound for finding nothing."""

from unittest.mock import patch

import numpy as np
from django.test import SimpleTestCase, TestCase

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.access.lists import Audience
from ingestion.glossary.lookup import Lookup
from ingestion.indexing.passages import NewPassage
from ingestion.models import EmbeddingSpace
from ingestion.search.ranking.fusion import (
    CLOSE,
    CLOSE_SENTENCES,
    COMBINED,
    Candidate,
    VectorTrust,
    rank,
    settle,
)
from ingestion.search.ranking.rerank import RerankScores
from ingestion.search.retrieval import BUILT_IN_TRUST, FOLDER_TRUST, search, trust_of
from ingestion.tests.documents import make_document, principal_of

OTHERS = [f"Deck {number} was painted by the crew." for number in range(12)]
ENGLISH = VectorTrust(weight=0.4, languages=frozenset({"english"}))
COMPARED = VectorTrust(weight=0.4, languages=frozenset({"english"}), close=CLOSE)


class WordTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.reader = principal_of(User.objects.create_user("reader"))
        make_document("others.txt", OTHERS)

    def found(self, question, **options):
        return [passage.content for passage in search(self.reader, question, mode="text", **options).passages]

    def test_each_repetition_of_a_word_adds_less_to_the_score(self):
        scores = {}
        for times in (1, 2, 8):
            text = f"Rope {'anchor ' * times}{'filler ' * (8 - times)}"
            make_document(f"{times}.txt", [text.strip()])
        for passage in search(self.reader, "anchor", mode="text").passages:
            scores[passage.content.count("anchor")] = passage.text_score
        self.assertLess(scores[1], scores[2])
        self.assertLess(scores[2], scores[8])
        self.assertLess((scores[8] - scores[2]) / 6, scores[2] - scores[1])

    def test_of_two_passages_with_one_occurrence_the_shorter_comes_first(self):
        make_document("long.txt", ["The anchor lies beside " + " ".join(f"thing{n}" for n in range(60))])
        make_document("short.txt", ["The anchor lies here."])
        self.assertEqual(self.found("anchor")[0], "The anchor lies here.")

    def test_lengths_are_relative_to_all_readable_passages(self):
        make_document("long.txt", ["The anchor lies beside " + " ".join(f"thing{n}" for n in range(60))])
        alone = search(self.reader, "anchor", mode="text").passages[0].text_score
        make_document("longer.txt", [" ".join(f"stone{n}" for n in range(200))])
        self.assertGreater(search(self.reader, "anchor", mode="text").passages[0].text_score, 1.1 * alone)

    def test_unreadable_passages_do_not_affect_relative_lengths(self):
        make_document("long.txt", ["The anchor lies beside " + " ".join(f"thing{n}" for n in range(60))])
        before = search(self.reader, "anchor", mode="text").passages[0].text_score
        owner = User.objects.create_user("owner")
        texts = [" ".join(f"stone{n}" for n in range(200))]
        make_document("private.txt", texts, owner=owner, audience=Audience())
        self.assertEqual(search(self.reader, "anchor", mode="text").passages[0].text_score, before)

    def test_a_word_repeated_in_the_question_counts_twice(self):
        for name in ("anchor", "rope"):
            make_document(f"{name}.txt", [f"About one {name} here."])
        self.assertIn("rope", self.found("anchor and rope, which rope?")[0])
        self.assertIn("anchor", self.found("rope and anchor, which anchor?")[0])

    def test_a_word_in_the_title_counts_more_than_one_in_the_text(self):
        make_document("a.txt", ["Here are some words of the anchor."], title="Notes of today")
        make_document("b.txt", ["Here are some words of today too."], title="Notes of anchor")
        self.assertIn("too", self.found("anchor")[0])


class PlaceTests(TestCase):
    def test_other_pages_come_before_a_second_passage_of_the_same_page(self):
        passages = [
            NewPassage("page=1", 1, "", "The ferry leaves at nine, says the ferry plan."),
            NewPassage("page=1", 1, "", "The ferry to the ferry island leaves at ten."),
            NewPassage("page=2", 2, "", "On Sundays no boat but one ferry runs, as others have told."),
        ]
        make_document("plan.pdf", passages)
        reader = principal_of(User.objects.create_user("reader"))
        for top, pages in ((2, {1, 2}), (3, {1, 2})):
            found = search(reader, "ferry", top=top).passages
            self.assertEqual((len(found), {passage.page for passage in found[:2]}), (top, pages))

    def test_a_second_passage_of_the_best_section_comes_before_other_pages(self):
        passages = [
            NewPassage("page=1", 1, "Ferry plan", "The ferry leaves at nine, says the ferry plan."),
            NewPassage("page=1", 1, "Ferry plan", "The ferry to the ferry island leaves at ten."),
            NewPassage("page=1", 1, "Ferry fares", "The ferry to the ferry island costs ten."),
            NewPassage("page=2", 2, "Sundays", "On Sundays no boat but one ferry runs, as others have told."),
        ]
        make_document("plan.pdf", passages)
        reader = principal_of(User.objects.create_user("reader"))
        found = search(reader, "ferry plan", top=3).passages
        self.assertEqual([passage.heading for passage in found], ["Ferry plan", "Ferry plan", "Sundays"])

    def test_in_a_text_without_pages_each_passage_is_a_separate_place(self):
        make_document("plan.txt", ["The ferry leaves.", "The ferry arrives.", "The ferry waits."])
        reader = principal_of(User.objects.create_user("reader"))
        self.assertEqual(len(search(reader, "ferry", top=3).passages), 3)


class BoundTests(SimpleTestCase):
    def ranked(self, coverage, similarity, readable):
        candidate = Candidate(1, "english", 1.0, coverage, similarity)
        return rank([candidate], "hybrid", ENGLISH, readable)

    def test_with_more_passages_the_best_one_must_match_more_of_the_question(self):
        bounds = [COMBINED.for_answer(readable) for readable in (10, 300, 2_000, 13_000, 100_000)]
        self.assertEqual(bounds[0], bounds[1])
        self.assertEqual(bounds[1:], sorted(set(bounds[1:])))
        met = (bounds[2] + bounds[3]) / 2
        self.assertEqual(len(self.ranked(met / 2, met / 2, 2_000).passages), 1)
        self.assertEqual(self.ranked(met / 2, met / 2, 13_000).passages, [])

    def test_between_two_bounds_the_search_is_unsure(self):
        for readable in (300, 2_000, 13_000, 100_000):
            low, high = COMBINED.for_answer(readable), COMBINED.for_sure(readable)
            self.assertLess(low, high)
            self.assertLess(self.ranked(low, 0.01, readable).fit, 1)
            self.assertGreaterEqual(self.ranked(high, 0.01, readable).fit, 1)

    def settled(self, met, closest, readable=300, length=3, language="english", nearest=0.0):
        passage = Candidate(1, language, 1.0, met - nearest, nearest)
        ranking = rank([passage], "hybrid", COMPARED, readable)
        near = RerankScores(np.array([closest]), np.zeros(1), closest, closest)
        return settle(ranking, COMPARED, near, length, readable)

    def test_similar_words_can_compensate_for_missing_ones(self):
        self.assertEqual(self.settled(0.5, 0.2).passages, [])
        self.assertEqual(len(self.settled(0.7, 0.6).passages), 1)
        self.assertLess(self.settled(0.7, 0.6).fit, 1)
        self.assertGreaterEqual(self.settled(1.0, 0.8).fit, 1)
        self.assertLess(self.settled(1.0, 0.8, readable=13_000).fit, 1)

    def test_of_two_equal_matches_the_one_with_the_more_similar_vector_is_surer(self):
        self.assertLess(self.settled(0.9, 0.6).fit, 1)
        self.assertGreaterEqual(self.settled(0.9, 0.6, nearest=0.4).fit, 1)

    def test_the_passage_shown_first_counts_more_than_any_other(self):
        ranking = rank([Candidate(1, "english", 1.0, 0.6, 0.2)], "hybrid", COMPARED, 300)

        def fit(first):
            return settle(ranking, COMPARED, RerankScores(np.ones(1), np.zeros(1), 0.9, first), 4, 300).fit

        self.assertLess(fit(0.3), 1)
        self.assertGreaterEqual(fit(0.9), 1)

    def test_a_long_question_needs_a_smaller_match_than_a_short_one(self):
        self.assertLess(self.settled(0.9, 0.7, length=2).fit, 1)
        self.assertGreaterEqual(self.settled(0.9, 0.7, length=12).fit, 1)

    def test_vectors_of_an_english_model_from_a_folder_count_only_in_english(self):
        def trust(name, is_english_only, query="leave"):
            with patch("ingestion.search.retrieval.is_english_only", return_value=is_english_only):
                return trust_of(EmbeddingSpace(name=name, dimensions=4), query)

        english, every = trust("folder:english", True), trust("folder:every", False)
        self.assertEqual([english.covers(each) for each in ("english", "german")], [True, False])
        self.assertEqual([every.covers(each) for each in ("english", "german")], [True, True])
        self.assertFalse(trust("folder:english", True, "年次休暇").covers("english"))
        self.assertTrue(trust("folder:every", False, "年次休暇").covers("english"))
        self.assertEqual(
            [english.close, every.close, trust("served", False).close],
            [CLOSE_SENTENCES, CLOSE_SENTENCES, None],
        )

    def test_similarities_of_a_sentence_model_weigh_more_than_those_of_the_built_in_one(self):
        near = RerankScores(np.ones(1), np.zeros(1), 0.5, 0.5)

        def fit(trust, likeness):
            ranking = rank([Candidate(1, "english", 1.0, 0.6, likeness)], "hybrid", trust, 300)
            return settle(ranking, trust, near, 6, 300).fit

        self.assertLess(fit(FOLDER_TRUST, 0.25), 1)
        self.assertGreaterEqual(fit(FOLDER_TRUST, 0.6), 1)
        self.assertGreater(
            fit(FOLDER_TRUST, 0.6) - fit(FOLDER_TRUST, 0.25),
            fit(BUILT_IN_TRUST, 0.6) - fit(BUILT_IN_TRUST, 0.25),
        )

    def test_if_vectors_do_not_count_only_the_words_decide(self):
        self.assertEqual(self.settled(0.1, 1.0, language="german").passages, [])
        self.assertGreaterEqual(self.settled(0.9, 0.0, language="german").fit, 1)


class OfficeWordsTests(TestCase):
    def added(self, question):
        lookup = Lookup(Principal(0, "session"), question)
        found = lookup.expansion(rows("known_words", lookup.parameters)).everyday
        return [phrase for phrases in found.values() for phrase in phrases]

    def test_everyday_words_add_those_of_documents(self):
        for question, word in (
            ("Does the company pay for my glasses?", "eyesight"),
            ("Can I get days off?", "leave"),
            ("My boss has turned down my request.", "refused"),
            ("Bekomme ich eine Brille bezahlt?", "bildschirmbrille"),
            ("Wem gebe ich den gelben Schein oder das Attest?", "arbeitsunfähigkeitsbescheinigung"),
        ):
            self.assertIn(word, self.added(question), question)

    def test_the_longest_entry_applies_and_no_word_of_the_question_is_added(self):
        self.assertEqual(self.added("annual leave"), [])
        self.assertNotIn("fire", self.added("Who was let go after the fire?"))

    def test_a_passage_is_found_by_the_words_of_its_author(self):
        reader = principal_of(User.objects.create_user("reader"))
        make_document("others.txt", OTHERS)
        text = "Requests for remission are refused by the line manager within a week."
        make_document("rules.txt", [text])
        for question in ("Turned down by my boss?", "What if my boss has turned down my request?"):
            self.assertEqual(search(reader, question, mode="text").passages[0].content, text)
