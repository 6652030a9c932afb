"""Without a database: who waits, for how long, and how often this is logged."""

import logging
import threading
import time
from contextlib import suppress
from unittest import mock

import psycopg
from django.db import DataError, OperationalError, ProgrammingError, connection, transaction
from django.test import SimpleTestCase, TestCase, override_settings

from chatsite.db import (
    availability,
    threads,
)
from chatsite.db.availability import (
    DatabaseBreaker,
    is_disk_full,
    unavailability,
)
from chatsite.db.backend import database_sessions
from chatsite.db.threads import (
    reading_as,
    reading_for_request,
    statement_seconds,
)
from chatsite.logs import OutageFilter
from chatsite.tests.limits import HANG_SECONDS


def failed(message, state=None, kind=OperationalError):
    """An error of PostgreSQL, as Django wraps it."""
    error = kind(message)
    error.__cause__ = psycopg.Error()
    error.__cause__.sqlstate = state
    return error


class Errors(SimpleTestCase):
    def test_errors_that_no_statement_caused_count_as_unavailable(self):
        for state in (None, "08006", "57P01", "57P03", "53300", "53100", "55P03"):
            self.assertEqual(unavailability(failed("away\nHINT: none", state)), "away", state)
        for state in ("40001", "57014"):
            self.assertEqual(unavailability(failed("slow", state)), "", state)
        self.assertEqual(unavailability(failed("wrong", "42P01", ProgrammingError)), "")

    def test_a_library_may_have_wrapped_it(self):
        error = ValueError("a library's")
        error.__cause__ = failed("away", "57P01")
        self.assertEqual(unavailability(error), "away")
        self.assertEqual(unavailability(ValueError("a fault")), "")

    def test_a_full_disk_is_distinguished(self):
        self.assertTrue(is_disk_full(failed("full", "53100")))
        self.assertFalse(is_disk_full(failed("away", "57P01")))


RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%30) -- given up' AND state = 'active'"


class Knowledge(SimpleTestCase):
    def setUp(self):
        self.clock = self.enterContext(mock.patch.object(availability.time, "monotonic", return_value=100.0))
        self.breaker = DatabaseBreaker()

    def test_while_the_database_is_unavailable_one_request_a_second_probes_it(self):
        self.assertEqual([self.breaker.allows_probe() for _ in range(2)], [True, True])
        self.breaker.record_timeout()
        self.assertEqual([self.breaker.allows_probe() for _ in range(3)], [True, False, False])
        self.clock.return_value += 1.1
        self.assertEqual([self.breaker.allows_probe() for _ in range(2)], [True, False])
        self.breaker.record_success()
        self.assertEqual([self.breaker.allows_probe() for _ in range(2)], [True, True])

    def test_a_timeout_while_others_are_answered_means_busy_and_not_unavailable(self):
        for since, missing in ((0.3, False), (0.9, False), (1.1, True)):
            self.breaker.record_success()
            self.clock.return_value += since
            self.breaker.record_timeout()
            self.assertEqual(
                (self.breaker.is_unavailable, self.breaker.timed_out_within(10)), (missing, missing)
            )

    def test_a_full_disk_is_remembered_for_a_moment(self):
        self.breaker.record_error(failed("away", "57P01"))
        self.assertFalse(self.breaker.is_full)
        self.breaker.record_error(failed("full", "53100"))
        self.assertTrue(self.breaker.is_full)
        self.clock.return_value += 2
        self.assertFalse(self.breaker.is_full)


@mock.patch.object(database_sessions, "RETURN_SECONDS", 0.01)
@mock.patch.object(database_sessions, "default_reader", str)
class ReturnTests(SimpleTestCase):
    def test_the_return_of_the_database_is_noticed_without_a_request(self):
        back = threading.Event()
        tries = [psycopg.OperationalError("away")] * 3

        def connect(**parameters):
            if tries:
                raise tries.pop()
            back.set()
            return mock.Mock()

        breaker = DatabaseBreaker()
        with (
            mock.patch.object(database_sessions, "breaker", breaker),
            mock.patch.object(database_sessions.psycopg, "connect", connect),
            mock.patch.object(database_sessions, "libpq_parameters", dict),
        ):
            database_sessions.report_missed()
            self.assertTrue(back.wait(HANG_SECONDS))
            self.assertTrue(database_sessions._watched.acquire(timeout=HANG_SECONDS), "it has ended")
            database_sessions._watched.release()
        self.assertEqual((breaker.is_unavailable, tries), (False, []))


class LogLines(SimpleTestCase):
    def setUp(self):
        self.filter = OutageFilter()

    def say(self, error=None, **values):
        """The logged line or None, and whether it has a traceback."""
        told = (type(error), error, None) if error else None
        record = logging.LogRecord("x", logging.ERROR, "", 0, "It failed", None, told)
        record.__dict__.update(values)
        return (record.getMessage(), bool(record.exc_info)) if self.filter.filter(record) else None

    def test_an_unavailable_database_is_logged_once_and_then_rarely_with_a_count(self):
        away = failed("server closed the connection\n\tThis probably means …")
        self.assertEqual(self.say(away), ("It failed: server closed the connection", False))
        self.assertEqual([self.say(away) for _ in range(40)], [None] * 40)
        with mock.patch("time.monotonic", return_value=time.monotonic() + 11):
            told = "It failed: server closed the connection (and 40 more like this before)"
            self.assertEqual(self.say(away), (told, False))

    def test_another_reason_is_logged_at_once(self):
        self.say(failed("away", "57P01"))
        self.assertEqual(self.say(failed("no space left", "53100")), ("It failed: no space left", False))

    def test_refused_requests_are_logged_rarely_too(self):
        self.assertEqual(self.say(status_code=503), ("It failed", False))
        self.assertIsNone(self.say(status_code=507))
        self.assertIsNotNone(self.say(status_code=500))

    def test_every_other_failure_is_logged_with_its_traceback(self):
        for error in (ValueError("x"), failed("slow", "57014"), failed("wrong", "42P01", ProgrammingError)):
            self.assertEqual([self.say(error) for _ in range(2)], [("It failed", True)] * 2)


@override_settings(DATABASE_SECONDS=3)
class Bounds(SimpleTestCase):
    def setUp(self):
        self.enterContext(mock.patch.object(threads._default, "name", ""))

    def test_a_request_waits_for_a_statement_as_configured(self):
        with reading_for_request():
            self.assertEqual(statement_seconds(), 3)
            with reading_as(7):
                self.assertEqual(statement_seconds(), 3)

    def test_waiting_before_a_request_starts_is_subtracted_down_to_a_minimum(self):
        with reading_for_request(waited=1.2):
            self.assertEqual(statement_seconds(), 1.8)
        with reading_for_request(waited=9):
            self.assertEqual(statement_seconds(), threads.MIN_BUDGET_SECONDS)

    def test_answers_readers_and_the_admin_wait_longer_than_the_server(self):
        self.assertEqual(statement_seconds(), 22)
        with reading_as(7):
            self.assertEqual(statement_seconds(), 22)
        with reading_for_request():
            threads.request_reads_everything()
            self.assertEqual(statement_seconds(), 22)

    def test_commands_and_workers_wait_as_long_as_it_takes(self):
        with mock.patch.object(threads._default, "name", threads.EVERYTHING), reading_for_request():
            self.assertIsNone(statement_seconds())

    def test_all_waiting_of_a_request_counts_together(self):
        with reading_for_request():
            for _ in range(2):
                with threads.Waiting(), threads.Waiting():
                    time.sleep(0.1)
            self.assertAlmostEqual(statement_seconds(), 2.8, delta=0.09)
            threads._budget().left = -1
            self.assertEqual(statement_seconds(), threads.MIN_SECONDS)
            threads.request_may_wait()
            self.assertEqual(statement_seconds(), 22)

    async def test_work_that_may_be_refused_waits_like_a_request(self):
        self.assertAlmostEqual(await threads.in_database_within_budget(statement_seconds), 3, delta=0.5)
        with reading_as(7):
            self.assertAlmostEqual(await threads.in_database_within_budget(statement_seconds), 3, delta=0.5)
            self.assertEqual(await threads.in_database(statement_seconds), 22)


class Sessions(TestCase):
    """Not in a transaction of the test, because its session is lost."""

    def ask(self, statement="SELECT pg_sleep(3)"):
        seconds = mock.patch("chatsite.db.backend.database_sessions.statement_seconds", return_value=0.3)
        with (
            seconds,
            mock.patch.object(availability, "QUIET_SECONDS", 0.1),
            override_settings(LOCK_SECONDS=0.1),
            connection.pool.connection() as session,
        ):
            session.execute(statement)

    def test_an_answered_statement_of_any_thread_shows_that_the_database_is_available(self):
        for statement in ("SELECT 1", "SELECT 1 / 0"):
            with self.subTest(statement):
                availability.breaker._succeeded_at = float("-inf")
                with suppress(DataError), transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(statement)
                availability.breaker.record_timeout()
                self.assertFalse(availability.breaker.is_unavailable)

    def test_an_abandoned_session_is_replaced_by_the_pool(self):
        known = availability.breaker
        begun = time.monotonic()
        try:
            with self.assertRaisesMessage(psycopg.OperationalError, "did not answer within 0.3 s"):
                self.ask("SELECT pg_sleep(30)")
            self.assertLess(time.monotonic() - begun, 10)
            self.assertFalse(known.allows_probe() and known.allows_probe())
        finally:
            known.record_success()
        with connection.pool.connection() as session:
            self.assertEqual(session.execute("SELECT 1").fetchone(), (1,))

    def test_the_server_ends_a_statement_whose_session_was_given_up(self):
        try:
            with self.assertRaises(psycopg.OperationalError):
                self.ask("SELECT pg_sleep(30) -- given up")
            deadline = time.monotonic() + 10
            with connection.pool.connection() as session:
                while session.execute(RUNNING).fetchone() != (0,):
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.1)
        finally:
            availability.breaker.record_success()
