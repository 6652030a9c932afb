"""Late readers of a long answer: many pieces are merged into few, from memory and from the journal."""

import asyncio
import json
from contextlib import aclosing
from itertools import pairwise
from uuid import UUID

import pytest

from chat import runs
from chat.events import Finished, TextDelta
from chat.llm import use_model
from chat.llm.chat_model import End
from chat.models import JournalEntry
from chat.portal import consumers
from chat.portal.frames import SocketFrames
from chat.requests import RunRequest
from chat.runs import journal
from chat.runs.active import MAX_TEXT
from chat.runs.manager import run_manager
from chat.tests.api.test_run_events import ASKED, RunEventsCase
from chat.tests.portal.test_transcript import Reader
from chat.tests.scripted_model import ScriptedModel
from chatsite.db.threads import in_database
from ingestion.tests.factories import command_principal

WORDS = [f"word{number} " + "\n\n" * (number % 40 == 39) for number in range(3000)]  # 30,000 characters
TEXT = "".join(WORDS)
PLACE = 1  # position of the answer in its conversation


def text_of(told):
    return "".join(event.get("text", "") for event in told)


class HeldAtItsEnd(ScriptedModel):
    """Sends all its words, but the end of the answer only after `released` is set."""

    def __init__(self, **values):
        super().__init__(**values)
        self.released = asyncio.Event()

    async def answer(self, prompt):
        async with aclosing(super().answer(prompt)) as parts:
            async for part in parts:
                if isinstance(part, End):
                    await self.released.wait()
                yield part


@pytest.mark.slow
class BehindTests(RunEventsCase):
    async def test_a_long_answer_is_sent_in_few_chunks_and_can_resume_from_every_number(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        told = await self.events(run)
        self.assertLess(len(told), 20)
        self.assertEqual(text_of(told), TEXT)
        self.assertEqual(told[-1]["messages"][0]["content"], TEXT)
        numbers = [event["seq"] for event in told]
        self.assertTrue(all(one < other for one, other in pairwise(numbers)))
        pieces = dict(await in_database(journal.read, UUID(run)))
        for after in (0, 3, 4, 5, 700, numbers[4], numbers[4] + 1, max(pieces) - 2, max(pieces) - 1):
            rest = await self.events(run, f"?after={after}")
            missed = [event for number, event in pieces.items() if number > after]
            self.assertEqual(text_of(rest), "".join(getattr(event, "text", "") for event in missed), after)
            self.assertGreater(rest[0]["seq"], after)
            self.assertEqual(rest[-1], told[-1])

    async def test_a_late_reader_of_a_running_answer_gets_the_same_from_memory(self):
        model = HeldAtItsEnd(words=WORDS)
        with use_model(model):
            answer = await self.post("/chat/stream", ASKED)
            run = answer.headers["Chat-Run"]
            while len(next(iter(run_manager().active.values())).events) < len(WORDS):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            following = asyncio.create_task(self.events(run))
            resumed = asyncio.create_task(self.events(run, "?after=1000"))
            await asyncio.sleep(0.2)
            model.released.set()
            told, rest = await following, await resumed
        self.assertLess(len(told), 20)
        self.assertEqual(text_of(told), TEXT)
        self.assertTrue(TEXT.endswith(text_of(rest)))
        self.assertEqual(rest[-1], told[-1])
        lines = b"".join([chunk async for chunk in answer.streaming_content]).splitlines()
        self.assertLess(len(lines), len(WORDS) / 20)  # its first lines are written at once

    async def test_without_the_journal_a_long_text_is_sent_in_pieces(self):
        _, run = await self.ask(ScriptedModel(words=WORDS))
        await in_database(JournalEntry.objects.all().delete)
        told = [event async for _, event in runs.follow(command_principal(self.user), run)]
        texts = [event.text for event in told if isinstance(event, TextDelta)]
        self.assertEqual("".join(texts), TEXT)
        self.assertLessEqual(max(map(len, texts)), MAX_TEXT)
        self.assertEqual(told[-1], Finished("complete"))


@pytest.mark.slow
class PageTests(RunEventsCase):
    async def told(self, accepted, after, reader):
        """Apply the messages for a page that has everything up to that number."""
        principal = command_principal(self.user)
        frames = SocketFrames(principal, accepted.conversation_id, PLACE, after)
        async for part in runs.watch(principal, accepted.run_id, boundary=after):
            for frame in await frames.encode(part):
                reader.take(frame["messages"])
        for frame in await frames.end():
            reader.take(frame["messages"])

    async def test_a_page_continues_from_any_number_within_a_long_answer(self):
        principal = command_principal(self.user)
        with use_model(ScriptedModel(words=WORDS)):
            accepted = await in_database(runs.begin, principal, RunRequest("Leave?"))
            runs.start(accepted)
            whole = [item async for item in runs.follow(principal, accepted.run_id)]
        self.assertEqual("".join(event.text for _, event in whole if isinstance(event, TextDelta)), TEXT)
        fresh = Reader()
        await self.told(accepted, 0, fresh)
        self.assertEqual(len(fresh.blocks), 75)
        for after in (7, 500, 2222):
            frames, reader = SocketFrames(principal, accepted.conversation_id, PLACE, 0), Reader()
            async for part in runs.watch(principal, accepted.run_id, boundary=after):
                for frame in await frames.encode(part):
                    reader.take(frame["messages"])
                if part[-1][0] == after:
                    break
            self.assertLess(len(reader.blocks), 75)
            await self.told(accepted, after, reader)
            self.assertEqual((reader.blocks, reader.open), (fresh.blocks, ""))

    async def test_a_page_that_reads_nothing_buffers_one_part_and_the_answer_completes(self):
        page, released, frames = consumers.ConversationConsumer(), asyncio.Event(), []
        principal = page.principal = command_principal(self.user)

        async def tell(message):
            frames.append(json.dumps(message))
            await released.wait()

        page._send_message = tell
        with use_model(ScriptedModel(words=WORDS)):
            accepted = await in_database(runs.begin, principal, RunRequest("Leave?"))
            page.conversation_id = accepted.conversation_id
            runs.start(accepted)
            reading = asyncio.create_task(page._read_run(accepted.run_id, PLACE, 0))
            told = await self.events(accepted.run_id)
        self.assertEqual(told[-1]["state"], "complete")
        self.assertEqual((len(frames), reading.done()), (1, False))
        released.set()
        await reading
        reader = Reader()
        for frame in map(json.loads, frames):
            reader.take(frame["messages"])
        self.assertEqual((len(reader.blocks), frame["messages"][-1]["type"]), (75, "done"))
