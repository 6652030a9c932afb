"""Stopping an answer at unusual moments."""

import asyncio
from contextlib import aclosing

from django.test import TransactionTestCase, override_settings

from chat import runs
from chat.events import Finished
from chat.llm import use_model
from chat.requests import RunRequest
from chat.runs.active import run_slots
from chat.runs.manager import run_manager
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from chatsite.tests.limits import HANG_SECONDS
from ingestion.tests.factories import command_principal, make_document, make_user


@override_settings(JOURNAL_FLUSH_SECONDS=0.02)
class StopTests(TransactionTestCase):
    async def test_a_stop_during_the_start_ends_the_answer_without_leftovers(self):
        principal = command_principal(await in_database(make_user, "asker"))
        await in_database(lambda: make_document(everyone=True))
        taken = run_slots._taken
        with use_model(ScriptedModel(words=["word "] * 400, pause=0.05)):
            accepted = await in_database(runs.begin, principal, RunRequest("Leave?"))
            # The stop of another process arrives before the answer's task has run for the first time.
            await in_database(runs.request_stop, principal, accepted.run_id)
            runs.start(accepted)
            run_manager().stop(accepted.run_id)
            async with (
                asyncio.timeout(HANG_SECONDS),
                aclosing(runs.follow(principal, accepted.run_id)) as numbered,
            ):
                events = [event async for _, event in numbered]
            await runs.shutdown(HANG_SECONDS)
        self.assertEqual(events[-1], Finished("stopped"))
        self.assertEqual((run_manager().active, run_slots._taken), ({}, taken))
