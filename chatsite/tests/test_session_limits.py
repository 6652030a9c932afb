"""What PostgreSQL is told of every session: nothing lasts for ever."""

from django.conf import settings
from django.db import connection
from django.test import TestCase


class SessionLimits(TestCase):
    def test_statements_locks_and_open_transactions_have_their_limits(self):
        names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        with connection.cursor() as cursor:
            cursor.execute("SELECT setting::int / 1000 FROM pg_settings WHERE name = ANY(%s)", [list(names)])
            found = [seconds for (seconds,) in cursor.fetchall()]
        self.assertEqual(sorted(found), [5, 20, 30])  # a command's; requests wait less for a lock

    def test_nobody_waits_longer_than_three_seconds_for_a_connection(self):
        self.assertLessEqual(settings.DATABASES["default"]["OPTIONS"]["pool"]["timeout"], 3)
