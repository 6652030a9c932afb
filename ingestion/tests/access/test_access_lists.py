"""Access lists: equal rights share one, also if requested concurrently, and reasons as sentences."""

import threading

from django.contrib.auth.models import Group
from django.db import connection
from django.test import TestCase, TransactionTestCase

from chatsite.accounts.models import User
from ingestion.access.lists import (
    Audience,
    access_list_for,
    audience_of,
    count_people,
    set_audience,
)
from ingestion.access.models import AccessEntry, AccessList
from ingestion.models import Document, Passage
from ingestion.tests.media import MediaMixin, principal


class AccessListTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.owner, self.ann, self.bob = (
            User.objects.create(username=name) for name in ("owner", "ann", "bob")
        )
        self.staff = Group.objects.create(name="Staff")
        self.bob.groups.add(self.staff)

    def test_equal_audiences_share_a_list(self):
        one = Audience(user_ids=frozenset({self.ann.pk, self.bob.pk}), group_ids=frozenset({self.staff.pk}))
        two = Audience(user_ids=frozenset({self.bob.pk, self.ann.pk}), group_ids=frozenset({self.staff.pk}))
        self.assertEqual(access_list_for(one, None), access_list_for(two, None))
        self.assertEqual((AccessList.objects.count(), AccessEntry.objects.count()), (1, 3))

    def test_the_owner_is_an_entry_but_not_of_the_audience(self):
        document = self.add(
            owner=self.owner, audience=Audience(user_ids=frozenset({self.ann.pk})), read=False
        )
        self.assertEqual(document.access_list.entries.count(), 2)
        self.assertEqual(audience_of(document), Audience(user_ids=frozenset({self.ann.pk})))

    def test_a_user_and_a_group_of_the_same_number_are_not_the_same(self):
        number = frozenset({self.staff.pk})
        User.objects.get_or_create(pk=self.staff.pk, defaults={"username": "same number"})
        self.assertNotEqual(
            access_list_for(Audience(user_ids=number), None),
            access_list_for(Audience(group_ids=number), None),
        )

    def test_new_rights_count_at_once_and_write_no_passage(self):
        document = self.add(owner=self.owner, audience=Audience())
        passages = list(Passage.objects.values())
        for audience, readers in (
            (Audience(), {self.owner}),
            (Audience(user_ids=frozenset({self.ann.pk})), {self.owner, self.ann}),
            (Audience(group_ids=frozenset({self.staff.pk})), {self.owner, self.bob}),
            (Audience(everyone=True), {self.owner, self.ann, self.bob}),
        ):
            set_audience(document, audience)
            for user in (self.owner, self.ann, self.bob):
                visible = Document.objects.visible_to(principal(user)).filter(pk=document.pk).exists()
                self.assertEqual(visible, user in readers, (audience, user))
        self.assertEqual(list(Passage.objects.values()), passages)

    def test_people_are_counted_once_and_only_active_ones(self):
        audience = Audience(
            user_ids=frozenset({self.ann.pk, self.bob.pk}), group_ids=frozenset({self.staff.pk})
        )
        self.assertEqual(count_people(audience), 2)
        User.objects.filter(pk=self.ann.pk).update(is_active=False)
        self.assertEqual(count_people(audience), 1)
        self.assertEqual(count_people(Audience(everyone=True)), 2)

    def test_a_list_that_lost_a_group_is_not_filled_again(self):
        audience = Audience(user_ids=frozenset({self.ann.pk}), group_ids=frozenset({self.staff.pk}))
        access_list = access_list_for(audience, None)
        self.staff.delete()
        self.assertEqual(access_list_for(audience, None), access_list)
        self.assertEqual(access_list.entries.count(), 1)


class AccessListsAtOnceTests(TransactionTestCase):
    def test_many_who_make_the_same_list_at_once_get_the_same(self):
        user = User.objects.create(username="ann")
        barrier, made = threading.Barrier(6), []

        def make():
            barrier.wait()
            try:
                made.append(access_list_for(Audience(everyone=True), user.pk).pk)
            finally:
                connection.close()

        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(made), len(set(made))), (6, 1))
        self.assertEqual(AccessEntry.objects.count(), 2)
