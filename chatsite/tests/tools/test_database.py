"""The tests' database is ready for the next test, whatever the last one did."""

from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase

from chatsite.accounts.models import User
from chatsite.tests.plugins.database import flushed


class FlushedTests(TransactionTestCase):
    def test_a_test_that_was_ended_amid_a_statement_leaves_nothing_behind(self):
        User.objects.create(username="ann")
        connection.connection.pgconn.send_query(b"SELECT pg_sleep(60)")
        flushed(call_command)("flush", database="default")
        self.assertFalse(User.objects.exists())
