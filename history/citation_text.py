"""Citations in a stored text: `[label]`, where `label` is one of `Message.citations`."""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from .tally import is_by_model, is_unclear

CITATION = re.compile(r"(?<![ \t])([ \t]*)\[([^\[\]\n]+)\](?!\()")

# A citation as the Chat UI receives and returns it: see chat/protocols/chat_ui.py.
CITATION_LINK = re.compile(r"\[([^\[\]\n]+)\]\(/content/[0-9a-f-]{36}/[^()\[\]\s]*\)")


def rewrite(text: str, labels: Collection[str], written: Callable[[str], str]) -> str:
    """Replace each citation of one of `labels` with `written(label)`.

    An empty replacement also removes the space before the citation.
    """
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
    """The text without citations of these labels."""
    return rewrite(text, labels, lambda _: "")


def removed(text: str, labels: Collection[str]) -> list[tuple[int, int]]:
    """Start and end of each citation that :func:`without` removes."""
    if not labels:
        return []
    return [match.span() for match in CITATION.finditer(text) if match[2] in labels]


def with_links(text: str, addresses: Mapping[str, str]) -> str:
    """The text with the citations of these labels as Markdown links to their addresses."""
    return rewrite(text, addresses, lambda label: f"[{label}]({addresses[label]})")


def verified_as_sent(
    rows: Sequence[Mapping[str, Any]], text: str, gone: Collection[str], addresses: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The statements of a text, with their positions in the text that is sent.

    `rows` has the form of `Message.verification`. The sent text is the stored one after :func:`without` for
    the labels in `gone` and :func:`with_links` for `addresses`.
    """
    ends, grown = [-1], [0]  # the end of each changed citation, and by how much the text has grown up to it
    for match in CITATION.finditer(text):
        if match[2] in gone:
            ends.append(match.end())
            grown.append(grown[-1] - len(match[0]))
        elif match[2] in addresses:
            ends.append(match.end())
            grown.append(grown[-1] + len(addresses[match[2]]) + 2)

    def place(old: int) -> int:
        return old + grown[bisect_right(ends, old) - 1]

    sent = []
    for row in rows:
        labels = [label for label in row["citations"] if label not in gone]
        verdict = row["verdict"] if labels or not row["citations"] else "uncited"
        statement = {"start": place(row["start"]), "end": place(row["end"])}
        checked = {"by_model": True} if verdict == "supported" and is_by_model(row) else {}
        checked |= {"unclear": True} if verdict == "not_found" and is_unclear(row) else {}
        sent.append(statement | {"citations": labels, "verdict": verdict, **checked})
    return sent


def without_links(text: str) -> str:
    """The inverse of :func:`with_links`, for links to any document of this site."""
    return CITATION_LINK.sub(r"[\1]", text)
