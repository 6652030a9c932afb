"""Which words of a source an answer's sentence rests on, so that the portal can mark them.

Both texts are foreign: all of this takes time in proportion to their lengths, and runs off the event loop.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from chat.sources import SourceView

Span = tuple[int, int]

_CITATION = re.compile(r"(?<![ \t])(?:[ \t]*\[[^\[\]\n]{1,400}\])+")
_LABEL = re.compile(r"\[([^\[\]\n]+)\]")
_SENTENCE = re.compile(r"[^.!?\n。！？]*[.!?。！？\n]*", re.S)
_WORD = re.compile(r"\w+")
_BLACK = re.compile(r"\S+")
LEAST_COMMON_WORDS = 2
LEAST_SHARE = 0.3
MAX_STATEMENTS = 100  # of an answer that are looked for: each is compared with the sources that it cites
MAX_STATEMENT_CHARACTERS = 2_000  # the end of what is longer


@dataclass(frozen=True)
class _Content:
    """The text of one passage, taken apart once for all statements."""

    text: str

    @cached_property
    def words(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())

    @cached_property
    def starts(self) -> tuple[list[int], list[int]]:
        """Where each word begins: in `words`, and in the text."""
        there = [match.start() for match in _BLACK.finditer(self.text)]
        here = [0, *accumulate(len(word) + 1 for word in self.text.split())]
        return here[: len(there)], there

    def place(self, position: int) -> int:
        """Where in the text that character of `words` stands."""
        here, there = self.starts
        word = bisect_right(here, position) - 1
        return there[word] + position - here[word]

    @cached_property
    def sentences(self) -> list[tuple[frozenset[str], Span]]:
        """The words of each sentence, and where it stands."""
        return [
            (frozenset(_words(match[0])), _trimmed(match))
            for match in _SENTENCE.finditer(self.text)
            if match[0]
        ]


def quotes(answer: str, sources: Sequence[SourceView]) -> dict[int, list[Span]]:
    """Rank of each cited source → spans of its content, in characters, in order and without overlap."""
    by_label: dict[str, list[tuple[int, _Content]]] = {}
    for source in sources:
        by_label.setdefault(source.label, []).append((source.rank, _Content(source.content)))
    found: dict[int, set[Span]] = {}
    wanted = dict.fromkeys(
        (statement, label)
        for statement, labels in _statements(answer)
        for label in labels
        if label in by_label
    )
    for statement, label in list(wanted)[:MAX_STATEMENTS]:
        rank, span = _best_place(statement, by_label[label])
        if span:
            found.setdefault(rank, set()).add(span)
    return {rank: sorted(spans) for rank, spans in found.items()}


def best_span(statement: str, content: str) -> Span | None:
    """The statement itself where it stands in `content`, else the sentence that shares most words with it."""
    parted = _Content(content)
    return _literal(statement, parted) or _closest(statement, parted)


def _best_place(statement: str, passages: Sequence[tuple[int, _Content]]) -> tuple[int, Span | None]:
    """Passages of a page share a label: the one in which the statement stands, else the first that fits."""
    for find in (_literal, _closest):
        for rank, content in passages:
            if span := find(statement, content):
                return rank, span
    return 0, None


def _closest(statement: str, content: _Content) -> Span | None:
    wanted = frozenset(_words(statement))
    best: tuple[float, Span] | None = None
    for words, span in content.sentences:
        common = len(words & wanted)
        share = common / max(1, min(len(words), len(wanted)))
        if common >= LEAST_COMMON_WORDS and share >= LEAST_SHARE and (best is None or share > best[0]):
            best = (share, span)
    return best[1] if best else None


def _trimmed(match: re.Match[str]) -> Span:
    text = match[0]
    return match.start() + len(text) - len(text.lstrip()), match.start() + len(text.rstrip())


def _statements(answer: str) -> Iterator[tuple[str, list[str]]]:
    """Each text that is followed by citations, with the labels that it cites."""
    position, statement = 0, ""
    for match in _CITATION.finditer(answer):
        before = answer[position : match.start()].strip()[-MAX_STATEMENT_CHARACTERS:]
        if before:
            lines = [line for line in before.splitlines() if line.strip()]
            statement = lines[-1] if lines else before
        yield statement, _LABEL.findall(match[0])
        position = match.end()


def _literal(statement: str, content: _Content) -> Span | None:
    """Where the statement stands word for word, whatever the white space."""
    words = statement.strip("> \t*_“”\"'").split()
    if len(words) < LEAST_COMMON_WORDS:
        return None
    wanted = " ".join(words)
    first = content.words.find(wanted)
    if first < 0:
        return None
    return content.place(first), content.place(first + len(wanted) - 1) + 1


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text) if len(word) > 2 or word.isdigit()]
