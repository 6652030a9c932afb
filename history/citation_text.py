"""Citations inside a stored text: `[label]`, where the label is one of those that the text cites."""

import re
from collections.abc import Callable, Collection, Mapping

CITATION = re.compile(r"(?<![ \t])([ \t]*)\[([^\[\]\n]+)\](?!\()")

# A citation as the Chat UI gets it, and sends it back: see chat/protocols/chat_ui.py.
CITATION_LINK = re.compile(r"\[([^\[\]\n]+)\]\(/content/[0-9a-f-]{36}/[^()\[\]\s]*\)")


def rewrite(text: str, labels: Collection[str], written: Callable[[str], str]) -> str:
    """The text with each citation of one of `labels` as `written` gives it; empty takes its space along."""
    if not labels:
        return text

    def replaced(match: re.Match[str]) -> str:
        space, label = match.groups()
        if label not in labels:
            return match[0]
        new = written(label)
        return space + new if new else ""

    return CITATION.sub(replaced, text)


def without(text: str, labels: Collection[str]) -> str:
    """The text without the names of these sources."""
    return rewrite(text, labels, lambda _: "")


def with_links(text: str, addresses: Mapping[str, str]) -> str:
    """The text with each citation of one of these labels as a Markdown link to its address."""
    return rewrite(text, addresses, lambda label: f"[{label}]({addresses[label]})")


def without_links(text: str) -> str:
    """The inverse of :func:`with_links`, whatever the links lead to."""
    return CITATION_LINK.sub(r"[\1]", text)
