"""Runs in memory, and how their events are divided into parts for readers.

For a reader that has fallen behind, consecutive text deltas are merged, so that catching up costs O(text),
not O(events). The merged event has the number of the last of them.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings

from chat.engine import AcceptedRun
from chat.events import TERMINAL, ContextReady, Event, Failed, Finished, MessageDone, TextDelta, Usage
from chat.llm import configured_model
from chatsite import metrics, traces
from chatsite.accounts.principal import Principal
from chatsite.event_loops import PerEventLoop
from chatsite.http.overload import Ticket, take_ticket

Numbered = tuple[int, Event]

MAX_EVENTS = 50  # events in a part; a reader with more pending ones has fallen behind, and texts are merged
MAX_TEXT = 8_000  # characters of merged text; keeps a line with such a text below 64 KB


def parts_of(numbered: Sequence[Numbered], boundary: int) -> Iterable[Sequence[Numbered]]:
    """Divide events into parts. A few events are one part; more are divided with :func:`coalesce`."""
    if len(numbered) > MAX_EVENTS:
        return coalesce(numbered, boundary)
    return [numbered] if numbered else []


def coalesce(numbered: Iterable[Numbered], boundary: int) -> Iterator[list[Numbered]]:
    """Merge consecutive text deltas, and yield the events in parts.

    A part ends at about MAX_TEXT characters or MAX_EVENTS events, and at event number `boundary`, so that no
    text is merged across it. A merged text has the number of its last event, so that a reader can resume
    after any received number without missing an event.
    """
    part: list[Numbered] = []
    pieces: list[str] = []
    last_number = size = 0

    def end_text() -> None:
        if pieces:
            part.append((last_number, TextDelta("".join(pieces))))
            pieces.clear()

    for number, event in numbered:
        if isinstance(event, TextDelta):
            pieces.append(event.text)
            size += len(event.text)
        else:
            end_text()
            part.append((number, event))
        last_number = number
        if size >= MAX_TEXT or number == boundary or len(part) >= MAX_EVENTS:
            end_text()
            yield part
            part, size = [], 0
    end_text()
    if part:
        yield part


# Held by one catching-up reader at a time, so that other readers wait for at most one part in each iteration
# of the event loop.
catch_up_lock = PerEventLoop(asyncio.Lock)


class RunSlots:
    """Counts the runs of this process: changed on the event loop, read from any thread."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self) -> None:
        self._taken += 1

    def release(self) -> None:
        self._taken -= 1

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def at_capacity(self) -> bool:
        return self._taken >= settings.PROCESS_ANSWERS


run_slots = RunSlots()
metrics.RUNS_RUNNING.read_from(lambda: {(): float(run_slots.taken)})


JUST_ACCEPTED_SECONDS = 1.0  # how long the request's check of rights remains valid
WAKEUP_SECONDS = 0.2  # pause between wake-ups of readers for text: a wake-up takes more CPU time than a token


@dataclass(eq=False)
class ActiveRun:
    """A run that this process executes."""

    run: AcceptedRun
    events: list[Event] = field(default_factory=list)
    written: int = 0  # number of events that are in the journal
    sources: dict[UUID, int] = field(default_factory=dict)  # number of sources of each message
    stopping: bool = False  # whether it must end because of a stop request, a disabled owner or a lost lease
    withdrawn: bool = False  # whether it must end because its owner lost access to one of its sources
    title: str = ""  # the model's title for the conversation; stored when the run ends
    task: asyncio.Task[None] | None = None
    ticket: Ticket = field(default_factory=take_ticket)  # waits until the prompt is sent; see overload.py
    _waiting: "list[asyncio.Future[None]]" = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    first_word_ms: int | None = None  # milliseconds from the start of the run to its first text
    _woken: float = 0.0  # event-loop time of the last wake-up for text
    _wakeup: asyncio.TimerHandle | None = None

    def was_just_accepted_for(self, principal: Principal) -> bool:
        """Whether this caller started the run a moment ago, so that rights need not be checked again."""
        return principal == self.run.principal and time.monotonic() - self.started < JUST_ACCEPTED_SECONDS

    def publish(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, (TextDelta, ContextReady)):
            self.ticket.leave()
        if isinstance(event, TextDelta):
            if self.first_word_ms is None and not self.run.request.continues:
                seconds = time.monotonic() - self.started
                self.first_word_ms = round(1000 * seconds)
                metrics.FIRST_TOKEN_SECONDS.observe(seconds)
            self._schedule_wakeup()
            return
        if isinstance(event, Usage):
            metrics.TOKENS.add("prompt", amount=event.prompt)
            metrics.TOKENS.add("completion", amount=event.completion)
        if isinstance(event, ContextReady):
            message_id = UUID(event.message_id) if event.message_id else self.run.answer_id
            self.sources[message_id] = len(event.sources)
        self.wake()

    async def wait_for_events(self) -> None:
        """Wait until readers are woken: by new events, or once a second by `RunManager._tick`."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _schedule_wakeup(self) -> None:
        """Wake readers at once for the first text, then at most every WAKEUP_SECONDS."""
        if self._wakeup is not None or not self._waiting:
            return
        loop = asyncio.get_running_loop()
        if (now := loop.time()) >= self._woken + WAKEUP_SECONDS:
            self._woken = now
            self.wake()
        else:
            self._wakeup = loop.call_at(self._woken + WAKEUP_SECONDS, self._deferred_wakeup)

    def _deferred_wakeup(self) -> None:
        self._wakeup = None
        self._woken = asyncio.get_running_loop().time()
        self.wake()

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        if not (self.stopping or self.withdrawn) and self.task:
            self.stopping = True
            self.task.cancel()

    def withdraw(self) -> None:
        if not (self.stopping or self.withdrawn) and self.task:
            self.withdrawn = True
            self.task.cancel()

    def trace(self, end: Finished | Failed) -> None:
        """Record the span of the answer, with OpenTelemetry's conventions for generative AI."""
        model = configured_model().name
        used = [event for event in self.events if isinstance(event, Usage)]
        reasons = [event.finish_reason for event in self.events if isinstance(event, MessageDone)]
        traces.record(
            f"chat {model}",
            time.monotonic() - self.started,
            gen_ai__operation__name="chat",
            gen_ai__request__model=model,
            gen_ai__conversation__id=str(self.run.conversation_id),
            gen_ai__usage__input_tokens=sum(event.prompt for event in used),
            gen_ai__usage__output_tokens=sum(event.completion for event in used),
            gen_ai__response__finish_reasons=reasons or None,
            chatsite__run__state=str(end.state),
            error__type=end.code if isinstance(end, Failed) else None,
        )

    def has_ended(self) -> bool:
        return isinstance(self.events[-1], TERMINAL)

    def has_text(self) -> bool:
        return any(isinstance(event, TextDelta) for event in self.events)

    def has_whole_text(self) -> bool:
        """Whether the text is complete, so that only extras such as a title may be missing.

        False for a team.
        """
        return not self.run.by_team and any(isinstance(event, MessageDone) for event in self.events)
