"""The answers that this process writes: their tasks, their events, and the one writer to the journal.

Everything here runs on one event loop and never waits for a reader.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError

from chat import engine
from chat.engine import AcceptedRun
from chat.errors import retry_after
from chat.events import Event, Failed, Finished
from chat.llm import ModelError, configured_model
from chatsite import logs
from chatsite.accounts.principal import Principal
from chatsite.db.availability import (
    absence,
    has_no_room,
)
from chatsite.db.retry import FULL_DISK_SECONDS, patiently
from chatsite.db.threads import (
    in_database,
    reading_as,
)
from chatsite.event_loops import PerEventLoop
from history.models import Message

from . import (
    finish,
    journal,
    notifications,
)
from .active import Live, room
from .journal import Batch
from .start import (
    earlier_turns,
    is_unfinished,
    request_stop,
    team,
    told_turns,
    whole_run,
)

logger = logging.getLogger(__name__)

RIGHTS_SECONDS = 1.0  # between two looks whether answers are still written from what their owners may read
CLOSING_SECONDS = 120.0  # for which the end of an answer is tried to be stored
ENDING_SECONDS = 0.015  # for each answer, of those that end at once: they are stored one after the other
LONGEST_PAUSE = 1.0  # between two tries
LAST_SECONDS = 3.5  # for ends that the database does not take, when the process is to end: others find them
TICK_SECONDS = 1.0
AFTERTHOUGHT_SECONDS = 3.0  # in which another process hears that it is to end one


class Generations:
    """All live answers of one event loop."""

    def __init__(self) -> None:
        self.live: dict[UUID, Live] = {}
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._looked = 0.0
        self._ticking: asyncio.TimerHandle | None = None
        self._over, self._until = False, float("inf")  # that of the process, whatever is not stored then

    def start(self, run: AcceptedRun) -> None:
        if not run.is_new or run.run_id in self.live:
            return
        live = self.live[run.run_id] = Live(run)
        room.enter()
        live.publish(run.started(configured_model().name))
        # An empty context: the request's own would tie the task to a thread that ends with the request.
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._generate(live), context=contextvars.Context())
        task.add_done_callback(lambda _: self._forget(live))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write(), context=contextvars.Context())
        if self._ticking is None:
            self._ticking = loop.call_later(TICK_SECONDS, self._tick, context=contextvars.Context())

    def _tick(self) -> None:
        """One clock for all who wait for news: each has something to do when none comes."""
        self._ticking = None
        for live in self.live.values():
            live.wake()
        if self.live:
            self._ticking = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def stop(self, run_id: UUID) -> None:
        """End one answer at its owner's wish, where it is written here."""
        if live := self.live.get(run_id):
            live.stop()

    async def shutdown(self, seconds: float = 0) -> None:
        """Wait for what is being written; end the rest as interrupted, with the text so far.

        All has ended soon after so many seconds, or is left to its lease. What is begun later ends at once.
        """
        deadline = time.monotonic() + seconds
        self._until = min(self._until, deadline + LAST_SECONDS)
        await asyncio.sleep(0)  # the first turn of what has just been begun
        while tasks := self._tasks():
            left = deadline - time.monotonic() - ENDING_SECONDS * len(tasks)
            if left <= 0:
                break
            await asyncio.wait(tasks, timeout=left)
        self._over = True
        while (tasks := self._tasks()) and (left := self._until - time.monotonic()) > 0:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=left)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [live.task for live in self.live.values() if live.task]

    async def _generate(self, live: Live) -> None:
        # Known only now: a task that is cancelled before its first turn would not even end its answer.
        # A stop that comes earlier is heard with the next flush.
        live.task = asyncio.current_task()
        logs.request_id.set(live.run.request_id)
        if self._over and live.task:
            live.task.cancel()
        with reading_as(live.run.principal.user_id):
            end = await self._run_engine(live)
        if isinstance(end, Failed) and end.code == "storage_full" and not live.has_text():
            live.publish(end)  # there is nothing that could be lost, and the disk may stay full for long
        # From here on a stop or a shutdown has nothing left to cancel.
        closing = asyncio.ensure_future(self._close(live, end))
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                continue

    def _forget(self, live: Live) -> None:
        """Whatever became of its task: what could not be ended here ends with its lease."""
        del self.live[live.run.run_id]
        room.leave()

    async def _run_engine(self, live: Live) -> Finished | Failed:
        end = await self._end_of_engine(live)
        return Finished(Message.State.COMPLETE) if live.is_whole() else end

    async def _end_of_engine(self, live: Live) -> Finished | Failed:
        run, request_id = live.run, live.run.request_id
        try:
            earlier = told_turns(run)
            if not run.is_first:
                earlier = await patiently(earlier_turns, run)
            request = replace(run.request, earlier=earlier)
            agents = await patiently(team) if run.by_team else ()
            prepared = replace(run, request=request, team=agents)
            await engine.answer(prepared, live.publish)
        except asyncio.CancelledError:
            if live.stopping:
                return Finished(Message.State.STOPPED)
            return Failed(Message.State.INTERRUPTED, "interrupted", request_id)
        except ModelError as error:
            logger.warning("The model failed: %s", error.summary)
            state = Message.State.INTERRUPTED if live.has_text() else Message.State.FAILED
            if error.code == "content_filter":
                state = Message.State.BLOCKED
            return Failed(state, error.code, request_id, retry_after(error.retry_after))
        except Exception as error:
            logger.exception("An answer failed")
            state = Message.State.INTERRUPTED if live.has_text() else Message.State.FAILED
            return Failed(state, _code_of(error), request_id)
        return Finished(Message.State.COMPLETE)

    async def _close(self, live: Live, end: Finished | Failed) -> None:
        """Store the end, however long the database needs, and only then tell the readers."""
        events = live.events if live.has_ended() else [*live.events, end]
        begun, pause = time.monotonic(), 0.1
        while True:
            try:
                async with self._writing:
                    rest = _batch(live, events[live.written :], last=True)
                    end = await in_database(finish.settled, live.run.run_id, rest, events)
                break
            except DatabaseError as error:
                logger.exception("The end of an answer could not be stored yet")
                if time.monotonic() > begun + _patience(live, error):
                    # Whoever finds the run dead ends it as it stands in the journal.
                    code = "storage_full" if has_no_room(error) else "interrupted"
                    end = Failed(Message.State.INTERRUPTED, code, live.run.request_id)
                    break
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if not live.has_ended():
            live.publish(end)
        notifications.publish(notifications.messages("news", [live.run.run_id, live.run.conversation_id]))

    async def _write(self) -> None:
        while self.live:
            await asyncio.sleep(settings.JOURNAL_FLUSH_SECONDS)
            try:
                async with self._writing:
                    await self._flush()
                await self._check_rights()
            except DatabaseError as error:
                # Kept in memory and written with the next flush; the lease says how long we may try.
                logger.exception("The journal could not be written")
                if has_no_room(error):
                    await self._renew_leases()

    async def _renew_leases(self) -> None:
        """Where nothing can be added, what is there may still be changed."""
        with suppress(DatabaseError):
            async with self._writing:
                await self._flush(room=False)

    async def _flush(self, *, room: bool = True) -> None:
        lives = [live for live in self.live.values() if not live.has_ended()]
        if not lives:
            return
        ends = {live.run.run_id: len(live.events) if room else live.written for live in lives}
        batches = [
            _batch(live, live.events[live.written : ends[live.run.run_id]])
            for live in lives
            if ends[live.run.run_id] > live.written
        ]
        stops = await in_database(journal.flush, list(ends), batches)
        for live in lives:
            live.written = ends[live.run.run_id]
            # A run that is missing was closed by another process, which took us for dead.
            if stops.get(live.run.run_id, True):
                live.stop()
        notifications.publish(journal.news(batches))

    async def _check_rights(self) -> None:
        """End what is written from a document that was deleted, or that its owner may not read any more."""
        if time.monotonic() - self._looked < RIGHTS_SECONDS:
            return
        # What is found while the database is asked is looked at the next time.
        expected = [(live, dict(live.sources)) for live in self.live.values()]
        asked = [(live.run.principal, message) for live, sources in expected for message in sources]
        counts = await in_database(journal.count_readable_sources, asked)
        self._looked = time.monotonic()
        for live, sources in expected:
            if any(counts.get(message, 0) < count for message, count in sources.items()):
                live.withdraw()


def _batch(live: Live, events: Sequence[Event], *, last: bool = False) -> Batch:
    """What the journal does not have yet; the conversation hears of the first and the last."""
    told = live.run.conversation_id if last or not live.written else None
    return Batch(live.run.run_id, live.written + 1, events, told)


def _patience(live: Live, error: Exception) -> float:
    """Seconds to try to store an end: few of what was asked while the disk was full already.

    The first to be asked then finds that out itself: nothing of it could be written.
    """
    late = has_no_room(error) and (live.begun > absence.full_since or not live.written)
    return FULL_DISK_SECONDS if late else CLOSING_SECONDS


def _code_of(error: Exception) -> str:
    """Of an answer that could not be written."""
    if has_no_room(error):
        return "storage_full"
    return "interrupted" if isinstance(error, OperationalError | InterfaceError) else "internal"


generations = PerEventLoop(Generations)


def start(run: AcceptedRun) -> None:
    """Write the answer in a task of its own. Nothing happens where it was started before."""
    generations().start(run)


async def stop(principal: Principal, run_id: UUID) -> None:
    """End one answer, in whichever process it is written; what has arrived is kept. Raises Refused.

    Asking twice, or for an answer that has ended, changes nothing.
    """
    await in_database(request_stop, principal, run_id)
    generations().stop(run_id)


async def end_afterthoughts(principal: Principal, conversation_id: UUID) -> bool:
    """End an answer of which only follow-up questions or a title are awaited: the next question has come.

    False where there is none, or it has not ended within some seconds. Raises Refused.
    """
    run_id = next(
        (run_id for run_id, live in generations().live.items()
         if live.run.conversation_id == conversation_id and live.is_whole()),
        None,
    ) or await in_database(whole_run, principal, conversation_id)  # fmt: skip
    if run_id is None:
        return False
    await stop(principal, run_id)
    for _ in range(int(AFTERTHOUGHT_SECONDS / 0.05)):
        if not await in_database(is_unfinished, run_id):
            return True
        await asyncio.sleep(0.05)
    return False


def is_written_here(run_id: UUID) -> bool:
    return run_id in generations().live
