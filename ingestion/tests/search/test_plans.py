"""Each plan of the search: the same results under the same rights, and the right plan for each size."""

import random
from unittest import mock

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import TestCase

from chatsite.accounts.models import User
from chatsite.db.sql_files import statement
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document, Passage
from ingestion.search.ranking import plans
from ingestion.search.retrieval import NO_WORDS, search
from ingestion.tests.access import test_search_rights
from ingestion.tests.documents import make_document, principal_of

from . import test_search, test_search_narrowing

# Bounds that force each plan: some select words by a sample, as in a large corpus, or, as in a very large
# one, among the readable documents only.
FORCED = {
    "scan": {"MAX_SCAN": 10**9},
    "scan, kept by the session": {"MAX_SCAN": 10**9, "SMALL_CORPUS": 10**9},
    "mixed": {"MAX_SCAN": -1, "MAX_MIXED": 10**9},
    "indexed": {"MAX_SCAN": -1, "MAX_MIXED": -1},
    "mixed, sampled": {"MAX_SCAN": -1, "MAX_MIXED": 10**9, "LARGE_CORPUS": -1},
    "indexed, sampled": {"MAX_SCAN": -1, "MAX_MIXED": -1, "LARGE_CORPUS": -1, "COUNTED_FROM": -1},
    "mixed, by documents": {
        "MAX_SCAN": -1,
        "MAX_MIXED": 10**9,
        "LARGE_CORPUS": -1,
        "STEADY_SIZE": -1,
        "MAX_BY_DOCUMENTS": 10**9,
    },
}
WORDS = ["ferry", "dog", "leave", "roster", "ticket", "muzzle", "deck", "night", "crew", "cabin", "rope"]
MODES = ("hybrid", "text", "vectors")


def forced(plan):
    """Force this plan."""
    return mock.patch.multiple(plans, **{"SMALL_CORPUS": -1, **FORCED[plan]})


class ForcedTests(TestCase):
    plan: str

    def setUp(self):
        patch = forced(self.plan)
        patch.start()
        self.addCleanup(patch.stop)


class SomeTests(ForcedTests, test_search.SearchTests):
    plan = "mixed"


class ManySampledTests(ForcedTests, test_search.SearchTests):
    plan = "indexed, sampled"


class SomeByDocumentsTests(ForcedTests, test_search.SearchTests):
    plan = "mixed, by documents"


class SomeNarrowingTests(ForcedTests, test_search_narrowing.NarrowingTests):
    plan = "mixed, sampled"


class SomeByDocumentsNarrowingTests(ForcedTests, test_search_narrowing.NarrowingTests):
    plan = "mixed, by documents"


class ManyNarrowingTests(ForcedTests, test_search_narrowing.NarrowingTests):
    plan = "indexed"


class SomeRightsTests(ForcedTests, test_search_rights.SearchRightsTests):
    plan = "mixed"


class SomeByDocumentsRightsTests(ForcedTests, test_search_rights.SearchRightsTests):
    plan = "mixed, by documents"


class ManyRightsTests(ForcedTests, test_search_rights.SearchRightsTests):
    plan = "indexed, sampled"


@pytest.mark.slow
class EqualPlansTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        chance = random.Random(7)
        cls.users = [User.objects.create_user(f"u{number}") for number in range(4)]
        groups = [Group.objects.create(name=f"g{number}") for number in range(3)]
        for user in cls.users:
            user.groups.set(chance.sample(groups, 2))
        for number in range(40):
            audience = Audience(
                everyone=chance.random() < 0.2,
                user_ids=frozenset(user.pk for user in chance.sample(cls.users, chance.randrange(2))),
                group_ids=frozenset(group.pk for group in chance.sample(groups, chance.randrange(2))),
            )
            texts = [f"{' '.join(chance.sample(WORDS, 6))} {number}." for _ in range(3)]
            language = chance.choice(("english", "english", "german", "klingon"))
            make_document(
                f"{number}.txt", texts, audience=audience, language=language, title=f"Note {number}"
            )
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE ingestion_document, ingestion_passagewords")

    def test_every_plan_finds_the_same_readable_passages_as_a_full_comparison(self):
        for user in self.users:
            readable = set(Document.objects.visible_to(principal_of(user)).values_list("pk", flat=True))
            for mode in MODES:
                exact = self.found("scan", user, mode)
                self.assertTrue(exact)
                for plan in FORCED:
                    with self.subTest(user=user.username, mode=mode, plan=plan):
                        found = self.found(plan, user, mode)
                        self.assertLessEqual({document for document, _, _ in found}, readable)
                        self.assertEqual(found, exact)

    def found(self, plan, user, mode):
        with forced(plan), mock.patch.multiple(plans, MAX_FETCHED=10**9, MAX_SCORED=10**9):
            found = search(principal_of(user), "Ferry dogs, tickets and a muzzle", mode=mode, top=50)
        return sorted((row.document_id, row.content, round(row.score, 3)) for row in found.passages)

    def test_a_sample_that_lacks_words_still_finds_only_readable_passages(self):
        for plan in ("indexed, sampled", "mixed, by documents"):
            with forced(plan), mock.patch.multiple(plans, MAX_FETCHED=3, MAX_SCORED=3):
                for user in self.users:
                    readable = set(
                        Document.objects.visible_to(principal_of(user)).values_list("pk", flat=True)
                    )
                    found = search(principal_of(user), " ".join(WORDS), mode="text", top=50).passages
                    self.assertTrue(found)
                    self.assertLessEqual({row.document_id for row in found}, readable)

    def test_if_every_word_is_common_some_readable_passages_are_found(self):
        limits = {"MAX_FETCHED": 1, "MAX_SCORED": 1, "MAX_COMMON": 5}
        for plan in ("mixed, sampled", "indexed, sampled", "mixed, by documents"):
            with forced(plan), mock.patch.multiple(plans, **limits):
                for user in self.users:
                    readable = set(
                        Document.objects.visible_to(principal_of(user)).values_list("pk", flat=True)
                    )
                    found = search(principal_of(user), "ferry", mode="text", top=50).passages
                    # More only if the few documents surveyed make the word look rare: which these are depends
                    # on ids, and so on the tests before.
                    self.assertGreaterEqual(len(found), 5)
                    self.assertLessEqual({row.document_id for row in found}, readable)


class ChoiceTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.reader = User.objects.create_user("reader")
        owner = User.objects.create_user("owner")
        mine = Audience(user_ids=frozenset({cls.reader.pk}))
        for number in range(3):
            make_document(
                f"{number}.txt", [f"Ferry {number} {word}." for word in WORDS], category="a", audience=mine
            )
        make_document("rare.txt", ["A ferry."], category="b", audience=mine)
        make_document("hidden.txt", ["A hidden ferry."] * 50, audience=Audience(), owner=owner)

    def plan(self, **options):
        with (
            mock.patch.multiple(plans, MAX_SCAN=10, MAX_MIXED=30),
            mock.patch.object(plans, "planned_rows", side_effect=plans.planned_rows) as run,
        ):
            search(principal_of(self.reader), "ferry", **options)
        return run.call_args.args[2].get("plan", "nothing")

    def test_the_plan_depends_on_the_number_of_visible_passages(self):
        self.assertEqual(self.plan(), "indexed")
        Document.objects.filter(name="0.txt").delete()
        self.assertEqual(self.plan(), "mixed")

    def test_the_plan_of_a_filtered_search_depends_on_the_remaining_passages(self):
        self.assertEqual(self.plan(include_category="b"), "scan")
        self.assertEqual(self.plan(exclude_category="a"), "scan")
        self.assertEqual(self.plan(to_groups=True), "nothing")

    def test_above_a_certain_size_more_passages_are_scored(self):
        growth = [plans.Survey(10**6, size, {}).growth() for size in (0, 200_000, 400_000, 10**6, 10**9)]
        self.assertEqual(growth, [1, 1, 2, 5, 5])

    def test_more_passages_are_scored_for_shorter_questions(self):
        growth = [plans.Survey(10**6, 400_000, {}).growth(asked) for asked in (0, 2, 4, 8)]
        self.assertEqual(growth, [16, 4, 2, 2**0.5])

    def test_if_little_is_readable_words_are_searched_in_the_readable_documents(self):
        held = {frozenset(): 900, frozenset({1}): 90, frozenset({1, 2}): 10}
        for visible, every, plan, by_documents in (
            (10_000, 1_000_000, "mixed", True),
            (10_000, 200_000, "mixed", False),
            (19_000, 300_000, "mixed", False),
            (100_000, 1_000_000, "indexed", False),
        ):
            with self.subTest(visible=visible, every=every):
                survey = plans.Survey(visible, every, held)
                self.assertEqual((survey.plan(256), survey.by_documents(plan)), (plan, by_documents))
                self.assertEqual(survey.readable_share(plan), 1 if by_documents else visible / every)
                self.assertEqual((1,) in survey.sought(2, 2, plan).groups, by_documents)

    def test_common_words_fetch_no_more_passages_than_rare_ones(self):
        survey = plans.Survey(100_000, 10**6, {})
        self.assertEqual(
            [survey.max_common(asked, "indexed") for asked in (1, 2, 4, 8)], [1000, 1000, 1000, 671]
        )

    def test_uncommon_words_are_counted_in_every_17th_passage(self):
        document = make_document("many.txt", [f"Anchor {number}." for number in range(100)])
        make_document(
            "hidden.txt", ["An anchor."] * 50, audience=Audience(), owner=User.objects.create_user("o")
        )
        words = {**NO_WORDS, "words": ["anchor"], "times": [1.0]}
        counted = sum(row.pk % 17 == 0 for row in Passage.objects.filter(document=document))
        with forced("indexed, sampled"):
            surveyed = plans.survey(plans.with_words({**self.everything(), **words}))
        self.assertEqual(surveyed.held[frozenset({1})], counted)

    def test_the_survey_reports_words_that_no_readable_passage_has(self):
        words = {**NO_WORDS, "words": ["ferry", "hidden", "zeppelin"], "times": [1.0, 1.0, 1.0]}
        for plan in ("indexed, sampled", "scan", "scan, kept by the session"):
            for limit, absent in ((51, [2, 3]), (50, [3])):  # the hidden document has 50 passages
                with (
                    self.subTest(plan=plan, limit=limit),
                    forced(plan),
                    mock.patch.object(plans, "MAX_SELDOM", limit),
                ):
                    surveyed = plans.survey(plans.with_words({**self.everything(), **words}))
                    self.assertEqual(surveyed.absent, absent)

    def test_substitutes_for_missing_words_need_no_second_search(self):
        make_document("light.txt", ["The lighthouse."], audience=Audience(everyone=True))
        for plan in ("indexed, sampled", "scan"):
            with (
                self.subTest(plan=plan),
                forced(plan),
                mock.patch.object(plans, "planned_rows", side_effect=plans.planned_rows) as run,
            ):
                found = search(principal_of(self.reader), "light-house ferry", mode="text").passages
                self.assertIn("The lighthouse.", [row.content for row in found])
                searched = [call for call in run.call_args_list if call.args[1] == statement("search")]
                self.assertEqual(len(searched), 1)

    def test_substitutes_find_the_same_in_one_search_and_in_two(self):
        make_document("light.txt", ["The lighthouse."], audience=Audience(everyone=True))
        reader = principal_of(self.reader)
        for question in ("light-house ferry", "zeppelin ferry", "lighthouses zeppelins", "zeppelin"):
            with self.subTest(question=question), forced("scan"):
                once = search(reader, question)
                with mock.patch.object(plans, "MAX_SELDOM", 0):  # none is known to be absent
                    twice = search(reader, question)
                self.assertEqual(once.passages, twice.passages)

    def everything(self):
        return {
            "user_id": self.reader.pk,
            "include_category": "",
            "exclude_category": "",
            "scoped": False,
            "documents": [],
            "excluding": False,
            "excluded": [],
            "to_person": False,
            "to_groups": False,
        }

    def test_vectors_too_long_for_an_index_are_compared_exhaustively(self):
        self.assertEqual(plans.Survey(10**9, 10**9, {}).plan(4_001), "mixed")

    def test_a_search_needs_few_statements(self):
        with forced("indexed, sampled"):
            search(principal_of(self.reader), "ferry")
            # Embedding space, glossary and corpus size; the search; the passages with the stop words.
            with self.assertNumQueries(3):
                search(principal_of(self.reader), "ferry")


class WritesTests(TestCase):
    """The rows that a change of rights writes, counted by PostgreSQL for this transaction."""

    def written(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
                " WHERE n_tup_ins + n_tup_upd + n_tup_del > 0"
            )
            return dict(cursor.fetchall())

    def changed(self, before):
        return {
            name: count - before.get(name, 0)
            for name, count in self.written().items()
            if count != before.get(name)
        }

    def test_changed_rights_write_only_the_document_and_apply_immediately(self):
        reader = principal_of(User.objects.create_user("reader"))
        make_document("other.txt", ["Nobody's."], audience=Audience(everyone=True))
        document = make_document("a.txt", ["A ferry."], audience=Audience())
        self.assertEqual(search(reader, "ferry").passages, ())
        before = self.written()
        set_audience(document, Audience(everyone=True))
        self.assertEqual(self.changed(before), {"ingestion_document": 1})
        self.assertEqual(len(search(reader, "ferry").passages), 1)

    def test_a_membership_is_one_row_and_applies_immediately(self):
        user, group = User.objects.create_user("reader"), Group.objects.create(name="Crew")
        make_document("a.txt", ["A ferry."], audience=Audience(group_ids=frozenset({group.pk})))
        for change, finds in ((user.groups.add, 1), (user.groups.remove, 0)):
            before = self.written()
            change(group)
            self.assertEqual(self.changed(before), {"accounts_user_groups": 1})
            self.assertEqual(len(search(principal_of(user), "ferry").passages), finds)
