"""Machines whose clocks differ by a minute: leases and limits use only the database's clock."""

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.errors import Refused
from chat.llm import use_model
from chat.llm.scripted import ScriptedModel
from chat.models import JournalEntry, Lease, Run
from chat.requests import RunRequest
from chat.runs import (
    finish,
    journal,
)
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

    def test_a_clock_that_is_ahead_takes_no_living_answer_for_dead(self):
        self.ask()
        with clock(MINUTE):
            self.assertEqual(self.close(), 0)

    def test_a_clock_that_is_behind_begins_no_answer_that_others_take_for_dead(self):
        with clock(-MINUTE):
            self.ask()
        self.assertEqual(self.close(), 0)

    def test_nor_does_it_keep_a_dead_one_alive(self):
        with clock(MINUTE):
            self.ask()
        Lease.objects.update(until=datetime.now(UTC) - timedelta(seconds=1))
        with clock(-MINUTE):
            self.assertEqual(self.close(), 1)

    @override_settings(USER_CONCURRENT_ANSWERS=1)
    def test_answers_at_once_are_counted_whatever_the_clock_says(self):
        for here, there in ((-MINUTE, MINUTE), (MINUTE, -MINUTE)):
            Run.objects.all().delete()
            with clock(here):
                self.ask()
            with clock(there), self.assertRaises(Refused):
                self.ask()

    @override_settings(USER_QUESTIONS_PER_MINUTE=1)
    def test_so_are_questions_of_a_minute_and_one_may_come_back_when_it_is_said(self):
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

    def test_nobody_is_taken_for_dead_at_one_look(self):
        self.assertEqual((runs.close_expired(), runs.close_expired()), (0, 0))
        with patch.object(finish, "SECOND_LOOK_SECONDS", 0.0):
            self.assertEqual((runs.close_expired(), runs.close_expired()), (1, 0))

    def test_who_renews_the_lease_between_two_looks_lives(self):
        with patch.object(finish, "SECOND_LOOK_SECONDS", 0.0):
            runs.close_expired()
            journal.flush([self.run.run_id], [])
            self.assertEqual(runs.close_expired(), 0)
            self.expire()
            self.assertEqual((runs.close_expired(), runs.close_expired()), (0, 1))
