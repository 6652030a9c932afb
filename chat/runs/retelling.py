"""An exchange that has ended, told once more from its messages."""

from collections.abc import Iterator

from chat.citations import HELD_AT_MOST
from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    FollowUps,
    MessageDone,
    MessageStarted,
    Started,
    TextDelta,
    Usage,
    thought_from_json,
)
from chat.llm import configured_model
from chat.models import Run
from history import recording
from history.models import Message

from .parts import LONGEST


def retold(run: Run) -> list[Event]:
    """Its events, without the sources, and with its texts in pieces of some length."""
    messages = list(Message.objects.filter(exchange=run.pk).order_by("position"))
    first, last = messages[0], messages[-1]
    told: list[Event] = [
        Started(
            run_id=str(run.pk),
            conversation_id=str(run.conversation_id),
            question_id=str(run.question_id),
            answer_id=str(first.pk),
            created_at=recording.timestamp(first.created_at),
            model=configured_model().name,
        )
    ]
    for message in messages:
        told += _message(message)
    if last.followups:
        told.append(FollowUps(tuple(last.followups)))
    if last.usage:
        told.append(Usage(last.usage["prompt"], last.usage["completion"]))
    if last.error_code:
        told.append(Failed(last.state, last.error_code, last.request_id))
    else:
        told.append(Finished(last.state))
    return told


def _pieces(text: str) -> Iterator[str]:
    """Of some length each, and cut through no citation: one is told whole or not at all."""
    start = 0
    while start < len(text):
        end = start + LONGEST
        opened = text.rfind("[", max(start + 1, end - HELD_AT_MOST), end) if end < len(text) else -1
        if opened >= 0 and "]" not in text[opened:end]:
            end = opened
        yield text[start:end]
        start = end


def _message(message: Message) -> list[Event]:
    told: list[Event] = []
    if message.agent_name:
        created = recording.timestamp(message.created_at)
        told.append(MessageStarted(str(message.pk), message.agent_name, created))
    thoughts = tuple(thought_from_json(thought) for thought in message.thoughts)
    told.append(ContextReady((), thoughts, str(message.pk)))
    told += [TextDelta(piece) for piece in _pieces(message.content)]
    if message.finish_reason:
        told.append(MessageDone(message.finish_reason, tuple(message.citations)))
    return told
