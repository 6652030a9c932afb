"""A conversation as a Markdown file."""

import re

from chatsite.accounts.principals import Principal
from history.models import Conversation

from .naming import name_of
from .rendering import BRACKETS
from .threads import Answer, exchanges_of


def markdown(principal: Principal, conversation: Conversation) -> str:
    """Questions as headings, answers below them, each with the list of the sources it cites."""
    parts = [f"# {one_line(conversation.title) or 'Conversation'}", f"{conversation.created_at:%Y-%m-%d}"]
    for exchange in exchanges_of(principal, conversation):
        parts.append(f"## {one_line(exchange.question.content)}")
        for answer in exchange.answers:
            parts += _answer(answer)
    return "\n\n".join(parts) + "\n"


def one_line(text: str) -> str:
    return " ".join(text.split())


def _answer(answer: Answer) -> list[str]:
    numbers = answer.citations

    def numbered(match: re.Match[str]) -> str:
        number = numbers.number(match[1])
        return match[0] if number is None else f"[{number}]"

    parts = [BRACKETS.sub(numbered, answer.text).strip()]
    if answer.note:
        parts.append(f"*{answer.note.text}*")
    lines = []
    for line in answer.cited:
        source = line.source
        name = (
            name_of(source.title, source.label, source.heading)
            if source
            else "A source you can no longer open"
        )
        lines.append(f"{line.number}. {one_line(name)}")
    parts.append("\n".join(lines))
    return list(filter(None, parts))
