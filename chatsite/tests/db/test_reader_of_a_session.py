"""The reader that PostgreSQL knows for a session, after everything that may have reset it."""

import asyncio
import os
import random
import select
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from unittest import mock
from weakref import WeakKeyDictionary

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.test import SimpleTestCase, TransactionTestCase

from chatsite.db import threads
from chatsite.db.backend import base
from chatsite.db.threads import (
    EVERYTHING,
    NOBODY,
    in_database,
    reader_name,
    reading_as,
    reading_everything,
    reading_for_request,
    request_reads_as,
)
from chatsite.tests.limits import HANG_SECONDS
from chatsite.tests.server import BASE
from ingestion.models import Document

GAMES = 40 * int(os.environ.get("CHATSITE_TEST_ROUNDS", "1"))


class Undone(Exception):
    pass


@contextmanager
def nobody_by_default():
    """No default reader, as in a web process."""
    with mock.patch.object(threads._default, "name", NOBODY):
        yield


def told():
    """The reader that a statement sees."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(current_setting('chatsite.reader', true), '')")
        return cursor.fetchone()[0]


def told_in_database():
    return told(), reader_name()


class Counted(WeakKeyDictionary):
    """Counts how often a session's reader is set."""

    times = 0

    def __setitem__(self, session, name):
        self.times += 1
        super().__setitem__(session, name)


class SessionsAreToldAnew(TransactionTestCase):
    def tearDown(self):
        connection.close()

    def test_after_a_rollback(self):
        with reading_everything():
            told()
        with suppress(Undone), transaction.atomic():
            with reading_as(7):
                self.assertEqual(told(), "7")
            raise Undone
        with reading_as(7):
            self.assertEqual(told(), "7")

    def test_after_a_savepoint_is_undone(self):
        with transaction.atomic(), reading_everything():
            told()
            with reading_as(7):
                with suppress(Undone), transaction.atomic():
                    told()
                    raise Undone
                self.assertEqual(told(), "7")

    def test_after_a_transaction_that_failed_unnoticed_and_was_committed(self):
        with reading_everything():
            told()
        with transaction.atomic(), reading_as(7):
            told()
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        with reading_as(7):
            self.assertEqual(told(), "7")

    def test_after_a_commit_that_a_constraint_refuses(self):
        with reading_everything():
            told()
        with self.assertRaises(IntegrityError), transaction.atomic(), reading_as(7):
            told()
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO ingestion_accessentry (access_list_id, guests) VALUES (-1, false)"
                )
        with reading_as(7):
            self.assertEqual(told(), "7")

    def test_after_a_session_went_back_to_the_pool(self):
        for reader in (7, None, 8, None):
            with reading_as(reader):
                self.assertEqual(told(), reader_name())
            connection.close()

    def test_after_a_session_went_back_in_the_middle_of_a_transaction(self):
        with reading_as(None):
            told()
        with suppress(DatabaseError, Undone), transaction.atomic():
            with reading_as(7):
                told()
            connection.close()
            raise Undone
        with reading_as(7):
            self.assertEqual(told(), "7")
        with reading_as(None):
            self.assertEqual(told(), "")

    def test_after_a_session_was_ended_by_the_server(self):
        with reading_as(7):
            told()
            with suppress(OperationalError), connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            connection.close()
            self.assertEqual(told(), "7")

    def test_after_a_session_was_ended_in_the_pool_a_moment_after_its_use(self):
        with reading_as(7):
            told()
            ended = connection.connection.info.backend_pid
            connection.close()  # returns it to the pool, which trusts it for a second
            with psycopg.connect(**threads.libpq_parameters()) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])  # waits for its end
            self.assertEqual(told(), "7")
            self.assertNotEqual(connection.connection.info.backend_pid, ended)

    def test_without_a_pause_after_all_sessions_of_the_pool_were_ended(self):
        connection.close()
        sessions = [connection.pool.getconn() for _ in range(4)]
        for session in sessions:
            connection.pool.putconn(session)
        with psycopg.connect(**threads.libpq_parameters()) as other:
            for session in sessions:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [session.info.backend_pid])
        # What PostgreSQL sends an ended session arrives a moment after its end.
        for session in sessions:
            select.select([session.fileno()], [], [], HANG_SECONDS)
        with mock.patch("psycopg_pool.pool.sleep") as pause, reading_as(7):
            self.assertEqual(told(), "7")
        pause.assert_not_called()

    def test_for_rows_that_come_through_a_cursor_of_the_server_and_many_at_once(self):
        with transaction.atomic(), reading_as(None):
            self.assertEqual(list(Document.objects.all().iterator()), [])
            self.assertEqual(told(), "")
            with reading_as(7), connection.cursor() as cursor:
                cursor.executemany(
                    "SELECT set_config('a.b', current_setting('chatsite.reader'), %s)", [[False]]
                )
                cursor.execute("SELECT current_setting('a.b')")
                self.assertEqual(cursor.fetchone(), ("7",))

    def test_in_one_message_with_the_statement(self):
        told()
        sent = mock.patch.object(
            psycopg.ClientCursor, "execute", autospec=True, side_effect=psycopg.ClientCursor.execute
        )
        with reading_as(7), sent as messages:
            self.assertEqual(told(), "7")
            self.assertEqual(messages.call_count, 1)
        with reading_as(8), sent as messages, connection.cursor() as cursor:
            cursor.execute("SELECT %(number)s + 1", {"number": 1})
            self.assertEqual((cursor.fetchall(), cursor.rowcount, messages.call_count), ([(2,)], 1, 1))

    def test_after_a_first_statement_that_failed_and_before_one_that_must_be_alone(self):
        with reading_as(7), suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        with reading_as(7):
            self.assertEqual(told(), "7")
        with reading_as(8):
            with connection.cursor() as cursor:
                cursor.execute("VACUUM chat_usage")
            self.assertEqual(told(), "8")

    def test_only_where_something_changed_and_in_no_log_of_queries(self):
        self.addCleanup(base._readers.clear)  # the entries of this test's sessions
        sessions = set()
        with mock.patch.object(base, "_readers", Counted()) as memory, reading_as(7):
            for _ in range(5):
                with self.assertNumQueries(1):
                    told()
                with transaction.atomic(), reading_as(7):
                    told()
                sessions.add(connection.connection)
                connection.close()
        self.assertEqual(memory.times, len(sessions))


@pytest.mark.slow
class AnyGameEndsWell(TransactionTestCase):
    """Readers, blocks, faults and closed sessions in random order: each statement has the right reader."""

    def tearDown(self):
        connection.close()

    def test_games(self):
        for number in range(GAMES):
            with self.subTest(game=number):
                self.play(random.Random(number), 0)

    def play(self, chance, depth):
        for _ in range(chance.randint(1, 4)):
            with reading_as(chance.choice([None, 1, 2])) if chance.random() < 0.8 else reading_everything():
                self.assertEqual(told(), reader_name())
                if depth < 3 and chance.random() < 0.7:
                    self.block(chance, depth)
                    self.assertEqual(told(), reader_name())
            if depth == 0 and chance.random() < 0.3:
                connection.close()

    def block(self, chance, depth):
        with suppress(Undone, DatabaseError), transaction.atomic():
            self.play(chance, depth + 1)
            match chance.randint(0, 3):
                case 0:
                    raise Undone
                case 1:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT 1 / 0")
                case 2 if depth == 0:  # an error inside a block would break Django's transaction
                    with suppress(DatabaseError), connection.cursor() as cursor:
                        cursor.execute("SELECT 1 / 0")


class WhoReads(SimpleTestCase):
    def test_a_command_everything_and_a_process_that_says_nothing_nobody(self):
        self.assertEqual(reader_name(), EVERYTHING)  # the default of tests
        with nobody_by_default():
            self.assertEqual(reader_name(), NOBODY)

    @pytest.mark.slow
    def test_the_web_server_reads_as_nobody_until_a_request_sets_the_reader(self):
        asked = "from chatsite.server.serving import web_process; from chatsite.db.threads import *; "
        asked += "print([reader_name()])"
        done = subprocess.run(
            [sys.executable, "-c", asked], cwd=BASE, capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout.strip(), "['']")

    def test_a_new_thread_inherits_no_reader(self):
        found = []
        with nobody_by_default(), reading_as(7):
            thread = threading.Thread(target=lambda: found.append(reader_name()))
            thread.start()
            thread.join()
        self.assertEqual(found, [NOBODY])

    def test_blocks_restore_the_former_reader(self):
        with reading_as(7), suppress(Undone):
            with reading_everything():
                self.assertEqual(reader_name(), EVERYTHING)
                with reading_as(None):
                    self.assertEqual(reader_name(), NOBODY)
                    raise Undone
            self.assertEqual(reader_name(), "7")

    def test_a_request_sets_its_reader_late_in_nested_code(self):
        with reading_for_request():
            self.assertEqual(reader_name(), NOBODY)
            with reading_everything():
                request_reads_as(7)
                self.assertEqual(reader_name(), EVERYTHING)
            self.assertEqual(reader_name(), "7")
        request_reads_as(8)  # without a request it has no effect
        self.assertEqual(reader_name(), EVERYTHING)


class WorkInOtherThreads(TransactionTestCase):
    def test_work_in_other_threads_keeps_its_reader_and_leaves_nothing_behind(self):
        async def readers():
            with nobody_by_default():
                with reading_as(7):
                    task = asyncio.create_task(in_database(told_in_database))
                    found = [await in_database(told_in_database)]
                found += [await task]
                found += [await in_database(told_in_database) for _ in range(10)]
            return found

        self.assertEqual(asyncio.run(readers()), [("7", "7")] * 2 + [("", "")] * 10)

    def test_work_in_other_threads_sets_the_reader_of_the_request(self):
        async def request():
            with reading_for_request():
                await in_database(request_reads_as, 7)
                return await in_database(told_in_database)

        self.assertEqual(asyncio.run(request()), ("7", "7"))
