"""The groups of words that are searched for in a large corpus, selected by a sample."""

from django.test import SimpleTestCase

from ingestion.search.ranking.term_selection import (
    MAX_SAMPLED_TERMS,
    merged_samples,
    select_groups,
    single_terms,
)


def sample(**counts):
    """A sample of passages by the words in them: a12=3 means three passages with the words 1 and 2."""
    return {frozenset(int(digit) for digit in held[1:]): count for held, count in counts.items()}


class RarityTests(SimpleTestCase):
    def test_in_a_small_corpus_each_word_is_searched_by_itself(self):
        self.assertEqual(single_terms([1, 2]).groups, ((1,), (2,)))

    def test_words_missing_from_the_sample_are_searched_by_themselves(self):
        sought = select_groups([1, 2], sample(a=100), wanted=0.02)
        self.assertEqual((sought.groups, sought.shares), (((1,), (2,)), {}))

    def test_rare_words_are_searched_by_themselves_and_common_ones_in_combination(self):
        sought = select_groups([1, 2, 3], sample(a=500, a1=3, a2=240, a3=240, a23=17), wanted=0.03)
        self.assertEqual(sought.groups, ((1,), (2, 3)))
        self.assertEqual(set(sought.shares), {2, 3})
        self.assertAlmostEqual(sought.shares[2], 0.257, 3)

    def test_within_the_budget_common_words_are_also_searched_by_themselves(self):
        sought = select_groups([1, 2], sample(a=900, a1=60, a2=40), wanted=0.5)
        self.assertEqual(sought.groups, ((2,), (1,)))

    def test_a_common_word_is_the_fallback_if_nothing_else_is_found(self):
        sought = select_groups([1], sample(a=10, a1=90), wanted=0.01)
        self.assertEqual((sought.groups, sought.common), ((), ((1,),)))

    def test_groups_with_too_many_matches_are_also_a_fallback(self):
        sought = select_groups([1, 2], sample(a=600, a1=1, a2=399), wanted=0.01)
        self.assertEqual((sought.groups, sought.common), (((1,),), ((2,),)))

    def test_common_words_are_combined_even_if_the_sample_never_has_them_together(self):
        sought = select_groups([1, 2], sample(a=300, a1=400, a2=300), wanted=0.01)
        self.assertEqual((sought.groups, sought.common), (((1, 2),), ((2,),)))

    def test_words_with_the_same_stem_are_not_a_rare_pair(self):
        sought = select_groups([1, 2, 3], sample(a=550, a12=449, a3=1), wanted=0.01)
        self.assertEqual((sought.groups, sought.common), (((3,),), ((1, 2),)))

    def test_no_group_contains_a_smaller_one(self):
        held = sample(a=400, a1=100, a2=100, a12=100, a13=100, a123=100, a1234=100)
        for wanted in (0.01, 0.1, 0.2, 0.3, 0.5):
            sought = select_groups([1, 2, 3, 4], held, wanted)
            self.assertTrue(sought.groups or sought.common)
            for found in (sought.groups, sought.common):
                groups = [set(group) for group in found]
                self.assertFalse(any(one < other for one in groups for other in groups))

    def test_for_a_long_question_only_the_rarest_words_count(self):
        numbers = range(1, 65)
        held = {frozenset(numbers[:count]): 10 for count in range(65)}
        sought = select_groups(numbers, held, wanted=0.02)
        self.assertLessEqual(
            {number for group in sought.groups for number in group}, {*numbers[-MAX_SAMPLED_TERMS:]}
        )


class MergedSamplesTests(SimpleTestCase):
    def test_the_larger_sample_counts_uncommon_words_and_the_other_one_the_rest(self):
        merged = merged_samples(sample(a=70, a1=20, a2=2, a12=8), sample(a2=15, a12=95), {2}, size=1_000)
        self.assertEqual(merged, sample(a=700, a1=200, a2=15, a12=95))

    def test_without_uncommon_words_the_first_sample_is_used(self):
        rough = sample(a=10, a1=90)
        self.assertEqual(merged_samples(rough, {}, [], size=1_000), rough)
