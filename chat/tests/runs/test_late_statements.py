"""Statements that the database executes late, after they were repeated: no text is lost or stored twice."""

from unittest.mock import patch

from django.test import TestCase

from chat import runs
from chat.events import Failed, Finished, MessageDone, TextDelta, TitleChanged
from chat.models import Run
from chat.requests import RunRequest
from chat.runs import (
    finish,
    journal,
)
from chat.runs.journal import Batch
from chatsite.db.availability import breaker
from history import recording
from history.models import Conversation, Message
from ingestion.tests.factories import command_principal, make_user


class LateTests(TestCase):
    def setUp(self):
        self.run = runs.begin(command_principal(make_user("asker")), RunRequest("When does leave expire?"))
        self.events = [self.run.started("fake")]
        self.events += [TextDelta(f"word{number} ") for number in range(9)]

    def flush(self, first, last):
        batch = Batch(self.run.run_id, first, self.events[first - 1 : last])
        return journal.flush([self.run.run_id], [batch])

    def texts(self):
        return [event for _, event in journal.read(self.run.run_id)]

    def test_a_late_flush_after_its_repetition_removes_nothing(self):
        self.flush(1, 3)
        self.flush(4, 10)
        self.assertEqual(self.flush(4, 6), {self.run.run_id: False})
        self.assertEqual(self.texts(), self.events)

    def test_a_flush_repeated_with_more_text_is_stored_completely(self):
        self.flush(1, 3)
        self.flush(1, 10)
        self.assertEqual(self.texts(), self.events)

    def test_an_end_with_a_lost_confirmation_is_reported_as_stored(self):
        every = [*self.events, MessageDone("stop", ()), Finished(Message.State.COMPLETE)]
        batch = Batch(self.run.run_id, 1, every)
        for _ in range(2):
            self.assertEqual(finish.finish_run(self.run, batch, every), [every[-1]])

    def test_a_title_is_stored_with_the_end_and_its_event_precedes_it(self):
        end = Finished(Message.State.COMPLETE)
        every = [*self.events, MessageDone("stop", ()), end]
        last = finish.finish_run(self.run, Batch(self.run.run_id, 1, every), every, "Carried over")
        self.assertEqual(last, [TitleChanged("Carried over"), end])
        self.assertEqual(self.texts(), [*every[:-1], *last])
        self.assertEqual(Conversation.objects.get().title, "Carried over")

    def test_a_title_chosen_meanwhile_by_the_owner_stays(self):
        recording.rename(self.run.principal, self.run.conversation_id, "Mine")
        every = [*self.events, Finished(Message.State.COMPLETE)]
        last = finish.finish_run(self.run, Batch(self.run.run_id, 1, every), every, "Carried over")
        self.assertEqual(last, [every[-1]])
        self.assertEqual(self.texts(), every)
        self.assertEqual(Conversation.objects.get().title, "Mine")

    def test_a_run_that_another_process_has_ended_gets_no_title(self):
        finish.expire_all()
        every = [*self.events, Finished(Message.State.COMPLETE)]
        (last,) = finish.finish_run(self.run, Batch(self.run.run_id, 1, every), every, "Carried over")
        self.assertIsInstance(last, Failed)
        self.assertNotEqual(Conversation.objects.get().title, "Carried over")

    def test_the_end_stored_by_another_process_is_reported(self):
        every = [*self.events, Finished(Message.State.STOPPED)]
        finish.expire_all()
        (told,) = finish.finish_run(self.run, Batch(self.run.run_id, 1, every), every)
        self.assertEqual((told.state, told.code), ("interrupted", "interrupted"))
        self.assertIsInstance(told, Failed)

    def test_a_run_whose_text_cannot_be_verified_is_closed_without_verification(self):
        journal.flush([self.run.run_id], [Batch(self.run.run_id, 1, self.events)])
        with (
            patch("chat.verification.verdicts.verify", side_effect=ValueError),
            self.assertLogs("chat.verification", "ERROR") as logged,
        ):
            self.assertEqual(finish.expire_all(), 1)
        self.assertEqual(len(logged.records), 1)
        self.assertIn(str(self.run.run_id), logged.records[0].getMessage())
        message = Message.objects.get(pk=self.run.answer_id)
        self.assertEqual((message.state, message.verification), ("interrupted", []))
        self.assertTrue(message.content.startswith("word0"))

    def test_a_process_that_missed_the_database_closes_no_runs_within_a_lease(self):
        self.addCleanup(setattr, breaker, "_timed_out_at", breaker._timed_out_at)
        breaker._succeeded_at = float("-inf")
        breaker.record_timeout()
        breaker.record_success()
        self.assertFalse(finish._database_is_stable())

    def test_the_next_message_of_a_team_is_opened_once_despite_repetitions(self):
        Message.objects.filter(pk=self.run.answer_id).update(state=Message.State.COMPLETE)
        opened = [
            recording.append_answer(self.run.conversation_id, self.run.run_id, name).pk
            for name in ("Scout", "Scout")
        ]
        self.assertEqual(opened[0], opened[1])
        self.assertEqual(Message.objects.filter(run_id=self.run.run_id).count(), 2)
        self.assertTrue(Run.objects.unfinished().filter(pk=self.run.run_id).exists())
