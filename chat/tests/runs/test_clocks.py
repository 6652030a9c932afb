"""Machines whose clocks differ by a minute: leases and limits use only the database's clock."""

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.errors import Refused
from chat.llm import use_model
from chat.models import JournalEntry, Lease, Run
from chat.requests import RunRequest
from chat.runs import (
    finish,
    journal,
)
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from ingestion.tests.factories import command_principal, make_document, make_user

MINUTE = timedelta(seconds=60)


@contextmanager
def clock(difference):
    """Let this machine's clock be ahead by so many seconds."""
    with patch("django.utils.timezone.now", lambda: datetime.now(UTC) + difference):
        yield


@patch.object(finish, "_database_is_stable", lambda: True)
@patch.object(finish, "SECOND_LOOK_SECONDS", 0.0)
class ClockTests(TransactionTestCase):
    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document(everyone=True)

    def ask(self):
        return runs.begin(self.principal, RunRequest("Leave?"))

    def close(self):
        """How many runs are closed by two looks at expired leases."""
        return runs.close_expired() + runs.close_expired()

    def test_a_fast_clock_does_not_close_running_answers(self):
        self.ask()
        with clock(MINUTE):
            self.assertEqual(self.close(), 0)

    def test_a_slow_clock_does_not_start_answers_that_look_dead_to_others(self):
        with clock(-MINUTE):
            self.ask()
        self.assertEqual(self.close(), 0)

    def test_a_slow_clock_does_not_keep_a_dead_answer_alive(self):
        with clock(MINUTE):
            self.ask()
        Lease.objects.update(until=datetime.now(UTC) - timedelta(seconds=1))
        with clock(-MINUTE):
            self.assertEqual(self.close(), 1)

    @override_settings(USER_CONCURRENT_ANSWERS=1)
    def test_concurrent_answers_are_counted_regardless_of_the_clock(self):
        for here, there in ((-MINUTE, MINUTE), (MINUTE, -MINUTE)):
            Run.objects.all().delete()
            with clock(here):
                self.ask()
            with clock(there), self.assertRaises(Refused):
                self.ask()

    @override_settings(USER_QUESTIONS_PER_MINUTE=1)
    def test_questions_per_minute_and_retry_after_do_not_depend_on_the_clock(self):
        for here, there in ((-MINUTE, MINUTE), (MINUTE, -MINUTE)):
            Run.objects.all().delete()
            with clock(here):
                self.ask()
            with clock(there), self.assertRaises(Refused) as refused:
                self.ask()
            self.assertTrue(55 < refused.exception.retry_after <= 61, refused.exception.retry_after)

    def test_the_journal_stays_as_long_for_readers_of_other_processes(self):
        for here, there in ((-2 * MINUTE, MINUTE), (MINUTE, -MINUTE)):
            with clock(here), use_model(ScriptedModel(words=["Five."])):
                asyncio.run(self.answered())
            with clock(there):
                journal.purge()
            self.assertTrue(JournalEntry.objects.exists())
            Run.objects.update(finished_at=datetime.now(UTC) - journal.JOURNAL_TTL)
            journal.purge()
            self.assertFalse(JournalEntry.objects.exists())

    async def answered(self):
        accepted = await in_database(self.ask)
        runs.start(accepted)
        await runs.wait_for_result(self.principal, accepted.run_id)


@patch.object(finish, "_database_is_stable", lambda: True)
class SecondLookTests(TransactionTestCase):
    """If PostgreSQL or its clock was frozen, all leases expire at once."""

    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        self.run = runs.begin(self.principal, RunRequest("Leave?"))
        self.expire()

    def expire(self):
        Lease.objects.update(until=datetime.now(UTC) - timedelta(seconds=1))

    def test_one_look_does_not_close_a_run(self):
        self.assertEqual((runs.close_expired(), runs.close_expired()), (0, 0))
        with patch.object(finish, "SECOND_LOOK_SECONDS", 0.0):
            self.assertEqual((runs.close_expired(), runs.close_expired()), (1, 0))

    def test_a_lease_renewed_between_two_looks_stays_alive(self):
        with patch.object(finish, "SECOND_LOOK_SECONDS", 0.0):
            runs.close_expired()
            journal.flush([self.run.run_id], [])
            self.assertEqual(runs.close_expired(), 0)
            self.expire()
            self.assertEqual((runs.close_expired(), runs.close_expired()), (0, 1))
