"""Citations inside a stored text: `[label]`, where the label is one of those that the text cites."""

import re
from collections.abc import Callable, Collection

CITATION = re.compile(r"(?<![ \t])([ \t]*)\[([^\[\]\n]+)\](?!\()")


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
