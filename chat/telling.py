"""What one open page is told of one run: frames of messages, for each message of the exchange in turn."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chatsite.accounts.principals import Principal
from chatsite.database import in_database

from .events import ContextReady, Event, MessageStarted, TextDelta
from .fragments import ended, labels_of_message, next_answer
from .transcript import Transcript, frame

Json = dict[str, Any]


class Teller:
    """`place` is the position of the exchange's first answer; `after` the last event that the page has."""

    def __init__(self, principal: Principal, conversation_id: UUID, place: int, after: int) -> None:
        self._principal = principal
        self._conversation_id = conversation_id
        self._after = after
        self._fresh = after == 0  # the page has no frame yet, only what it was rendered with
        self._told = not self._fresh
        self._begun = False  # a team's first message is the one that the page was opened with
        self._transcript = Transcript(place)

    async def frames(self, batch: Sequence[tuple[int, Event]]) -> list[Json]:
        """What the page does not have yet in one frame, then what came."""
        frames: list[Json] = []
        messages: list[Json] = []
        for seq, event in _joined(batch, self._after):
            if isinstance(event, MessageStarted):
                if self._begun:
                    frames += await self._turn(seq, event, messages)
                    messages = []
                self._begun = True
            if isinstance(event, ContextReady) and event.message_id:
                self._transcript.labels = await in_database(
                    labels_of_message, self._principal, UUID(event.message_id)
                )
            added = await self._added(seq, event)
            messages += added if seq > self._after else []
        if not self._told:
            frames.append(self._transcript.reset())
        elif messages:
            frames.append(self._frame(messages))
        self._told = True
        return frames

    async def end(self) -> list[Json]:
        """The end of the last message, and with it of the run."""
        return await self._ended("done", [])

    async def _turn(self, seq: int, event: MessageStarted, messages: list[Json]) -> list[Json]:
        """One agent has ended, the next begins below."""
        frames = await self._ended("part", messages) if seq > self._after else []
        place, html = await in_database(
            next_answer, self._principal, self._conversation_id, UUID(event.message_id)
        )
        self._transcript = Transcript(place)
        self._transcript.seq = seq
        if seq > self._after:
            frames.append(self._frame([{"type": "next", "html": html}]))
            # The page may have some of it already, rendered: what has come is told as a whole.
            self._fresh, self._told = True, False
        return frames

    async def _added(self, seq: int, event: Event) -> list[Json]:
        """Text of some length is rendered in a thread: a hostile one takes half a second."""
        if self._transcript.takes_long(event):
            return await asyncio.to_thread(self._transcript.add, seq, event)
        return self._transcript.add(seq, event)

    async def _ended(self, kind: str, messages: list[Json]) -> list[Json]:
        long = self._transcript.takes_long()
        rest = await asyncio.to_thread(self._transcript.finish) if long else self._transcript.finish()
        shown = "\n".join(self._transcript.blocks) if self._fresh and self._told else None
        place = self._transcript.place
        end = await in_database(ended, self._principal, self._conversation_id, place, shown)
        return [self._frame([*messages, *rest, end | {"type": kind}])] if end else []

    def _frame(self, messages: list[Json]) -> Json:
        return frame(self._transcript.seq, messages, self._transcript.place)


def _joined(batch: Sequence[tuple[int, Event]], after: int) -> list[tuple[int, Event]]:
    """With texts that follow each other as one: with each, what is unfinished is drawn anew, however long.

    What the page has (up to `after`) and what it does not have stay apart.
    """
    joined: list[tuple[int, Event]] = []
    for seq, event in batch:
        before, last = joined[-1] if joined else (seq, None)
        if isinstance(event, TextDelta) and isinstance(last, TextDelta) and (before > after or seq <= after):
            joined[-1] = seq, TextDelta(last.text + event.text)
        else:
            joined.append((seq, event))
    return joined
