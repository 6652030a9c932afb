"""The part of a passage that best matches a question, for use if no quotation is known."""

import re
from collections.abc import Iterator

Span = tuple[int, int]

_SENTENCE = re.compile(r"[^.!?\n。！？]*[.!?。！？\n]*", re.S)
_WORD = re.compile(r"\w+")
MIN_COMMON_WORDS = 2
MIN_SHARE = 0.3


def best_span(question: str, content: str) -> Span | None:
    """The sentence whose words best match the question's; None if no sentence matches enough."""
    wanted = frozenset(_words(question))
    best: tuple[float, Span] | None = None
    for match in _SENTENCE.finditer(content):
        words = frozenset(_words(match[0]))
        common = len(words & wanted)
        share = common / max(1, min(len(words), len(wanted)))
        if common >= MIN_COMMON_WORDS and share >= MIN_SHARE and (best is None or share > best[0]):
            before, after = len(match[0].lstrip()), len(match[0].rstrip())
            best = share, (match.end() - before, match.start() + after)
    return best[1] if best else None


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in _WORD.findall(text) if len(word) > 2 or word.isdigit())
