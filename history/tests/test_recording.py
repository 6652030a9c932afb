from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import patch

from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from chat.tests.conversations import answered
from chatsite.tests.db.test_reader_of_a_session import nobody_by_default
from chatsite.tests.limits import HANG_SECONDS
from history import recording
from history.models import Conversation, Message, Source
from history.recording import AnswerOutcome
from ingestion.tests.factories import command_principal, make_document, make_user


class RecordingTests(TestCase):
    def setUp(self):
        self.principal = command_principal(make_user())
        self.stranger = command_principal(make_user())
        self.conversation = recording.open_conversation(self.principal)

    def answer(self, **values):
        return recording.append(
            self.conversation, Message.Role.ASSISTANT, state=Message.State.STREAMING, **values
        )

    def test_messages_are_numbered_in_order(self):
        positions = [recording.append(self.conversation, Message.Role.USER, text).position for text in "abc"]
        self.assertEqual(positions, [0, 1, 2])

    def test_a_state_never_changes_back(self):
        answer = self.answer()
        self.assertTrue(
            recording.close_answer(
                answer.conversation.owner_id, answer.pk, AnswerOutcome(Message.State.STOPPED, "Half")
            )
        )
        self.assertFalse(
            recording.close_answer(
                answer.conversation.owner_id, answer.pk, AnswerOutcome(Message.State.COMPLETE, "Whole")
            )
        )
        answer.refresh_from_db()
        self.assertEqual((answer.state, answer.content), ("stopped", "Half"))

    def test_a_title_chosen_by_its_owner_stays(self):
        self.assertTrue(recording.set_title(self.principal.user_id, self.conversation.pk, "Found"))
        recording.rename(self.principal, self.conversation.pk, "  Mine \n own ")
        self.assertFalse(recording.set_title(self.principal.user_id, self.conversation.pk, "Found again"))
        self.conversation.refresh_from_db()
        self.assertEqual(self.conversation.title, "Mine own")
        with self.assertRaises(ValueError):
            recording.rename(self.principal, self.conversation.pk, " \x00 ")

    def test_another_person_changes_nothing(self):
        for change in (
            lambda: recording.rename(self.stranger, self.conversation.pk, "x"),
            lambda: recording.delete(self.stranger, self.conversation.pk),
            lambda: recording.restore(self.stranger, self.conversation.pk),
            lambda: recording.lock_conversation(self.stranger, self.conversation.pk),
        ):
            with self.assertRaises(Conversation.DoesNotExist):
                change()

    def test_a_deleted_conversation_can_be_restored_and_is_purged_later(self):
        recording.delete(self.principal, self.conversation.pk)
        self.assertFalse(Conversation.objects.owned_by(self.principal).exists())
        recording.purge()
        recording.restore(self.principal, self.conversation.pk)
        recording.delete(self.principal, self.conversation.pk)
        Conversation.objects.update(deleted_at=timezone.now() - timedelta(hours=2))
        recording.purge()
        self.assertFalse(Conversation.objects.exists())

    def test_conversations_stored_elsewhere_are_not_listed_and_purged_after_their_end(self):
        self.conversation = recording.open_conversation(self.principal, listed=False)
        answer = self.answer()
        self.assertEqual(Conversation.objects.owned_by(self.principal).count(), 1)
        Conversation.objects.update(updated_at=timezone.now() - timedelta(hours=2))
        recording.purge()
        self.assertEqual(Conversation.objects.count(), 2)
        recording.close_answer(
            answer.conversation.owner_id, answer.pk, AnswerOutcome(Message.State.COMPLETE, "Done")
        )
        Conversation.objects.update(updated_at=timezone.now() - timedelta(hours=2))
        recording.purge()
        self.assertEqual([item.listed for item in Conversation.objects.all()], [True])


class PurgeTests(TransactionTestCase):
    def test_a_process_without_a_reader_deletes_answers_with_their_sources(self):
        person = make_user()
        answered(person, make_document(owner=person))
        Conversation.objects.update(deleted_at=timezone.now() - timedelta(hours=2))
        with nobody_by_default():
            recording.purge()
        self.assertEqual((Conversation.objects.count(), Source.objects.count()), (0, 0))

    def test_two_processes_do_not_delete_the_same_conversations_at_once(self):
        for _ in range(3):
            conversation = recording.open_conversation(command_principal(make_user()))
            recording.append(conversation, Message.Role.USER, "Why?")
        Conversation.objects.update(deleted_at=timezone.now() - timedelta(hours=2))
        with ThreadPoolExecutor(1) as threads, transaction.atomic():
            with patch("history.recording.PURGE_BATCH", 2):
                recording.purge()
            # Neither waits for the first transaction, nor takes the rows that it deletes.
            deleted = threads.submit(lambda: (recording.purge(), connection.close())[0])
            self.assertEqual(deleted.result(timeout=HANG_SECONDS), 2)
        self.assertFalse(Conversation.objects.exists())
