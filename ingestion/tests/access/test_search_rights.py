"""Rights in search: in both legs, in counts, in labels, and in resolved names."""

from unittest import mock

from django.contrib.auth.models import Group
from django.db import connection
from django.test import TestCase

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.search.name_resolution import resolve
from ingestion.search.ranking import plans
from ingestion.search.retrieval import count_readable, search
from ingestion.tests.documents import make_document, principal_of

SALARY = "The salary of grade F is 52,000 pounds a year."
QUESTION = "What is the salary of grade F?"
MODES = ("hybrid", "text", "vectors")


class SearchRightsTests(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.owner = User.objects.create_user("owner")
        cls.reader = User.objects.create_user("reader")
        cls.stranger = User.objects.create_user("stranger")
        cls.group = Group.objects.create(name="HR")
        cls.reader.groups.add(cls.group)

    def make(self, audience, owner=None):
        return make_document("salaries.txt", [SALARY], audience=audience, owner=owner)

    def assert_finds(self, user, finds):
        for mode in MODES:
            with self.subTest(user=user.username, mode=mode):
                found = search(principal_of(user), QUESTION, mode=mode)
                self.assertEqual(len(found.passages), int(finds))
                self.assertEqual(found.candidates, int(finds))
        self.assertEqual(count_readable(principal_of(user)), int(finds))
        self.assertEqual(resolve(principal_of(user), "salaries.txt") is not None, finds)

    def test_a_document_for_everyone_is_found_by_everyone(self):
        self.make(Audience(everyone=True))
        self.assert_finds(self.stranger, True)

    def test_a_document_for_one_person_is_found_by_that_person_only(self):
        self.make(Audience(user_ids=frozenset({self.reader.pk})))
        self.assert_finds(self.reader, True)
        self.assert_finds(self.stranger, False)

    def test_a_document_for_a_group_is_found_by_its_members_only(self):
        self.make(Audience(group_ids=frozenset({self.group.pk})))
        self.assert_finds(self.reader, True)
        self.assert_finds(self.stranger, False)

    def test_an_owner_finds_a_document_that_has_no_other_readers(self):
        self.make(Audience(), owner=self.owner)
        self.assert_finds(self.owner, True)
        self.assert_finds(self.stranger, False)

    def test_a_document_without_readers_is_found_by_nobody(self):
        self.make(Audience())
        self.assert_finds(self.owner, False)

    def test_an_inactive_account_finds_nothing(self):
        self.make(Audience(everyone=True))
        self.reader.is_active = False
        self.reader.save()
        self.assert_finds_nothing_at_all(principal_of(self.reader))

    def test_an_account_that_does_not_exist_finds_nothing(self):
        self.make(Audience(everyone=True))
        self.assert_finds_nothing_at_all(Principal(0, "session"))

    def assert_finds_nothing_at_all(self, principal):
        for mode in MODES:
            self.assertEqual(search(principal, QUESTION, mode=mode).passages, ())
        self.assertEqual(count_readable(principal), 0)
        self.assertIsNone(resolve(principal, "salaries.txt"))

    def test_a_superuser_finds_only_documents_shared_with_them(self):
        self.make(Audience(user_ids=frozenset({self.reader.pk})))
        self.assert_finds(User.objects.create_superuser("root"), False)

    def test_leaving_a_group_applies_from_the_next_search(self):
        self.make(Audience(group_ids=frozenset({self.group.pk})))
        self.assert_finds(self.reader, True)
        self.reader.groups.remove(self.group)
        self.assert_finds(self.reader, False)

    def test_removing_readers_applies_from_the_next_search(self):
        document = self.make(Audience(everyone=True))
        self.assert_finds(self.stranger, True)
        set_audience(document, Audience(group_ids=frozenset({self.group.pk})))
        self.assert_finds(self.stranger, False)

    def test_a_hidden_document_changes_no_score(self):
        # So many that the sample does not include every document, and so few wanted passages, as among a
        # million, that the sample determines the frequency of words.
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval('ingestion_document_id_seq', 3000)")
        make_document("open.txt", [SALARY, "A grade is reviewed in May."])
        with mock.patch.object(plans, "MAX_FETCHED", 0):
            before = search(principal_of(self.stranger), QUESTION)
            for _ in range(3):
                self.make(Audience(user_ids=frozenset({self.reader.pk})))
            self.assertEqual(search(principal_of(self.stranger), QUESTION), before)

    def test_a_hidden_document_changes_no_label(self):
        make_document("salaries.txt", [SALARY], folder="open")
        self.make(Audience(user_ids=frozenset({self.reader.pk})))
        (passage,) = search(principal_of(self.stranger), QUESTION).passages
        self.assertEqual(passage.label, "salaries.txt")
        document = resolve(principal_of(self.stranger), "salaries.txt")
        self.assertEqual(document.pk, passage.document_id)

    def test_no_form_of_a_hidden_documents_name_resolves_to_it(self):
        hidden = self.make(Audience(user_ids=frozenset({self.reader.pk})))
        digits = hidden.public_id.hex
        for name in ("salaries.txt", f"salaries~{digits[:8]}.txt", f"salaries~{digits}.txt"):
            self.assertIsNone(resolve(principal_of(self.stranger), name))
        self.assertEqual(resolve(principal_of(self.reader), f"salaries~{digits[:8]}.txt"), hidden)
