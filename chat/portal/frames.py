"""Converts the events of an answer to messages for the portal's socket.

All messages of an event are in the same frame `{"seq": …, "place": …, "messages": […]}`, so that a page that
loses the connection has either all of an event or none of it. `seq` is the number of the frame's last event.
Messages are

- `{"type": "status", "state", "text"}`: what the site is doing;
- `{"type": "about", "html"}`: the documents that the question's scope names, sent after the search;
- `{"type": "found", "html"}`: what was searched for, and links to the passages that were found;
- `{"type": "block", "html"}`: a finished block, which replaces the open one;
- `{"type": "open", "html"}`: the block that is being written, which replaces its earlier versions;
- `{"type": "grow", "text"}`: text to append to the open block;
- `{"type": "whole", …}`: the end of the text, with the part below it; follow-up questions may still come;
- `{"type": "part", …}`, `{"type": "done", …}`: the same at the end of one agent's message, and of the run;
- `{"type": "next", "html"}`: the empty answer of a team's next agent;
- `{"type": "reset", "blocks", "open"}`: all of the text so far;
- `{"type": "title", "title"}`: the conversation's title.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.translation import gettext

from chat.events import (
    ContextReady,
    Event,
    MessageDone,
    MessageStarted,
    Rechecked,
    Searching,
    Started,
    TextDelta,
    Thinking,
    TitleChanged,
)
from chat.models import Run
from chat.sources import SourceView
from chat.statements import to_rows
from chatsite.accounts.principal import Principal
from chatsite.db.threads import in_database
from history.branches import Branches, question_of
from history.models import Conversation, Message

from .citing.source_labels import (
    awaiting,
    found_html,
    name_of,
    reading,
    searched_for,
    searching,
)
from .conversation.shown_answers import Answer, answers_of, scope_of
from .conversation.turns import Turn, asked_about, repeats, turns_since
from .rendering.markdown import (
    BlockRenderer,
    Chip,
    Citations,
)
from .rendering.open_block import closed

Json = dict[str, Any]

# Text that can be appended without changing what is already shown: PLAIN after a letter or digit, CODE in a
# code block.
PLAIN = re.compile(r"[^*_`~\[\]<>&$\\|#!^\n]*")
CODE = re.compile(r"[^`~]*")
MARKED = re.compile(r"[$\\]")  # begins a formula or an escape
SLOW_SECONDS = 0.02  # if rendering the open block takes longer than this, it is rendered less often
PAUSE = 10  # time from a slow rendering to the next one, as a multiple of the time that it took
# Longer text is rendered in a thread, because hostile text takes a long time to render.
MAX_CHARACTERS_AT_ONCE = 1_000


class AnswerRenderer:
    """Renders the events of one answer; `place` is the answer's position in the conversation."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.seq = 0
        self.blocks: list[str] = []
        self.texts: list[str] = []
        self.ended: MessageDone | None = None
        # Labels of all sources of the answer, including sources that the reader cannot open.
        self.labels: Sequence[str] = ()
        self._renderer = BlockRenderer(Citations(place))
        self._open = ""  # HTML of the open block as it was last sent
        self._sent = ""  # Markdown of this block that the page has; empty if nothing can be appended to it
        self._pause_until = 0.0
        self._about = ""
        self._found = ""
        self._status: Json | None = None
        self._before_thinking: Json | None = None  # the status to restore with the first text
        self._title = ""
        self._searched = False

    def takes_long(self, event: Event | None = None) -> bool:
        """Whether adding this event, or finishing, renders so much text that it must run in a thread."""
        added = len(event.text) if isinstance(event, TextDelta) else 0
        return added + self._renderer.unfinished > MAX_CHARACTERS_AT_ONCE

    def add(self, seq: int, event: Event) -> list[Json]:
        """The messages for this event, for a page that has all earlier events."""
        self.seq = seq
        match event:
            case Started():
                return self._set_status("queued", gettext("Starting"))
            case Searching(readable, awaited):
                self._searched = True
                return self._set_status("queued", awaiting(awaited) if awaited else searching(readable))
            case ContextReady(sources):
                self._name(sources)
                self._found = found_html(self.place, searched_for(event.thoughts), sources)
                found = [{"type": "found", "html": self._found}] if self._found else []
                documents = {source.document_id for source in sources}
                if not (sources or self._searched):
                    return self._set_status("streaming", gettext("Answered without a search"))
                return [*found, *self._set_status("streaming", reading(len(sources), len(documents)))]
            case Thinking():
                self._before_thinking = self._status
                return self._set_status("streaming", gettext("Thinking"))
            case TextDelta(text):
                self.texts.append(text)
                written = self._written(self._renderer.feed(text))
                if self._before_thinking is None:
                    return written
                self._status, self._before_thinking = self._before_thinking, None
                return [self._status, *written]
            case MessageDone():
                self.ended = event
                return self._written(self._renderer.finish())
            case Rechecked(verification):
                if self.ended:
                    self.ended = replace(self.ended, verification=verification)
                return []
            case TitleChanged(title):
                self._title = title
                return [{"type": "title", "title": title}]
            case _:
                return []

    def show_about(self, html: str) -> list[Json]:
        """The message with the documents that the question's scope names; no message if it names none."""
        self._about = html
        return [{"type": "about", "html": html}] if html else []

    def finish(self) -> list[Json]:
        """The messages for the end of the text, whose open block becomes a finished block."""
        return self._written(self._renderer.finish())

    def reset(self) -> Json:
        """The frame with everything so far, for a page that has no frame yet."""
        messages: list[Json] = [{"type": "reset", "blocks": self.blocks, "open": self._renderer.open}]
        self._sent = ""  # it is unknown how much of the open block the page has
        messages += self.show_about(self._about)
        if self._found:
            messages.append({"type": "found", "html": self._found})
        if self._status:
            messages.append(self._status)
        if self._title:
            messages.append({"type": "title", "title": self._title})
        return frame(self.seq, messages, self.place)

    def _name(self, sources: tuple[SourceView, ...]) -> None:
        named = {
            source.label: Chip(name_of(source.title, source.label, source.heading)) for source in sources
        }
        chips = dict.fromkeys(self.labels, Chip()) | named
        self._renderer = BlockRenderer(Citations(self.place, chips))

    def _set_status(self, state: str, text: str) -> list[Json]:
        self._status = {"type": "status", "state": state, "text": text}
        return [self._status]

    def _written(self, blocks: list[str]) -> list[Json]:
        if blocks:
            self.blocks += blocks
            self._open = self._sent = ""
            self._pause_until = 0.0
        return [*({"type": "block", "html": html} for html in blocks), *self._opened()]

    def _opened(self) -> list[Json]:
        """The message that updates the open block, if necessary: text to append, or the block as HTML."""
        text, in_fence = self._renderer.text, self._renderer.in_fence
        if self._sent:
            more = text[len(self._sent) :]
            if (CODE if in_fence else PLAIN).fullmatch(more):
                self._sent = text
                return [{"type": "grow", "text": more}] if more else []
        started = time.monotonic()
        if started < self._pause_until:
            return []
        html = self._renderer.open
        if (spent := time.monotonic() - started) > SLOW_SECONDS:
            self._pause_until = started + PAUSE * spent
        self._sent = self._shown_as_written(text, in_fence=in_fence)
        if html == self._open:
            return []
        self._open = html
        return [{"type": "open", "html": html}]

    def _shown_as_written(self, text: str, *, in_fence: bool) -> str:
        """The text if its last characters appear literally at the end of the HTML; otherwise empty."""
        if in_fence:
            head, found, code = text.partition("\n")
            plain = found and head.startswith(("```", "~~~")) and code.strip() and code[-1] not in "`~"
            return text if plain else ""
        text = text.rstrip()
        grows = text[-1:].isalnum() and not MARKED.search(text) and closed(text) == text
        in_table = "|" in text[text.rfind("\n") + 1 :]
        return text if grows and not in_table and "[^" not in text else ""


def frame(seq: int, messages: list[Json], place: int) -> Json:
    return {"seq": seq, "place": place, "messages": messages}


def place_of_run(principal: Principal, conversation_id: UUID, run_id: UUID) -> int | None:
    """The position of a run's answer; None if the run is not in the caller's conversation."""
    rows = Run.objects.owned_by(principal).filter(pk=run_id, conversation=conversation_id)
    return rows.values_list("answer__position", flat=True).first()


def context_of_message(principal: Principal, message_id: UUID) -> tuple[list[str], str]:
    """The labels that an answer may cite, and the documents of its question, as HTML.

    The labels include those of sources that can no longer be opened.
    """
    answer = Message.objects.owned_by(principal).filter(pk=message_id).first()
    if answer is None:
        return [], ""
    documents = asked_about(principal, scope_of(answer))
    if not documents:
        return answer.labels, ""
    question = question_of(answer) if len(documents) > 1 else None
    turn = {"documents": documents, "repeats": bool(question and repeats(principal, question, documents))}
    return answer.labels, render_to_string("chat/asked_about.html", {"turn": turn})


def next_answer(principal: Principal, conversation_id: UUID, message_id: UUID) -> tuple[int, str]:
    """The position of a team's next message, and HTML of its empty answer."""
    message = Message.objects.filter(conversation=conversation_id).get(pk=message_id)
    answer = answers_of(principal, [message])[0]
    answer.newest = True
    context = {"answer": answer, "conversation": message.conversation}
    return message.position, render_to_string("chat/answer.html", context)


def new_turn(principal: Principal, run_id: UUID) -> str:
    """HTML of the question that was just accepted, with its empty answer."""
    run = Run.objects.owned_by(principal).select_related("conversation", "question", "answer").get(pk=run_id)
    branches = Branches(run.conversation_id)
    answer = answers_of(principal, [run.answer], branches)[0]
    answer.newest = True
    documents = asked_about(principal, answer.searched_in)
    again = repeats(principal, run.question, documents)
    turn = Turn(run.question, [answer], branches, documents, again)
    return render_to_string("chat/turn.html", {"turn": turn, "conversation": run.conversation})


def newer_turns(
    principal: Principal, conversation_id: UUID, first: int
) -> tuple[UUID | None, str | None] | None:
    """The id of the current run, if any, and the HTML of all turns at position `first` or later.

    Returns None if there are no such turns. Returns (None, None) if one of their messages begins another
    branch; the page must then be reloaded.
    """
    conversation = Conversation.objects.owned_by(principal).filter(pk=conversation_id).first()
    if conversation is None:
        return None
    rows = conversation.messages.chosen().filter(position__gte=first).order_by("position")
    forks = list(rows.values_list("follows", flat=True))
    if not forks:
        return None
    if any(follows is not None for follows in forks):
        return None, None
    newer = turns_since(principal, conversation, first)
    context = {"conversation": conversation}
    html = "\n".join(render_to_string("chat/turn.html", context | {"turn": each}) for each in newer)
    running = [answer.run for each in newer for answer in each.answers if answer.running and answer.run]
    return running[-1].pk if running else None, html


def end_message(
    principal: Principal, conversation_id: UUID, rendered: AnswerRenderer, shown: str | None
) -> Json | None:
    """The message about the end of an answer, from its row and with the current rights.

    If the text is complete but the row unfinished, the row is shown as it will be stored. The text is only
    included if it differs from `shown`, the HTML that the page has (None if unknown).
    """
    place = rendered.place
    conversation = Conversation.objects.owned_by(principal).filter(pk=conversation_id).first()
    messages = Message.objects.owned_by(principal).select_related("feedback")
    message = messages.filter(conversation=conversation_id, position=place).first()
    if conversation is None or message is None:
        return None
    if rendered.ended and message.state in Message.UNFINISHED:
        message.state = Message.State.COMPLETE
        message.content = "".join(rendered.texts)
        message.finish_reason = rendered.ended.finish_reason
        message.citations = list(rendered.ended.citations)
        message.verification = to_rows(rendered.ended.verification)
    answer: Answer = answers_of(principal, [message], Branches(conversation_id))[0]
    answer.newest = not conversation.messages.chosen().filter(position__gt=place).exists()
    context = {"answer": answer, "conversation": conversation}
    message_frame: Json = {
        "type": "done",
        "state": message.state,
        "sources": len(answer.cited),
        "note": answer.note.text if answer.note else "",
        "failed": bool(answer.note and answer.note.kind != "plain"),
        "steps": render_to_string("chat/steps.html", context),
        "end": render_to_string("chat/end.html", context),
    }
    if shown != answer.html:
        message_frame["body"] = answer.html
    return message_frame


class SocketFrames:
    """Converts the events of a run to the frames of one socket.

    `place` is the position of the run's first answer; `after` is the number of the last event that the page
    has.
    """

    def __init__(self, principal: Principal, conversation_id: UUID, place: int, after: int) -> None:
        self._principal = principal
        self._conversation_id = conversation_id
        self._after = after
        # Whether the page has only the content with which it was rendered, and no frame yet.
        self._fresh = after == 0
        self._in_sync = not self._fresh
        # Whether the first message of a team has begun; the page already contains its empty answer.
        self._started = False
        self._whole = False  # whether the page has the whole text
        self._body: str | None = None  # the HTML that replaced the blocks on the page
        self._answer = AnswerRenderer(place)

    async def encode(self, batch: Sequence[tuple[int, Event]]) -> list[Json]:
        """The frames for a batch of events; the first batch gives the page all that it lacks."""
        frames: list[Json] = []
        messages: list[Json] = []
        for seq, event in _joined(batch, self._after):
            if isinstance(event, MessageStarted):
                if self._started:
                    frames += await self._next_message(seq, event, messages)
                    messages = []
                self._started = True
            about: list[Json] = []
            if isinstance(event, ContextReady) and event.message_id:
                self._answer.labels, asked_about = await in_database(
                    context_of_message, self._principal, UUID(event.message_id)
                )
                about = self._answer.show_about(asked_about)
            added = [*about, *await self._added(seq, event)]
            messages += added if seq > self._after else []
        if not self._in_sync:
            frames.append(self._answer.reset())
        elif messages:
            frames.append(self._frame(messages))
        self._in_sync = True
        # The end of a team's message is sent with the next agent's start, or with the end of the run.
        if self._answer.ended and not self._started and not self._whole:
            self._whole = True
            frames += await self._ended("whole", [])
        return frames

    async def end(self) -> list[Json]:
        """The frames for the end of the last message, and thus of the run."""
        return await self._ended("done", [])

    async def _next_message(self, seq: int, event: MessageStarted, messages: list[Json]) -> list[Json]:
        """The frames that end one agent's message and start the next one below it."""
        frames = await self._ended("part", messages) if seq > self._after else []
        place, html = await in_database(
            next_answer, self._principal, self._conversation_id, UUID(event.message_id)
        )
        self._answer = AnswerRenderer(place)
        self._answer.seq = seq
        self._body = None
        if seq > self._after:
            frames.append(self._frame([{"type": "next", "html": html}]))
            # The page may have been rendered with a part of this message, so send all of it again.
            self._fresh, self._in_sync = True, False
        return frames

    async def _added(self, seq: int, event: Event) -> list[Json]:
        """Render an event, in a thread if the text is long, because hostile text takes half a second."""
        if self._answer.takes_long(event):
            return await asyncio.to_thread(self._answer.add, seq, event)
        return self._answer.add(seq, event)

    async def _ended(self, kind: str, messages: list[Json]) -> list[Json]:
        long = self._answer.takes_long()
        rest = await asyncio.to_thread(self._answer.finish) if long else self._answer.finish()
        shown = "\n".join(self._answer.blocks) if self._fresh and self._in_sync else None
        shown = self._body if self._body is not None else shown
        end = await in_database(end_message, self._principal, self._conversation_id, self._answer, shown)
        if end is None:
            return []
        # The body replaces all blocks. `rest` is dropped, because it may name a source withdrawn meanwhile.
        if "body" in end:
            self._body, rest = end["body"], []
        return [self._frame([*messages, *rest, end | {"type": kind}])]

    def _frame(self, messages: list[Json]) -> Json:
        return frame(self._answer.seq, messages, self._answer.place)


def _joined(batch: Sequence[tuple[int, Event]], after: int) -> list[tuple[int, Event]]:
    """Merge consecutive texts, because each of them would render the unfinished block again.

    Texts that the page has (up to `after`) are not merged with those that it does not have.
    """
    joined: list[tuple[int, Event]] = []
    for seq, event in batch:
        before, last = joined[-1] if joined else (seq, None)
        if isinstance(event, TextDelta) and isinstance(last, TextDelta) and (before > after or seq <= after):
            joined[-1] = seq, TextDelta(last.text + event.text)
        else:
            joined.append((seq, event))
    return joined
