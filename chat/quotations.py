"""Which words of a source an answer's sentence rests on, so that the portal can mark them."""

import re
from collections.abc import Sequence

from chat.sources import SourceView

Span = tuple[int, int]

_CITATION = re.compile(r"(?:[ \t]*\[[^\[\]\n]{1,400}\])+")
_SENTENCE = re.compile(r"[^.!?\n。！？]*[.!?。！？\n]*", re.S)
_WORD = re.compile(r"\w+")
LEAST_COMMON_WORDS = 2
LEAST_SHARE = 0.3


def quotes(answer: str, sources: Sequence[SourceView]) -> dict[int, list[Span]]:
    """Rank of each cited source → spans of its content, in characters, in order and without overlap."""
    found: dict[int, set[Span]] = {}
    for statement, labels in _statements(answer):
        for label in labels:
            rank, span = _best_place(statement, [source for source in sources if source.label == label])
            if span:
                found.setdefault(rank, set()).add(span)
    return {rank: sorted(spans) for rank, spans in found.items()}


def _best_place(statement: str, sources: Sequence[SourceView]) -> tuple[int, Span | None]:
    """Passages of a page share a label: the one in which the statement stands, else the first that fits."""
    for find in (_literal, best_span):
        for source in sources:
            if span := find(statement, source.content):
                return source.rank, span
    return 0, None


def best_span(statement: str, content: str) -> Span | None:
    """The statement itself where it stands in `content`, else the sentence that shares most words with it."""
    literal = _literal(statement, content)
    if literal:
        return literal
    wanted = set(_words(statement))
    best: tuple[float, Span] | None = None
    for match in _SENTENCE.finditer(content):
        words = set(_words(match[0]))
        common = len(words & wanted)
        share = common / max(1, min(len(words), len(wanted)))
        if common >= LEAST_COMMON_WORDS and share >= LEAST_SHARE and (best is None or share > best[0]):
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            best = (share, (start, match.start() + len(match[0].rstrip())))
    return best[1] if best else None


def _statements(answer: str) -> list[tuple[str, list[str]]]:
    """Each text that is followed by citations, with the labels that it cites."""
    statements: list[tuple[str, list[str]]] = []
    position = 0
    for match in _CITATION.finditer(answer):
        before = answer[position : match.start()].strip()
        if before:
            lines = [line for line in before.splitlines() if line.strip()]
            statement = lines[-1] if lines else before
        else:
            statement = statements[-1][0] if statements else ""
        statements.append((statement, re.findall(r"\[([^\[\]\n]+)\]", match[0])))
        position = match.end()
    return statements


def _literal(statement: str, content: str) -> Span | None:
    """Where the statement stands word for word, whatever the white space."""
    words = statement.strip("> \t*_“”\"'").split()
    if len(words) < LEAST_COMMON_WORDS:
        return None
    match = re.search(r"\s+".join(re.escape(word) for word in words), content)
    return (match.start(), match.end()) if match else None


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text) if len(word) > 2 or word.isdigit()]
