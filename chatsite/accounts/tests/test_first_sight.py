"""Somebody whom the site sees for the first time, in several requests at once."""

from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.models import Group
from django.db import connection
from django.test import TransactionTestCase

from chatsite.accounts.models import ExternalIdentity, GroupMapping, ManagedMembership, User
from chatsite.accounts.oidc.claimed_accounts import user_for
from chatsite.accounts.oidc.id_tokens import Claims


class FirstSight(TransactionTestCase):
    def test_ten_concurrent_first_requests_create_one_account_with_its_groups(self):
        group = Group.objects.create(name="Staff")
        GroupMapping.objects.create(issuer="https://id", value="Staff", group=group)
        claims = Claims(
            issuer="https://id",
            subject="s-1",
            subjects={"sub": "s-1"},
            expires_at=0,
            issued_at=0,
            groups=frozenset({"Staff"}),
            username="ann",
            first_name="Ann",
            last_name="",
        )

        def see(_):
            try:
                return user_for(claims).pk
            finally:
                connection.close()

        with ThreadPoolExecutor(5) as threads:
            seen = set(threads.map(see, range(10)))
        user = User.objects.get()
        self.assertEqual(seen, {user.pk})
        self.assertEqual(ExternalIdentity.objects.count(), 1)
        self.assertEqual(ManagedMembership.objects.count(), 1)
        self.assertEqual(list(user.groups.all()), [group])
