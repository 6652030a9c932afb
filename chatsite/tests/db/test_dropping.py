"""A database can be dropped while sessions use it."""

from unittest import mock

import psycopg
from django.db import connection
from django.test import TestCase

from chatsite.db.dropping import drop_database
from chatsite.db.threads import libpq_parameters

NAME = "chatsite_dropped"


class DropDatabaseTests(TestCase):
    def setUp(self):
        self.session = self.enterContext(psycopg.connect(**libpq_parameters(), autocommit=True))
        drop_database(self.session, NAME)
        self.session.execute(f"CREATE DATABASE {NAME}")
        self.addCleanup(drop_database, self.session, NAME)

    def exists(self):
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [NAME])
            return cursor.fetchone() is not None

    def test_open_sessions_are_ended(self):
        with psycopg.connect(**libpq_parameters() | {"dbname": NAME}) as other:
            drop_database(self.session, NAME)
            with self.assertRaises(psycopg.OperationalError):
                other.execute("SELECT 1")
        self.assertFalse(self.exists())

    def test_autovacuum_does_not_prevent_dropping(self):
        def execute(query):
            if "FORCE" in query.as_string():
                raise psycopg.errors.InsufficientPrivilege("permission denied to terminate process")
            return self.session.execute(query)

        drop_database(mock.Mock(execute=execute), NAME)
        self.assertFalse(self.exists())
