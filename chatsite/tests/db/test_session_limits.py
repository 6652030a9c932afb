"""Time limits that every session of PostgreSQL has."""

from unittest import mock

import psycopg
from django.conf import settings
from django.db import connection
from django.test import TestCase

from chatsite.db.threads import libpq_parameters


class SessionLimits(TestCase):
    def test_statements_locks_and_open_transactions_have_their_limits(self):
        names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        with connection.cursor() as cursor:
            cursor.execute("SELECT setting::int / 1000 FROM pg_settings WHERE name = ANY(%s)", [list(names)])
            found = [seconds for (seconds,) in cursor.fetchall()]
        self.assertEqual(sorted(found), [5, 20, 30])  # a command's limit; requests wait less for a lock

    def test_a_test_database_is_dropped_despite_open_sessions(self):
        creation, name = connection.creation, "test_chatsite_to_drop"
        with creation._nodb_cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        with psycopg.connect(**libpq_parameters() | {"dbname": name}) as session:
            with mock.patch.object(connection, "close_pool"):  # the pool that the test's session comes from
                creation._destroy_test_db(name, verbosity=0)
            with self.assertRaises(psycopg.OperationalError):
                session.execute("SELECT 1")
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_database WHERE datname = %s", [name])
            self.assertEqual(cursor.fetchone(), (0,))

    def test_no_request_waits_longer_than_three_seconds_for_a_connection(self):
        self.assertLessEqual(settings.DATABASES["default"]["OPTIONS"]["pool"]["timeout"], 3)
