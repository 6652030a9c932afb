"""The lease of a run: cheap to renew, and deleted when the run ends."""

from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import TransactionTestCase

from chat import runs
from chat.models import Lease
from chat.requests import RunRequest
from chat.runs import journal
from chat.runs.start import begin
from ingestion.tests.factories import command_principal, make_user

UPDATES = """
    SELECT pg_stat_get_xact_tuples_updated(table_id), pg_stat_get_xact_tuples_hot_updated(table_id)
    FROM CAST('chat_lease'::regclass AS oid) AS table_id
"""
# Counts this session alone, because other test processes write to the log of the same PostgreSQL.
COUNT_WRITTEN = "SELECT pg_stat_force_next_flush()"
WRITTEN = "SELECT wal_bytes FROM pg_stat_get_backend_wal(pg_backend_pid())"
RUNS, ROUNDS = 8, 3
MAX_BYTES = 100  # write-ahead log of one renewal


def value(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


class LeaseTests(TransactionTestCase):
    def begun(self, number=RUNS):
        people = [command_principal(make_user(f"asker{place}")) for place in range(number)]
        return [begin(person, RunRequest("Leave?")).run_id for person in people]

    def test_renewing_a_lease_touches_no_index(self):
        run_ids = self.begun()
        with transaction.atomic():
            before = value(UPDATES)
            for _ in range(ROUNDS):
                journal.flush(run_ids, [])
            every, heap_only = (now - then for now, then in zip(value(UPDATES), before, strict=True))
        self.assertEqual((every, heap_only), (RUNS * ROUNDS, RUNS * ROUNDS))

    def test_renewing_a_lease_writes_no_wide_row_to_the_log(self):
        run_ids = self.begun()
        written = []
        for _ in range(4):  # the first flush after a checkpoint writes whole pages
            before = self.written()
            journal.flush(run_ids, [])
            written.append(self.written() - before)
        self.assertGreater(min(written), 0)
        self.assertLess(min(written), RUNS * MAX_BYTES)

    def written(self):
        """Bytes of write-ahead log that this session has written."""
        value(COUNT_WRITTEN)
        return value(WRITTEN)[0]

    def test_the_end_of_a_run_deletes_its_lease(self):
        self.begun()
        self.assertEqual(Lease.objects.count(), RUNS)
        runs.expire_all()
        self.assertEqual(Lease.objects.count(), 0)


@pytest.mark.slow
class MigrationTests(TransactionTestCase):
    def migrate(self, name=""):
        """Migrate to that state; without a name to the newest, which other tests need."""
        executor = MigrationExecutor(connection)
        wanted = [("chat", name)] if name else executor.loader.graph.leaf_nodes("chat")
        executor.migrate(wanted)
        return executor.loader.project_state(wanted).apps

    def test_migrations_to_and_from_the_lease_table_keep_leases(self):
        for name in ("first", "second"):
            begin(command_principal(make_user(name)), RunRequest("Leave?"))
        runs.expire_all()
        going = begin(command_principal(make_user("third")), RunRequest("Leave?")).run_id
        moment = datetime(2030, 1, 1, tzinfo=UTC)
        Lease.objects.filter(pk=going).update(until=moment)
        try:
            rows = self.migrate("0006_caps_and_allowances").get_model("chat", "Run").objects
            self.assertEqual(rows.get(pk=going).lease_until, moment)
            self.assertEqual(rows.count(), 3)
        finally:
            self.migrate()
        self.assertEqual(list(Lease.objects.values_list("pk", "until")), [(going, moment)])
