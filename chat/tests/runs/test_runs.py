"""Running answers on the real database and one event loop."""

import asyncio
import threading
from collections import Counter
from contextlib import aclosing
from datetime import timedelta
from unittest.mock import patch
from uuid import uuid4

from django.contrib.auth.models import Group
from django.test import TransactionTestCase, override_settings
from django.utils import timezone

from chat import runs
from chat.errors import Refused
from chat.events import ContextReady, Failed, Finished, Started, TextDelta
from chat.llm import ModelError, use_model
from chat.models import JournalEntry, Lease, MessageAllowance, Run
from chat.requests import Options, RunRequest
from chat.runs import (
    finish,
    journal,
)
from chat.runs.manager import (
    ActiveRun,
    RunManager,
    run_manager,
)
from chat.tests.scripted_model import ScriptedModel
from chat.tests.sources import source
from chatsite.db.threads import in_database
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from history import recording
from history.models import Conversation, Message, Source
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.tests.factories import command_principal, make_document, make_user

WORDS = [f"word{number} " for number in range(40)]


def ask(principal, text="Carry over leave until when?", conversation=None, **values):
    return runs.begin(principal, RunRequest(text, conversation), **values)


async def collect(principal, run_id, after=0):
    async with aclosing(runs.follow(principal, run_id, after)) as numbered:
        return [item async for item in numbered]


async def first_text(accepted):
    """Wait until the answer has text: its search is over then."""
    async with asyncio.timeout(HANG_SECONDS):
        while not run_manager().active[accepted.run_id].has_text():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def text_of(numbered):
    return "".join(event.text for _, event in numbered if isinstance(event, TextDelta))


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class RunTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)
        self.document = make_document(everyone=True)

    async def answered(self, model, text="Carry over leave until when?", **values):
        with use_model(model):
            accepted = await in_database(ask, self.principal, text, **values)
            runs.start(accepted)
            return accepted, await collect(self.principal, accepted.run_id)

    async def message(self, accepted):
        return await in_database(Message.objects.get, pk=accepted.answer_id)

    async def test_an_answer_is_followed_stored_and_complete(self):
        model = ScriptedModel(words=["Five ", "days [guide.md]."], suggestions=["And sick pay?"])
        accepted, numbered = await self.answered(model)
        events = [event for _, event in numbered]
        self.assertIsInstance(events[0], Started)
        self.assertEqual(events[-1], Finished("complete"))
        self.assertEqual([number for number, _ in numbered], list(range(1, len(numbered) + 1)))
        message = await self.message(accepted)
        self.assertEqual(
            (message.state, message.content, message.finish_reason),
            ("complete", "Five days [guide.md].", "stop"),
        )
        self.assertEqual((message.citations, message.followups), (["guide.md"], ["And sick pay?"]))
        self.assertEqual(message.searched_count, 1)
        conversation = await in_database(Conversation.objects.get, pk=accepted.conversation_id)
        self.assertEqual(conversation.title, "Carry over leave until when?")
        run = await in_database(Run.objects.get, pk=accepted.run_id)
        self.assertTrue(0 <= run.first_word_ms < 1_000 * HANG_SECONDS)
        source = await in_database(Source.objects.get, message=accepted.answer_id)
        self.assertEqual(source.document_id, self.document.pk)

    async def test_a_reader_that_leaves_does_not_affect_the_answer(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.005)):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            async with aclosing(runs.follow(self.principal, accepted.run_id)) as numbered:
                async for _, event in numbered:
                    if isinstance(event, TextDelta):
                        break
            later = await collect(self.principal, accepted.run_id)
        self.assertEqual(text_of(later), "".join(WORDS))
        self.assertEqual((await self.message(accepted)).state, "complete")

    async def test_readers_resume_where_they_left(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.002)):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            whole = await collect(self.principal, accepted.run_id)
        for after in (0, 1, 5, len(whole) - 2):
            self.assertEqual(await collect(self.principal, accepted.run_id, after), whole[after:])

    async def test_another_process_reads_the_same_events_from_the_journal(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.01)):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            # Hides the run from the reader, not from its own task.
            active = run_manager().active.pop(accepted.run_id)
            elsewhere = asyncio.create_task(collect(self.principal, accepted.run_id))
            await asyncio.sleep(0.05)
            run_manager().active[accepted.run_id] = active
            numbered = await elsewhere
        self.assertEqual(text_of(numbered), "".join(WORDS))
        self.assertEqual(numbered[-1][1], Finished("complete"))
        context = next(event for _, event in numbered if isinstance(event, ContextReady))
        self.assertEqual([source.label for source in context.sources], ["guide.md"])

    async def test_a_reader_buffers_little_of_a_long_journal_and_reads_it_completely(self):
        accepted, numbered = await self.answered(ScriptedModel(words=WORDS, pause=0.03))
        await runs.shutdown(HANG_SECONDS)
        with (
            patch("chat.runs.follow.MAX_READ", 7),
            patch.object(journal, "read", wraps=journal.read) as read,
        ):
            told = await collect(self.principal, accepted.run_id)
        self.assertEqual([number for number, _ in told], [number for number, _ in numbered])
        self.assertEqual(text_of(told), text_of(numbered))
        self.assertGreater(read.call_count, 3)

    async def test_after_the_end_a_run_is_replayed_from_its_message(self):
        accepted, _ = await self.answered(ScriptedModel(words=["Five days."]))
        await runs.shutdown(HANG_SECONDS)  # removes the run from memory
        await in_database(JournalEntry.objects.all().delete)
        numbered = await collect(self.principal, accepted.run_id, after=3)
        self.assertEqual(numbered[0][0], 1)
        self.assertEqual((text_of(numbered), numbered[-1][1]), ("Five days.", Finished("complete")))

    async def test_a_stop_keeps_the_text_and_closes_the_model(self):
        model = ScriptedModel(words=WORDS * 10, pause=0.01)
        with use_model(model):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            await first_text(accepted)
            await in_database(runs.request_stop, self.principal, accepted.run_id)
            numbered = await collect(self.principal, accepted.run_id)
        self.assertEqual(numbered[-1][1], Finished("stopped"))
        message = await self.message(accepted)
        self.assertEqual(message.state, "stopped")
        self.assertTrue(message.content and "".join(WORDS * 10).startswith(message.content))
        self.assertEqual((message.content, model.closed), (text_of(numbered), 1))

    async def test_a_run_that_no_process_executed_is_answered_once(self):
        await in_database(ask, self.principal, idempotency_key="k1")
        await in_database(runs.expire_all)
        model = ScriptedModel(words=["Five ", "days."])
        accepted, numbered = await self.answered(model, idempotency_key="k1")
        self.assertEqual(text_of(numbered), "Five days.")
        again, replayed = await self.answered(model, idempotency_key="k1")
        self.assertEqual((again.run_id, replayed), (accepted.run_id, numbered))

    async def test_stopping_twice_or_too_late_changes_nothing(self):
        accepted, _ = await self.answered(ScriptedModel(words=["Five."]))
        await in_database(runs.request_stop, self.principal, accepted.run_id)
        await in_database(runs.request_stop, self.principal, accepted.run_id)
        self.assertEqual((await self.message(accepted)).state, "complete")

    async def test_a_model_that_fails_before_its_text_leaves_a_failed_message(self):
        accepted, numbered = await self.answered(
            ScriptedModel(words=[], error=ModelError("upstream_unavailable")), request_id="ref-1"
        )
        self.assertEqual(numbered[-1][1], Failed("failed", "upstream_unavailable", "ref-1"))
        self.assertEqual((await self.message(accepted)).state, "failed")

    async def test_a_model_that_fails_in_the_middle_leaves_its_text_interrupted(self):
        accepted, _ = await self.answered(
            ScriptedModel(words=["Half "], error=ModelError("upstream_timeout"))
        )
        message = await self.message(accepted)
        self.assertEqual(
            (message.state, message.content, message.error_code), ("interrupted", "Half ", "upstream_timeout")
        )

    async def test_a_text_without_a_finish_reason_is_interrupted_and_an_empty_one_failed(self):
        accepted, _ = await self.answered(ScriptedModel(words=["Half"], reason=None))
        self.assertEqual((await self.message(accepted)).state, "interrupted")
        accepted, _ = await self.answered(ScriptedModel(words=[], reason=None))
        message = await self.message(accepted)
        self.assertEqual((message.state, message.error_code), ("failed", "empty_answer"))

    async def test_a_programming_error_is_reported_with_a_fixed_message(self):
        with self.assertLogs("chat.runs.manager", "ERROR"):
            accepted, numbered = await self.answered(
                ScriptedModel(words=["a"], error=ZeroDivisionError("secret"))
            )
        self.assertEqual(numbered[-1][1].code, "internal")
        self.assertEqual((await self.message(accepted)).state, "interrupted")

    async def test_a_shutdown_interrupts_the_answer_and_keeps_the_text(self):
        with use_model(ScriptedModel(words=WORDS * 10, pause=0.01)):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            async with aclosing(runs.follow(self.principal, accepted.run_id)) as numbered:
                told = await anext(event.text async for _, event in numbered if isinstance(event, TextDelta))
            await runs.shutdown()
        message = await self.message(accepted)
        self.assertEqual(message.state, "interrupted")
        self.assertTrue(told)
        self.assertEqual(message.content[: len(told)], told)

    async def test_text_is_stored_while_it_is_generated(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.02)):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            stored = []
            for _ in range(200):
                stored = await in_database(
                    lambda: list(JournalEntry.objects.values_list("events", flat=True))
                )
                if "word3" in str(stored):
                    break
                await asyncio.sleep(0.01)
            self.assertIn("word3", str(stored))
            self.assertNotIn("carry over five days", str(stored))  # no passage text in the journal
            await collect(self.principal, accepted.run_id)

    async def test_a_process_too_busy_to_renew_its_leases_does_not_close_its_own_answers(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.02)), override_settings(JOURNAL_FLUSH_SECONDS=60):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            reader = asyncio.create_task(collect(self.principal, accepted.run_id))
            await in_database(Lease.objects.update, until=timezone.now() - timedelta(seconds=1))
            with patch.object(finish, "SECOND_LOOK_SECONDS", 0):
                closed = [await in_database(runs.close_expired) for _ in range(3)]
            self.assertEqual(closed, [0, 0, 0])
            self.assertEqual((await reader)[-1][1], Finished("complete"))
        self.assertEqual((await self.message(accepted)).content, "".join(WORDS))

    async def test_answers_that_end_together_do_not_keep_the_journal_of_others_waiting(self):
        manager, ended = run_manager(), []

        async def ended_before_a_flush():
            async with manager._writing:
                return len(ended)

        def finished(*args):
            ended.append(args)
            return finish_run(*args)

        finish_run = finish.finish_run
        with use_model(ScriptedModel(words=["Five."])), patch.object(finish, "finish_run", finished):
            asked = [await in_database(ask, self.principal, f"Question {number}?") for number in range(9)]
            await manager._writing.acquire()
            for accepted in asked:
                runs.start(accepted)
            while not all(active.has_whole_text() for active in manager.active.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            flush = asyncio.create_task(ended_before_a_flush())
            await asyncio.sleep(0)
            manager._writing.release()
            self.assertLessEqual(await flush, 1)
            for accepted in asked:
                await collect(self.principal, accepted.run_id)
        self.assertEqual(len(ended), 9)

    async def test_followups_search_with_their_context_in_order(self):
        model = ScriptedModel(words=["Five."])
        first, _ = await self.answered(model)
        await self.answered(model, "And for part-time staff?", conversation=first.conversation_id)
        self.assertEqual(
            [turn.content for turn in model.prompts[-1].earlier], ["Carry over leave until when?", "Five."]
        )

    async def test_a_question_is_suggested_once_in_a_conversation(self):
        model = ScriptedModel(words=["Five."], suggestions=["And sick pay?"])
        first, _ = await self.answered(model)
        offered = [(await self.message(first)).followups]
        for question in ("How many days may I carry over?", "Until when may I carry leave over?"):
            accepted, _ = await self.answered(model, question, conversation=first.conversation_id)
            offered.append((await self.message(accepted)).followups)
        self.assertEqual(offered, [["And sick pay?"], [], []])

    async def test_a_disabled_account_stops_its_answer_and_its_reader(self):
        with use_model(ScriptedModel(words=WORDS * 200, pause=0.01)):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            reader = asyncio.create_task(collect(self.principal, accepted.run_id))
            await first_text(accepted)
            await in_database(type(self.user).objects.filter(pk=self.user.pk).update, is_active=False)
            await asyncio.wait([reader], timeout=2 + MARGIN_SECONDS)
            self.assertTrue(reader.done())
            await asyncio.gather(*(active.task for active in run_manager().active.values()))
        self.assertEqual((await self.message(accepted)).state, "stopped")

    async def test_an_answer_ends_when_its_owner_loses_access_to_its_sources(self):
        group = await in_database(Group.objects.create, name="Staff")
        await in_database(self.user.groups.add, group)
        changes = {
            "the owner left the group": lambda: self.user.groups.remove(group),
            "other readers were chosen": lambda: set_audience(self.document, Audience()),
            "the document was deleted": self.document.delete,
        }
        for reason, change in changes.items():
            await in_database(set_audience, self.document, Audience(group_ids=frozenset({group.pk})))
            await in_database(self.user.groups.add, group)
            with self.subTest(reason), use_model(ScriptedModel(words=WORDS * 20, pause=0.01)):
                accepted = await in_database(ask, self.principal)
                runs.start(accepted)
                reader = asyncio.create_task(collect(self.principal, accepted.run_id))
                await first_text(accepted)
                await in_database(change)
                await asyncio.wait([reader], timeout=2 + MARGIN_SECONDS)
                self.assertTrue(reader.done())
                self.assertEqual((await reader)[-1][1].state, "interrupted")
                message = await self.message(accepted)
                self.assertEqual((message.state, message.error_code), ("interrupted", "interrupted"))
                self.assertTrue(message.content.startswith("word0 word1"))

    async def test_sources_found_during_a_check_of_rights_do_not_count_as_withdrawn(self):
        active = ActiveRun(await in_database(ask, self.principal))
        active.task = asyncio.create_task(asyncio.sleep(5))
        running = RunManager()
        running.active[active.run.run_id] = active
        found = ContextReady((source(),), ())
        with patch.object(journal, "count_readable_sources", lambda asked: active.publish(found) or {}):
            await running._check_rights()
        self.assertEqual((active.sources, active.withdrawn), ({active.run.answer_id: 1}, False))
        active.task.cancel()

    async def test_an_answer_continues_while_its_sources_cannot_be_checked(self):
        """For example while a table of documents is locked. The run's lease must not expire."""
        locked = threading.Event()

        def look(asked):
            locked.wait(HANG_SECONDS)
            return Counter(message for _, message in asked)

        with (
            patch.object(journal, "count_readable_sources", look),
            use_model(ScriptedModel(words=WORDS * 60, pause=0.02)),
        ):
            accepted = await in_database(ask, self.principal)
            runs.start(accepted)
            try:
                for _ in range(100):  # 10 s of the 48 s that the answer takes
                    if "word9 " in text_of(await in_database(journal.read, accepted.run_id)):
                        break
                    await asyncio.sleep(0.1)
                else:
                    self.fail("nothing was written")
            finally:
                locked.set()
                await runs.stop(self.principal, accepted.run_id)
                await asyncio.gather(*(active.task for active in run_manager().active.values()))
        self.assertEqual((await self.message(accepted)).state, "stopped")

    async def test_a_withdrawn_source_is_not_sent_to_a_later_reader(self):
        accepted, _ = await self.answered(ScriptedModel(words=["Five days [guide.md]."]))
        await in_database(self.document.delete)
        numbered = await collect(self.principal, accepted.run_id)
        context = next(event for _, event in numbered if isinstance(event, ContextReady))
        self.assertEqual(context.sources, ())


class BeginTests(TransactionTestCase):
    def setUp(self):
        self.user = make_user("asker")
        self.principal = command_principal(self.user)

    def refused(self, code, call, *args, **values):
        with self.assertRaises(Refused) as caught:
            call(*args, **values)
        self.assertEqual(caught.exception.code, code)

    def test_empty_overlong_and_binary_messages_are_refused_and_nothing_is_stored(self):
        self.refused("message_empty", ask, self.principal, " \n\t ")
        self.refused("message_too_long", ask, self.principal, "x" * 32_001)
        self.refused("message_too_long", ask, self.principal, "ﷺ" * 31_900)  # 574,200 in normal form
        self.refused("message_not_text", ask, self.principal, "a\x00b")
        self.refused("message_not_text", ask, self.principal, "a\ud800b")
        self.assertEqual(Conversation.objects.count(), 0)

    def test_a_message_of_maximum_length_is_stored_completely(self):
        accepted = ask(self.principal, "ü" * 32_000)
        self.assertEqual(len(Message.objects.get(pk=accepted.question_id).content), 32_000)

    def test_another_persons_conversation_is_not_found(self):
        theirs = ask(command_principal(make_user("other")))
        self.refused("not_found", ask, self.principal, "Hello?", theirs.conversation_id)
        self.refused("not_found", ask, self.principal, "Hello?", uuid4())
        self.refused("answer_not_found", runs.request_stop, self.principal, theirs.run_id)
        self.refused("answer_not_found", runs.again, self.principal, theirs.answer_id)

    def test_another_persons_run_is_not_followed(self):
        theirs = ask(command_principal(make_user("other")))
        self.refused("answer_not_found", lambda: asyncio.run(collect(self.principal, theirs.run_id)))
        self.refused("answer_not_found", lambda: asyncio.run(collect(self.principal, uuid4())))

    def test_a_conversation_gets_a_title_with_its_first_question(self):
        opened = recording.open_conversation(self.principal)
        runs.begin(self.principal, RunRequest("May I carry over leave?", opened.pk))
        opened.refresh_from_db()
        self.assertEqual((opened.title, opened.title_by_owner), ("May I carry over leave", False))

    def test_the_same_key_returns_the_same_run(self):
        first = ask(self.principal, idempotency_key="k1")
        again = ask(self.principal, idempotency_key="k1")
        self.assertEqual(
            (first.run_id, first.is_new, again.run_id, again.is_new),
            (first.run_id, True, first.run_id, False),
        )
        self.assertEqual(Message.objects.count(), 2)

    def test_the_same_key_with_another_body_is_refused(self):
        ask(self.principal, idempotency_key="k1")
        self.refused("idempotency_mismatch", ask, self.principal, "Other?", idempotency_key="k1")
        with self.assertRaises(Refused):
            runs.begin(
                self.principal,
                RunRequest("Carry over leave until when?", options=Options(top=9)),
                idempotency_key="k1",
            )

    def test_the_key_of_a_deleted_conversation_is_refused_at_once(self):
        first = ask(self.principal, idempotency_key="k1")
        Conversation.objects.filter(pk=first.conversation_id).update(deleted_at=timezone.now())
        self.refused("answer_not_found", ask, self.principal, idempotency_key="k1")

    def test_a_run_that_no_process_executed_starts_with_the_next_request_of_its_key(self):
        lost = ask(
            self.principal, idempotency_key="k1"
        )  # as if its commit was not acknowledged: nobody starts it
        self.assertFalse(ask(self.principal, idempotency_key="k1").is_new)
        runs.expire_all()
        self.refused("idempotency_mismatch", ask, self.principal, "Other?", idempotency_key="k1")
        begun = ask(self.principal, idempotency_key="k1")
        self.assertTrue(begun.is_new)
        self.assertNotEqual(begun.run_id, lost.run_id)
        self.assertEqual(begun.question_id, lost.question_id)
        again = ask(self.principal, idempotency_key="k1")
        self.assertEqual((again.run_id, again.is_new), (begun.run_id, False))
        self.assertEqual(Message.objects.get(pk=lost.answer_id).state, "interrupted")

    def test_a_run_that_no_process_executed_is_not_counted_twice(self):
        MessageAllowance.objects.create(user=self.user, messages=1)
        ask(self.principal, idempotency_key="k1")
        runs.expire_all()
        begun = ask(self.principal, idempotency_key="k1")
        self.assertTrue(begun.is_new)
        self.assertEqual(begun.allowance.left, 0)
        runs.expire_all()
        self.refused("quota_exceeded", ask, self.principal, "Another?")

    def test_fifty_concurrent_requests_start_an_unexecuted_run_once(self):
        ask(self.principal, idempotency_key="k1")
        runs.expire_all()

        async def race():
            calls = [in_database(ask, self.principal, idempotency_key="k1") for _ in range(50)]
            return await asyncio.gather(*calls)

        accepted = asyncio.run(race())
        self.assertEqual(len({each.run_id for each in accepted}), 1)
        self.assertEqual([each.is_new for each in accepted].count(True), 1)
        self.assertEqual(Message.objects.filter(role="user").count(), 1)
        self.assertEqual(Run.objects.count(), 2)

    def test_a_run_that_was_executed_or_followed_by_another_question_keeps_its_key(self):
        executed = ask(self.principal, idempotency_key="k1")
        journal.flush([executed.run_id], [journal.Batch(executed.run_id, 1, [executed.started("model")])])
        followed = ask(self.principal, idempotency_key="k2")
        runs.expire_all()
        ask(self.principal, "Another?", followed.conversation_id)
        for key, known in (("k1", executed), ("k2", followed)):
            again = ask(self.principal, idempotency_key=key)
            self.assertEqual((again.run_id, again.is_new), (known.run_id, False))

    def test_the_same_key_of_another_person_is_another_key(self):
        first = ask(self.principal, idempotency_key="k1")
        other = ask(command_principal(make_user("other")), idempotency_key="k1")
        self.assertNotEqual(first.run_id, other.run_id)

    def test_fifty_concurrent_requests_with_one_key_are_one_question(self):
        async def many():
            calls = [in_database(ask, self.principal, idempotency_key="k1") for _ in range(50)]
            return await asyncio.gather(*calls)

        accepted = asyncio.run(many())
        self.assertEqual(len({item.run_id for item in accepted}), 1)
        self.assertEqual(sum(item.is_new for item in accepted), 1)
        self.assertEqual(
            (Conversation.objects.count(), Message.objects.count(), Run.objects.count()), (1, 2, 1)
        )

    def test_a_second_question_waits_for_the_answer(self):
        first = ask(self.principal)
        self.refused("generation_in_progress", ask, self.principal, "Next?", first.conversation_id)

    def test_a_run_of_a_dead_process_is_closed_and_does_not_block(self):
        first = ask(self.principal)
        Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
        self.refused("generation_in_progress", ask, self.principal, "Next?", first.conversation_id)
        with patch.object(finish, "SECOND_LOOK_SECONDS", 0):
            ask(self.principal, "Next?", first.conversation_id)
        message = Message.objects.get(pk=first.answer_id)
        self.assertEqual((message.state, message.error_code), ("interrupted", "interrupted"))

    def test_a_dead_answer_keeps_the_text_of_its_journal_and_ends_once(self):
        first = ask(self.principal)
        JournalEntry.objects.create(
            run_id=first.run_id, first=1, last=2, events=[["TextDelta", "Half an "], ["TextDelta", "answer"]]
        )
        self.assertEqual(runs.close_expired(), 0)
        Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
        with patch.object(finish, "SECOND_LOOK_SECONDS", 0):
            self.assertEqual([runs.close_expired() for _ in range(3)], [0, 1, 0])
        message = Message.objects.get(pk=first.answer_id)
        self.assertEqual((message.state, message.content), ("interrupted", "Half an answer"))
        numbered = asyncio.run(collect(self.principal, first.run_id))
        self.assertEqual((text_of(numbered), numbered[-1][1].state), ("Half an answer", "interrupted"))

    def test_events_of_a_later_version_do_not_hide_text_of_a_dead_answer(self):
        first = ask(self.principal)
        words = [["TextDelta", "Half an "], ["Later", {"more": 1}], ["TextDelta", "answer"], ["Later", {}]]
        JournalEntry.objects.create(run_id=first.run_id, first=1, last=4, events=words)
        runs.expire_all()
        self.assertEqual(Message.objects.get(pk=first.answer_id).content, "Half an answer")
        numbered = asyncio.run(collect(self.principal, first.run_id))
        self.assertEqual((text_of(numbered), numbered[-1][1].state), ("Half an answer", "interrupted"))

    def test_regenerating_keeps_the_earlier_answer(self):
        first = ask(self.principal)
        runs.expire_all()
        second = runs.again(self.principal, first.answer_id)
        self.assertEqual(second.question_id, first.question_id)
        self.assertEqual(Message.objects.get(pk=second.answer_id).position, 2)
        runs.expire_all()
        ask(self.principal, "Another?", first.conversation_id)
        runs.expire_all()
        third = runs.again(self.principal, first.answer_id)
        self.assertEqual(third.question_id, first.question_id)
        stored = Message.objects.filter(conversation=first.conversation_id)
        self.assertEqual(stored.count(), 6)
        shown = stored.chosen().order_by("position").values_list("pk", flat=True)
        self.assertEqual(list(shown), [first.question_id, third.answer_id])
