"""The filters by person and by group select what was granted in that way, within the rights."""

import random

import pytest
from django.contrib.auth.models import Group
from django.test import TestCase

from chatsite.accounts.models import User
from ingestion.access.lists import Audience
from ingestion.models import Document
from ingestion.search.retrieval import search
from ingestion.tests.documents import make_document, principal_of

SALARY = "The salary of grade F is 52,000 pounds a year, in list number"
QUESTION = "What is the salary of grade F?"
MODES = ("hybrid", "text", "vectors")
FILTERS = ((True, False), (False, True), (True, True))


class NarrowingTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.reader = User.objects.create_user("reader")
        cls.group = Group.objects.create(name="HR")
        cls.reader.groups.add(cls.group)
        other = User.objects.create_user("other")
        strangers = Group.objects.create(name="Strangers")
        audiences = {
            "everyone": (Audience(everyone=True), None),
            "person": (Audience(user_ids=frozenset({cls.reader.pk})), other),
            "group": (Audience(group_ids=frozenset({cls.group.pk})), other),
            "own": (Audience(), cls.reader),
            "own-shared": (Audience(everyone=True), cls.reader),
            "other": (Audience(user_ids=frozenset({other.pk})), None),
            "strangers": (Audience(group_ids=frozenset({strangers.pk})), other),
        }
        for name, (audience, owner) in audiences.items():
            make_document(f"{name}.txt", [f"{SALARY} {name}."], audience=audience, owner=owner)

    def assert_finds(self, names, **filters):
        for mode in MODES:
            with self.subTest(mode=mode):
                found = search(principal_of(self.reader), QUESTION, mode=mode, top=50, **filters)
                self.assertEqual(
                    {passage.sourcefile for passage in found.passages}, {f"{n}.txt" for n in names}
                )
                self.assertEqual(found.candidates, len(names))

    def test_without_a_filter_all_readable_documents_are_searched(self):
        self.assert_finds({"everyone", "person", "group", "own", "own-shared"})

    def test_the_filter_by_person_finds_owned_documents_and_those_shared_by_name(self):
        self.assert_finds({"person", "own", "own-shared"}, to_person=True)

    def test_the_filter_by_group_finds_documents_shared_with_the_callers_groups(self):
        self.assert_finds({"group"}, to_groups=True)

    def test_both_filters_together_find_the_union(self):
        self.assert_finds({"person", "own", "own-shared", "group"}, to_person=True, to_groups=True)

    def test_leaving_the_group_applies_immediately(self):
        self.reader.groups.clear()
        self.assert_finds(set(), to_groups=True)

    def test_an_owner_who_is_no_longer_a_reader_does_not_find_the_document(self):
        Document.objects.filter(name="other.txt").update(owner=self.reader)
        self.assert_finds({"person", "own", "own-shared"}, to_person=True)

    def test_an_inactive_account_finds_nothing_with_any_filter(self):
        User.objects.filter(pk=self.reader.pk).update(is_active=False)
        for to_person, to_groups in FILTERS:
            self.assert_finds(set(), to_person=to_person, to_groups=to_groups)


@pytest.mark.slow
class RandomRightsTests(TestCase):
    def test_no_filter_ever_widens_what_a_caller_finds(self):
        chance = random.Random(20)
        users = [User.objects.create_user(f"u{number}") for number in range(5)]
        groups = [Group.objects.create(name=f"g{number}") for number in range(4)]
        for user in users:
            user.groups.set(chance.sample(groups, chance.randrange(4)))
        granted = {}
        for number in range(40):
            audience = Audience(
                everyone=chance.random() < 0.2,
                user_ids=frozenset(user.pk for user in chance.sample(users, chance.randrange(3))),
                group_ids=frozenset(group.pk for group in chance.sample(groups, chance.randrange(3))),
            )
            owner = chance.choice([None, *users])
            document = make_document(
                f"d{number}.txt", [f"{SALARY} {number}."], audience=audience, owner=owner
            )
            granted[document.pk] = (audience, owner)
        for user in users:
            visible = set(Document.objects.visible_to(principal_of(user)).values_list("pk", flat=True))
            of_user = set(user.groups.values_list("pk", flat=True))
            by_person = {
                key
                for key, (audience, owner) in granted.items()
                if user.pk in audience.user_ids or owner == user
            }
            by_group = {key for key, (audience, _) in granted.items() if audience.group_ids & of_user}
            self.assertEqual(self.found(user), visible)
            self.assertEqual(self.found(user, to_person=True), by_person)
            self.assertEqual(self.found(user, to_groups=True), by_group)
            self.assertEqual(self.found(user, to_person=True, to_groups=True), by_person | by_group)
            self.assertLessEqual(by_person | by_group, visible)

    def found(self, user, **filters):
        """The documents found, which must be the same for each leg."""
        legs = [search(principal_of(user), QUESTION, mode=mode, top=50, **filters) for mode in MODES]
        documents = [{passage.document_id for passage in leg.passages} for leg in legs]
        self.assertEqual(documents[0], documents[1])
        self.assertEqual(documents[0], documents[2])
        return documents[0]
