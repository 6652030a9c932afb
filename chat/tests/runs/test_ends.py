"""How an answer ends if something happens right at its start, or after its last word."""

import asyncio
import time
from unittest.mock import patch

from django.db import OperationalError
from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import Finished, MessageDone, TextDelta
from chat.llm import use_model
from chat.requests import RunRequest
from chat.runs import finish, journal, manager
from chat.runs.manager import run_manager
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.availability import DISK_FULL, breaker
from chatsite.db.threads import in_database
from chatsite.tests.limits import HANG_SECONDS, MARGIN_SECONDS
from history.models import Message
from ingestion.search import retrieval
from ingestion.tests.factories import command_principal, make_document, make_user

WORDS = [f"word{number} " for number in range(20)]


class SlowToSuggest(ScriptedModel):
    async def followups(self, prompt, answer):
        await asyncio.sleep(20)
        return []


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class EndTests(TransactionTestCase):
    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document(everyone=True)

    async def begun(self):
        request = RunRequest("Carry over leave until when?")
        accepted = await in_database(runs.begin, self.principal, request)
        runs.start(accepted)
        return accepted

    async def ended(self, accepted):
        """Return the message's state and text, and the last event that a reader gets."""
        async with asyncio.timeout(10):
            events = [event async for _, event in runs.follow(self.principal, accepted.run_id)]
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        message = await in_database(Message.objects.get, pk=accepted.answer_id)
        self.assertEqual(message.content, text)
        return message.state, text, events[-1]

    async def said(self, accepted):
        async for _, event in runs.follow(self.principal, accepted.run_id):
            if isinstance(event, MessageDone):
                return

    async def test_a_stop_or_a_shutdown_after_the_last_word_leaves_it_complete_for_readers_too(self):
        for end in (
            lambda accepted: runs.stop(self.principal, accepted.run_id),
            lambda accepted: runs.shutdown(),
        ):
            with use_model(SlowToSuggest(words=WORDS)):
                accepted = await self.begun()
                await self.said(accepted)
                await end(accepted)
                self.assertEqual(
                    await self.ended(accepted), ("complete", "".join(WORDS), Finished("complete"))
                )

    async def test_an_answer_that_cannot_be_verified_is_complete(self):
        with (
            use_model(ScriptedModel(["Carry over", " five days [leave.txt]."])),
            patch("chat.verification.verdicts.verify", side_effect=ValueError),
            self.assertLogs("chat.verification", "ERROR") as logged,
        ):
            accepted = await self.begun()
            state, text, end = await self.ended(accepted)
        self.assertEqual((state, end), ("complete", Finished("complete")))
        self.assertTrue(text.startswith("Carry over five days"))
        self.assertEqual(len(logged.records), 1)
        self.assertIn(str(accepted.run_id), logged.records[0].getMessage())

    async def test_an_answer_within_the_grace_period_is_finished_and_read_completely(self):
        with use_model(ScriptedModel(words=WORDS, pause=0.02)):
            accepted = await self.begun()
            reading = asyncio.create_task(self.ended(accepted))
            await runs.shutdown(HANG_SECONDS)
            self.assertEqual(run_manager().active, {})
            self.assertEqual(await reading, ("complete", "".join(WORDS), Finished("complete")))

    async def test_the_first_answer_on_a_full_disk_ends_within_seconds(self):
        full = OperationalError("No space left on device")
        full.sqlstate = DISK_FULL
        began = time.monotonic()
        with (
            patch.multiple(breaker, full_since=float("inf"), _full_at=float("-inf")),
            patch.object(manager, "FULL_DISK_SECONDS", 0.5),
            patch.object(journal, "flush", side_effect=full),
            patch.object(finish, "finish_run", side_effect=full),
            use_model(ScriptedModel(words=WORDS)),
        ):
            accepted = await self.begun()
            async with asyncio.timeout(20):
                events = [event async for _, event in runs.follow(self.principal, accepted.run_id)]
        self.assertEqual((events[-1].state, events[-1].code), ("interrupted", "storage_full"))
        self.assertLess(time.monotonic() - began, 0.5 + MARGIN_SECONDS)

    async def test_a_short_outage_of_the_database_only_delays_an_answer(self):
        failures = [OperationalError(), OperationalError()]

        def search(*arguments, **options):
            if failures:
                raise failures.pop()
            return retrieval_search(*arguments, **options)

        retrieval_search = retrieval.search
        with patch.object(retrieval, "search", search), use_model(ScriptedModel(words=WORDS)):
            accepted = await self.begun()
            self.assertEqual(await self.ended(accepted), ("complete", "".join(WORDS), Finished("complete")))
        self.assertEqual(failures, [])
