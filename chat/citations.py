"""Citations in an answer: `[label]`, where the label is that of a source of this turn.

A model may cite what it was never given. Such a citation is removed while the text still streams, so
that no reader ever sees it: text is held back only from an opening bracket to its closing one.
"""

import re
from collections.abc import Iterable

HELD_AT_MOST = 400  # characters; a longer bracket is no citation
# A run of spaces is tried once, from its start: a model that writes nothing else must not stop the site.
_BRACKET = re.compile(r"(?<![ \t])(?P<space>[ \t]*)\[(?P<inner>[^\[\]\n]{1,400})\](?!\()")
_OPEN = re.compile(r"[ \t]*(?:\[[^\[\]\n]*)?\Z")
_AFTER_BRACKET = re.compile(r"[ \t]*\[[^\[\]\n]*\]\Z")
_SEPARATOR = re.compile(r"\s*[;,]\s*|\s*\]\s*\[\s*")
_FILE_NAME = re.compile(r"[^/\\]\.[A-Za-z0-9]{1,8}(#.*)?\Z")
_ANCHOR = re.compile(r"#(page|slide|sheet)=")


def _looks_like_citation(text: str) -> bool:
    return bool(_FILE_NAME.search(text) or _ANCHOR.search(text))


class Labels:
    """The labels that may be cited, found whatever their letter case and spacing."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._known = {_normal(label): label for label in labels}

    def find(self, text: str) -> str | None:
        return self._known.get(_normal(text))


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()


class CitationFilter:
    """Passes text on as it comes, without the citations that match no source."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = Labels(labels)
        self._held = ""
        self.cited: list[str] = []  # in order of first use
        self.removed = 0

    def feed(self, text: str) -> str:
        """The text that is certain by now; the rest is held back."""
        text = self._held + text
        start = self._undecided(text) if "[" in text else self._end(text)
        certain, self._held = text[:start], text[start:]
        return _BRACKET.sub(self._verified, certain) if "[" in certain else certain

    def flush(self) -> str:
        """What is still held, at the end of the text."""
        text, self._held = self._held, ""
        return _BRACKET.sub(self._verified, text)

    def _end(self, text: str) -> int:
        """Where the white space begins that a citation may follow."""
        return max(len(text.rstrip(" \t")), len(text) - HELD_AT_MOST)

    def _undecided(self, text: str) -> int:
        """Where the part begins that the next characters may still turn into a citation."""
        closed = _AFTER_BRACKET.search(text, max(0, len(text) - HELD_AT_MOST))
        if closed:  # “(” could follow and make it a link
            return closed.start()
        found = _OPEN.search(text, max(0, len(text) - HELD_AT_MOST))
        return found.start() if found else len(text)

    def _verified(self, match: re.Match[str]) -> str:
        inner = match["inner"].strip()
        exact = self._labels.find(inner)
        if exact is not None:
            return match["space"] + self._cite(exact)
        parts = [part for part in _SEPARATOR.split(inner) if part]
        found = [label for part in parts if (label := self._labels.find(part)) is not None]
        if found:
            self.removed += len(parts) - len(found)
            return match["space"] + "".join(self._cite(label) for label in found)
        if parts and all(_looks_like_citation(part) for part in parts):
            self.removed += len(parts)
            return ""
        return match[0]

    def _cite(self, label: str) -> str:
        if label not in self.cited:
            self.cited.append(label)
        return f"[{label}]"


def cited_labels(text: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The labels that a verified text cites, in order of first use."""
    filter_ = CitationFilter(labels)
    filter_.feed(text)
    filter_.flush()
    return tuple(filter_.cited)
