"""One conversation as a file: Markdown to read, JSON to keep."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from . import wire
from .citing import CITATION, rewrite
from .failures import failure_of
from .listing import Summary
from .models import Message, Source
from .recording import timestamp

Sources = Mapping[UUID, Sequence[Source]]


def as_json(row: Summary, messages: Sequence[Message], sources: Sources) -> wire.Json:
    return wire.summary(row) | {
        "mode": row.conversation.mode,
        "createdAt": timestamp(row.conversation.created_at),
        "messages": [wire.message(message, sources.get(message.pk, ())) for message in messages],
    }


def as_markdown(row: Summary, messages: Sequence[Message], sources: Sources) -> str:
    """Questions as headings, answers below them, each with the list of the sources it cites."""
    conversation = row.conversation
    parts = [f"# {_line(conversation.title) or 'Conversation'}", f"{conversation.created_at:%Y-%m-%d}"]
    for message in messages:
        if message.role == Message.Role.USER:
            parts.append(f"## {_line(message.content)}")
        else:
            parts += _answer(message, sources.get(message.pk, ()))
    return "\n\n".join(filter(None, parts)) + "\n"


def _answer(message: Message, readable: Sequence[Source]) -> list[str]:
    text = wire.readable_text(message, readable)
    titles = {source.label: source for source in reversed(readable) if source.label in message.citations}
    order = list(dict.fromkeys(match[2] for match in CITATION.finditer(text) if match[2] in titles))
    numbers = {label: number for number, label in enumerate(order, start=1)}
    parts = [f"**{_line(message.agent_name)}**"] if message.agent_name else []
    parts.append(rewrite(text, numbers, lambda label: f"[{numbers[label]}]").strip())
    failure = failure_of(message)
    if failure:
        parts.append(f"*{failure[1]}*")
    parts.append("\n".join(f"{number}. {_name(titles[label])}" for label, number in numbers.items()))
    return parts


def _name(source: Source) -> str:
    place = f"page {source.page}" if source.page else source.heading
    return _line(f"{source.title}, {place}" if place and place != source.title else source.title)


def _line(text: str) -> str:
    return " ".join(text.split())
