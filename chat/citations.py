"""Citations in an answer: `[label]`, with the label of one of the answer's sources.

A model may cite sources that it was not given. Brackets that look like such a citation (with a file name or
an anchor) are removed while the text is streamed, so that no reader ever sees them. To do so, text is held
back from an opening bracket to its closing one.
"""

import json
import re
from collections.abc import Iterable

MAX_CITATION_LENGTH = 400  # characters; a longer bracket is not a citation
# Anchored at the start of a run of spaces, so that a text of many spaces takes linear time.
_BRACKET = re.compile(r"(?<![ \t])(?P<space>[ \t]*)\[(?P<inner>[^\[\]\n]{1,400})\](?!\()")
_FILE_NAME = re.compile(r".*[^/\\]\.[A-Za-z0-9]{1,8}", re.DOTALL)
_ANCHORS = ("#page=", "#slide=", "#sheet=")


def _looks_like_citation(text: str) -> bool:
    names = (text, text.partition("#")[0])
    return any(_FILE_NAME.fullmatch(name) for name in names) or any(anchor in text for anchor in _ANCHORS)


class Labels:
    """The labels that may be cited. Case and spacing matter only if a label is otherwise ambiguous.

    An exact match takes precedence; otherwise a document named `Leave.md` could take over citations of
    `leave.md`.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._exact = frozenset(labels)
        self._by_normal_form: dict[str, list[str]] = {}
        for label in self._exact:
            self._by_normal_form.setdefault(_normal(label), []).append(label)

    def find(self, text: str) -> str | None:
        if text in self._exact:
            return text
        similar = self._by_normal_form.get(_normal(text), [])
        return similar[0] if len(similar) == 1 else None


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()


class CitationFilter:
    """Passes text on as it arrives, and removes citations that match no source."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = Labels(labels)
        self._held = ""
        self.cited: list[str] = []  # in order of first use
        self.removed = 0

    def feed(self, text: str) -> str:
        """Add text; returns the verified part that further text cannot change, and holds back the rest."""
        text = self._held + text
        start = self._undecided(text) if "[" in text else self._end(text)
        certain, self._held = text[:start], text[start:]
        return _BRACKET.sub(self._verified, certain) if "[" in certain else certain

    def flush(self) -> str:
        """Return the text that is still held back, at the end of the stream."""
        text, self._held = self._held, ""
        return _BRACKET.sub(self._verified, text)

    def _end(self, text: str) -> int:
        """The start of trailing white space, which may be followed by a citation."""
        return max(len(text.rstrip(" \t")), len(text) - MAX_CITATION_LENGTH)

    def _undecided(self, text: str) -> int:
        """The start of the last part that further text may turn into a citation."""
        first = max(0, len(text) - MAX_CITATION_LENGTH)
        start = text.rfind("[", first)
        inside = text[start + 1 :]
        # A bracket that the last character closes is undecided, too: a “(” could still make it a link.
        if start < 0 or "\n" in inside or "]" in inside[:-1]:
            return self._end(text)
        return max(first, len(text[:start].rstrip(" \t")))

    def _verified(self, match: re.Match[str]) -> str:
        inner = match["inner"].strip()
        exact = self._labels.find(inner)
        if exact is not None:
            return match["space"] + self._cite(exact)
        parts = [part.strip() for part in inner.replace(";", ",").split(",") if part.strip()]
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


_SPECIAL = re.compile(r'["\\]')
_LONGEST_ESCAPE = 12  # characters in an escaped surrogate pair


class JsonCitationFilter:
    """Passes JSON on as it arrives, each string when it is complete; used like CitationFilter."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = tuple(labels)
        self._string: list[str] = []  # pieces of the unfinished string, including its opening quotation mark
        self._escaped = False
        self.cited: list[str] = []

    def feed(self, text: str) -> str:
        pieces: list[str] = []
        place = 0
        while place < len(text):
            if not self._string:
                start = text.find('"', place)
                pieces.append(text[place : start if start >= 0 else len(text)])
                if start < 0:
                    break
                self._string.append('"')
                place = start + 1
            elif self._escaped:
                self._string.append(text[place])
                self._escaped = False
                place += 1
            else:
                found = _SPECIAL.search(text, place)
                end = found.end() if found else len(text)
                self._string.append(text[place:end])
                place = end
                if found and found[0] == '"':
                    pieces.append(self._verified("".join(self._string)))
                    self._string.clear()
                elif found:
                    self._escaped = True
        return "".join(pieces)

    def flush(self) -> str:
        """Return the unfinished string of a truncated text, without an incomplete escape."""
        cut = "".join(self._string)
        self._string.clear()
        for length in range(len(cut), max(0, len(cut) - _LONGEST_ESCAPE), -1):
            try:
                json.loads(f'{cut[:length]}"', strict=False)
            except ValueError:
                continue
            return self._verified(f'{cut[:length]}"')[:-1]
        return ""

    def _verified(self, literal: str) -> str:
        try:
            value: str = json.loads(literal, strict=False)
        except ValueError:
            return literal  # invalid JSON, which will be reported when the complete text is parsed
        if "[" not in value:
            return literal
        citations = CitationFilter(self._labels)
        verified = citations.feed(value) + citations.flush()
        self.cited += [label for label in citations.cited if label not in self.cited]
        if verified == value:
            return literal
        # A lone surrogate cannot be stored, so it stays escaped.
        whole = not any("\ud800" <= character <= "\udfff" for character in verified)
        return json.dumps(verified, ensure_ascii=not whole)
