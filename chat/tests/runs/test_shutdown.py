"""The shutdown of a process with running answers, on the real database and one event loop."""

import asyncio
import time
from contextlib import aclosing
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.errors import Refused
from chat.events import Failed
from chat.llm import use_model
from chat.requests import RunRequest
from chat.runs.manager import run_manager
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from chatsite.tests.limits import MARGIN_SECONDS
from ingestion.tests.factories import command_principal, make_document, make_user


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
@pytest.mark.slow
class ShutdownTests(TransactionTestCase):
    def setUp(self):
        self.principal = command_principal(make_user("asker"))
        make_document(everyone=True)

    async def begun(self):
        accepted = await in_database(runs.begin, self.principal, RunRequest("Leave?"))
        runs.start(accepted)
        return accepted.run_id

    async def end(self, run):
        async with asyncio.timeout(10), aclosing(runs.follow(self.principal, run)) as numbered:
            return [event async for _, event in numbered][-1]

    async def test_many_answers_start_ending_early_enough_to_end_in_time(self):
        with (
            use_model(ScriptedModel(words=["word "] * 400, pause=0.05)),
            patch("chat.runs.manager.ENDING_SECONDS", 2),
        ):
            ids = [await self.begun() for _ in range(3)]
            began = time.monotonic()
            await runs.shutdown(8)
            took = time.monotonic() - began
            ends = [await self.end(run) for run in ids]
        self.assertTrue(1.9 < took < 7, took)
        self.assertEqual({(end.state, end.code) for end in ends}, {("interrupted", "interrupted")})

    async def test_an_answer_started_during_shutdown_ends_at_once(self):
        with use_model(ScriptedModel(words=["word "] * 400, pause=0.05)):
            await runs.shutdown()
            end = await self.end(await self.begun())
        self.assertIsInstance(end, Failed)
        self.assertEqual(end.code, "interrupted")

    async def test_ends_that_cannot_be_stored_do_not_keep_a_process_alive(self):
        with (
            use_model(ScriptedModel(words=["word "] * 400, pause=0.05)),
            patch("chat.runs.manager.LAST_SECONDS", 0.5),
            patch("chat.runs.journal.end_run", side_effect=OperationalError("It hangs.")),
        ):
            ids = [await self.begun() for _ in range(3)]
            began = time.monotonic()
            await runs.shutdown(0.3)
            await runs.shutdown()
            took = time.monotonic() - began
        self.assertLess(took, 0.3 + 0.5 + MARGIN_SECONDS)
        self.assertTrue(
            all(run in run_manager().active for run in ids)
        )  # so their ends are stored as long as the process lives
        run_manager()._until = float("inf")
        await runs.shutdown()
        self.assertEqual({(await self.end(run)).code for run in ids}, {"interrupted"})

    async def test_followers_of_an_answer_in_another_process_are_told_to_retry(self):
        with use_model(ScriptedModel(words=["word "] * 400, pause=0.05)):
            run = await self.begun()
            active = run_manager().active.pop(run)  # hides it from the reader, not from its own task
            following = asyncio.create_task(self.end(run))
            await asyncio.sleep(0.2)
            runs.hub().shutdown()
            with self.assertRaises(Refused) as refused:
                await following
            run_manager().active[run] = active
            await runs.shutdown()
        self.assertEqual(refused.exception.code, "interrupted")
