"""Recall, reciprocal rank and nDCG against values computed by hand, and confidence intervals of means."""

import math

import numpy as np
from django.test import SimpleTestCase

from ingestion.evaluation.ranking_metrics import intervals, ndcg, recall, reciprocal_rank

LOG3 = math.log2(3)


class MetricsTests(SimpleTestCase):
    def test_recall_is_the_share_of_the_relevant_documents_that_were_found(self):
        grades = {"a": 1, "b": 1, "c": 1, "d": 1}
        self.assertEqual(recall(["a", None, "x", "b"], grades, 3), 0.25)
        self.assertEqual(recall(["a", None, "x", "b"], grades, 5), 0.5)
        self.assertEqual(recall([], grades, 5), 0)

    def test_a_duplicate_counts_once_but_takes_a_rank(self):
        grades = {"a": 1, "b": 1}
        self.assertEqual(recall(["a", "a", "a"], grades, 3), 0.5)
        self.assertAlmostEqual(ndcg(["a", "a", "b"], grades, 3), (1 + 0.5) / (1 + 1 / LOG3))

    def test_the_reciprocal_rank_is_that_of_the_first_relevant_result(self):
        self.assertEqual(reciprocal_rank([None, "a", "b"], {"a": 1, "b": 3}, 3), 0.5)
        self.assertEqual(reciprocal_rank([None, None, None, "a"], {"a": 1}, 3), 0)
        self.assertEqual(reciprocal_rank(["x"], {"a": 1}, 10), 0)

    def test_ndcg_of_graded_results_equals_the_value_computed_by_hand(self):
        grades = {"a": 3, "b": 2, "c": 1}
        ideal = 3 + 2 / LOG3 + 0.5
        self.assertAlmostEqual(ndcg(["a", "b", "c"], grades), 1)
        self.assertAlmostEqual(ndcg(["c", "x", "a"], grades), (1 + 1.5) / ideal)
        self.assertAlmostEqual(ndcg(["b"], grades), 2 / ideal)

    def test_equal_grades_may_be_in_any_order(self):
        grades = {"a": 2, "b": 2, "c": 1}
        self.assertAlmostEqual(ndcg(["b", "a", "c"], grades), 1)
        self.assertAlmostEqual(ndcg(["a", "b", "c"], grades), 1)

    def test_the_ideal_ranking_has_no_more_ranks_than_the_cut_off(self):
        grades = dict.fromkeys("abcdef", 1)
        self.assertAlmostEqual(ndcg(["a", "b", "c"], grades, 3), 1)
        self.assertEqual(recall(["a", "b", "c"], grades, 3), 0.5)

    def test_grades_of_zero_and_below_are_not_relevant(self):
        grades = {"a": 1, "b": 0, "c": -1}
        self.assertEqual(recall(["b", "c"], grades, 3), 0)
        self.assertEqual(reciprocal_rank(["b", "c", "a"], grades, 3), 1 / 3)
        self.assertAlmostEqual(ndcg(["b", "c", "a"], grades, 3), 0.5)

    def test_metrics_without_relevant_documents_do_not_divide_by_zero(self):
        for metric in (recall, reciprocal_rank, ndcg):
            self.assertEqual(metric(["a"], {}, 3), 0)


class IntervalTests(SimpleTestCase):
    def test_equal_scores_give_an_interval_of_width_zero(self):
        (one,) = intervals(np.full((7, 1), 0.25))
        self.assertEqual((one.mean, one.low, one.high), (0.25, 0.25, 0.25))

    def test_an_interval_has_its_theoretical_width_and_is_reproducible(self):
        scores = np.array([[1.0], [0.0]] * 200)
        (one,) = intervals(scores)
        self.assertEqual(one, intervals(scores)[0])
        half = 1.96 * 0.5 / math.sqrt(400)  # the mean of 400 coin tosses
        self.assertAlmostEqual(one.low, 0.5 - half, delta=0.008)
        self.assertAlmostEqual(one.high, 0.5 + half, delta=0.008)

    def test_paired_differences_give_narrower_intervals(self):
        random = np.random.default_rng(1)
        one = random.random((100, 1))
        (difference,) = intervals((one + 0.05) - one)
        self.assertAlmostEqual(difference.low, 0.05)
        self.assertGreater(intervals(one)[0].high - intervals(one)[0].low, 0.1)
