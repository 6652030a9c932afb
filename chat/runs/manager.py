"""Executes the runs of this process: tasks, events, and one writer to the journal.

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
from chat.events import Event, Failed, Finished, TitleChanged
from chat.llm import ModelError, configured_model
from chat.models import Run
from chatsite import logs, metrics, traces
from chatsite.accounts.principal import Principal
from chatsite.db.availability import (
    breaker,
    is_disk_full,
)
from chatsite.db.retry import FULL_DISK_SECONDS, retry_until_available
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
from .active import ActiveRun, run_slots
from .earlier_messages import earlier_messages, messages_of_request
from .journal import Batch
from .start import request_stop, team

logger = logging.getLogger(__name__)

RIGHTS_SECONDS = 1.0  # pause between checks that owners may still read the sources of their runs
CLOSING_SECONDS = 120.0  # how long storing the end of a run is retried
# Time reserved for each run at shutdown, because ends are stored one after the other.
ENDING_SECONDS = 0.015
MAX_PAUSE = 1.0  # longest pause between attempts to store the end of a run
LAST_SECONDS = 3.5  # time for storing ends at a shutdown; other processes close the remaining runs
TICK_SECONDS = 1.0
STOP_SECONDS = 3.0  # how long a caller waits for the process that executes a run to stop it


class RunManager:
    """All runs of one event loop."""

    def __init__(self) -> None:
        self.active: dict[UUID, ActiveRun] = {}
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()  # held during a flush of the journal, or while a run ends
        # Only one ending run at a time waits for `_writing`, so that flushes can renew the leases in time.
        self._closing = asyncio.Lock()
        self._checked_at = 0.0
        self._access_check: asyncio.Task[None] | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._over, self._until = False, float("inf")  # whether runs must end, and the deadline of a shutdown

    def start(self, run: AcceptedRun) -> None:
        if not run.is_new or run.run_id in self.active:
            return
        active = self.active[run.run_id] = ActiveRun(run)
        finish.executing.add(run.run_id)
        run_slots.take()
        active.publish(run.started(configured_model().name))
        # Of the request's context, keep only the trace: the rest would tie the task to a thread that ends
        # with the request.
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._generate(active), context=traces.only_trace())
        task.add_done_callback(lambda _: self._forget(active))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write(), context=contextvars.Context())
        if self._ticking is None:
            self._ticking = loop.call_later(TICK_SECONDS, self._tick, context=contextvars.Context())

    def _tick(self) -> None:
        """Wake all waiting readers once a second, so that they check access even if nothing is published."""
        self._ticking = None
        for active in self.active.values():
            active.wake()
        if self.active:
            self._ticking = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def stop(self, run_id: UUID) -> None:
        """Stop a run for its owner, if this process executes it."""
        if active := self.active.get(run_id):
            active.stop()

    async def shutdown(self, seconds: float = 0) -> None:
        """Wait up to `seconds` for the runs to end, then interrupt the rest, which keep their text.

        Returns at most LAST_SECONDS later. Runs whose end could not be stored are closed by other processes
        when their lease expires. Runs that start after the shutdown end at once.
        """
        deadline = time.monotonic() + seconds
        self._until = min(self._until, deadline + LAST_SECONDS)
        await asyncio.sleep(0)  # lets tasks that were just created take their first step
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
        return [active.task for active in self.active.values() if active.task]

    async def _generate(self, active: ActiveRun) -> None:
        # Set the task here and not in `start`, because a task that is cancelled before its first step could
        # not end its run. A request to stop that came before takes effect at the next flush.
        active.task = asyncio.current_task()
        logs.request_id.set(active.run.request_id)
        if self._over and active.task:
            active.task.cancel()
        with reading_as(active.run.principal.user_id):
            end = await self._run_engine(active)
        if isinstance(end, Failed) and end.code == "storage_full" and not active.has_text():
            active.publish(end)  # publish now: no text can be lost, and storing the end may take long
        # From here on, a stop or a shutdown must not cancel anything.
        closing = asyncio.ensure_future(self._close(active, end))
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                continue

    def _forget(self, active: ActiveRun) -> None:
        """Drop a run whose task is done. If its end was not stored, the run ends when its lease expires."""
        del self.active[active.run.run_id]
        active.ticket.leave(begun=False)
        finish.executing.discard(active.run.run_id)
        run_slots.release()

    async def _run_engine(self, active: ActiveRun) -> Finished | Failed:
        end = await self._end_of_engine(active)
        return Finished(Message.State.COMPLETE) if active.has_whole_text() else end

    async def _end_of_engine(self, active: ActiveRun) -> Finished | Failed:
        run, request_id = active.run, active.run.request_id
        try:
            earlier = messages_of_request(run)
            if not run.is_first:
                earlier = await retry_until_available(earlier_messages, run)
            request = replace(run.request, earlier=earlier)
            agents = await retry_until_available(team) if run.by_team else ()
            prepared = replace(run, request=request, team=agents)
            active.title = await engine.answer(prepared, active.publish)
        except asyncio.CancelledError:
            if active.stopping:
                return Finished(Message.State.STOPPED)
            return Failed(Message.State.INTERRUPTED, "interrupted", request_id)
        except ModelError as error:
            logger.warning("The model failed: %s", error.summary)
            metrics.MODEL_ERRORS.add(error.code)
            state = Message.State.INTERRUPTED if active.has_text() else Message.State.FAILED
            if error.code == "content_filter":
                state = Message.State.BLOCKED
            return Failed(state, error.code, request_id, retry_after(error.retry_after))
        except Exception as error:
            logger.exception("An answer failed")
            state = Message.State.INTERRUPTED if active.has_text() else Message.State.FAILED
            code = "interrupted" if isinstance(error, OperationalError | InterfaceError) else "internal"
            return Failed(state, "storage_full" if is_disk_full(error) else code, request_id)
        return Finished(Message.State.COMPLETE)

    async def _close(self, active: ActiveRun, end: Finished | Failed) -> None:
        """Store the end, with retries for up to CLOSING_SECONDS, and then publish it.

        A full disk may have been reported to readers before (see `_generate`).
        """
        events = active.events if active.has_ended() else [*active.events, end]
        started, pause = time.monotonic(), 0.1
        last: Sequence[TitleChanged | Finished | Failed]
        while True:
            try:
                async with self._closing, self._writing:
                    rest = _batch(active, events[active.written :], last=True)
                    last = await in_database(finish.finish_run, active.run, rest, events, active.title)
                break
            except DatabaseError as error:
                logger.exception("The end of an answer could not be stored yet")
                # With a full disk, do not retry for long if it was full when the run began, or if the run has
                # nothing in the journal.
                disk_full = is_disk_full(error)
                begun_late = active.started > breaker.full_since or not active.written
                seconds = FULL_DISK_SECONDS if disk_full and begun_late else CLOSING_SECONDS
                if time.monotonic() > started + seconds:
                    # Another process will close the run with the text in the journal.
                    code = "storage_full" if disk_full else "interrupted"
                    last = [Failed(Message.State.INTERRUPTED, code, active.run.request_id)]
                    break
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)
        if not active.has_ended():
            for event in last:
                active.publish(event)
        outcome = last[-1]
        assert isinstance(outcome, Finished | Failed)
        metrics.RUNS.add(str(outcome.state))
        active.trace(outcome)
        notifications.publish(notifications.messages("news", [active.run.run_id, active.run.conversation_id]))

    async def _write(self) -> None:
        while self.active:
            await asyncio.sleep(settings.JOURNAL_FLUSH_SECONDS)
            if time.monotonic() - self._checked_at >= RIGHTS_SECONDS and (
                not self._access_check or self._access_check.done()
            ):
                # Check in a separate task: it may wait for locked document tables, but the journal must not.
                self._access_check = asyncio.create_task(self._check_rights())
            try:
                async with self._writing:
                    await self._flush()
            except DatabaseError as error:
                # The events stay in memory and are written with the next flush, if the lease still exists.
                logger.exception("The journal could not be written")
                if is_disk_full(error):
                    await self._renew_leases()

    async def _renew_leases(self) -> None:
        """Renew leases without writing events: on a full disk, rows can be updated, but not added."""
        with suppress(DatabaseError):
            async with self._writing:
                await self._flush(events=False)

    async def _flush(self, *, events: bool = True) -> None:
        running = [active for active in self.active.values() if not active.has_ended()]
        if not running:
            return
        ends = {active.run.run_id: len(active.events) if events else active.written for active in running}
        batches = [
            _batch(active, active.events[active.written : ends[active.run.run_id]])
            for active in running
            if ends[active.run.run_id] > active.written
        ]
        started = time.monotonic()
        stops = await in_database(journal.flush, list(ends), batches)
        metrics.FLUSH_SECONDS.observe(time.monotonic() - started)
        for active in running:
            active.written = ends[active.run.run_id]
            # A missing run was closed by another process after our lease expired.
            if stops.get(active.run.run_id, True):
                active.stop()
        notifications.publish(journal.change_messages(batches))

    async def _check_rights(self) -> None:
        """End runs with a source that was deleted or that their owner may no longer read."""
        # Sources that are found during the query are checked next time.
        expected = [(active, dict(active.sources)) for active in self.active.values()]
        asked = [(active.run.principal, message) for active, sources in expected for message in sources]
        try:
            counts = await in_database(journal.count_readable_sources, asked)
        except DatabaseError:
            logger.exception("The sources of answers could not be checked")
            return
        self._checked_at = time.monotonic()
        for active, sources in expected:
            if any(counts.get(message, 0) < count for message, count in sources.items()):
                active.withdraw()


def _batch(active: ActiveRun, events: Sequence[Event], *, last: bool = False) -> Batch:
    """The next batch of events for the journal.

    Followers of the conversation are notified of the first and the last batch.
    """
    conversation = active.run.conversation_id if last or not active.written else None
    return Batch(active.run.run_id, active.written + 1, events, conversation, active.first_word_ms)


run_manager = PerEventLoop(RunManager)


def start(run: AcceptedRun) -> None:
    """Execute the run in a separate task. Does nothing if it was started before."""
    run_manager().start(run)


async def stop(principal: Principal, run_id: UUID) -> None:
    """Stop a run in any process, and keep its text so far. Raises Refused.

    Has no effect on a run that has ended.
    """
    await in_database(request_stop, principal, run_id)
    run_manager().stop(run_id)


async def stop_followups(principal: Principal, conversation_id: UUID) -> bool:
    """End a run that only waits for follow-up questions or a title, so that the next question can start.

    Returns False if there is no such run, or if it has not ended within STOP_SECONDS. Raises Refused.
    """
    run_id = next(
        (run_id for run_id, active in run_manager().active.items()
         if active.run.conversation_id == conversation_id and active.has_whole_text()),
        None,
    ) or await in_database(journal.whole_run, principal, conversation_id)  # fmt: skip
    if run_id is None:
        return False
    await stop(principal, run_id)
    unfinished = Run.objects.unfinished().filter(pk=run_id)
    for _ in range(int(STOP_SECONDS / 0.05)):
        if not await in_database(unfinished.exists):
            return True
        await asyncio.sleep(0.05)
    return False


def is_written_here(run_id: UUID) -> bool:
    return run_id in run_manager().active
