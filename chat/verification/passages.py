"""The passages that an answer may cite, taken apart once for all of its statements."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from ingestion.search.sentence_splitting import split_sentences

from .facts import UNSPACED, Kind, Token, tokens

Mark = tuple[int, int]

_EDGES = ".,;:!?()[]{}\"'“”„‘’«»‹›…*_`>|•–-—。！？、，"
_LEAST_WORDS = 2  # of a quotation
_LEAST_CHARACTERS = 4  # of one in a script that does not space words


@dataclass(frozen=True)
class Unit:
    """A sentence, list item or row of a passage, with its tokens; positions are the passage's."""

    rank: int
    place: int  # among the units of the passage
    tokens: tuple[Token, ...]
    is_heading: bool

    @cached_property
    def values(self) -> frozenset[str]:
        return frozenset(token.value for token in self.tokens if token.kind is not Kind.NEGATION)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(token.value for token in self.tokens if token.kind is Kind.NAME)


class Citable(Protocol):
    """What is asked of a source, whoever brings it."""

    @property
    def rank(self) -> int: ...

    @property
    def label(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...

    @property
    def content(self) -> str: ...


class Passage:
    """The content of one source."""

    def __init__(self, source: Citable) -> None:
        self.rank = source.rank
        self.label = source.label
        self.text = source.content
        self._around = f"{source.title}. {source.heading}. {source.label.partition('#')[0]}"

    @cached_property
    def units(self) -> list[Unit]:
        return [
            Unit(
                self.rank,
                place,
                tuple(_moved(tokens(self.text[span.start : span.end]), span.start)),
                span.is_heading,
            )
            for place, span in enumerate(split_sentences(self.text))
        ]

    @cached_property
    def around(self) -> frozenset[str]:
        """What its title and headings say: the passage need not repeat it."""
        return frozenset(token.value for token in tokens(self._around) if token.kind is not Kind.NEGATION)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(unit.names for unit in self.units))

    @cached_property
    def _words(self) -> tuple[str, list[int], list[Mark]]:
        """The bare words between single spaces, where each begins there, and where it stands in the text."""
        found = [(bare, start, end) for word, start, end in _pieces(self.text) if (bare := _bare(word))]
        begins = [0, *accumulate(len(bare) + 1 for bare, _, _ in found)]
        joined = " ".join(bare for bare, _, _ in found)
        return f" {joined} ", begins[: len(found)], [(start, end) for _, start, end in found]

    @cached_property
    def _characters(self) -> tuple[str, list[int]]:
        """Its letters and digits alone, and where each stands."""
        return _letters(self.text)

    def quoted(self, statement: str) -> Mark | None:
        """Where the words of a statement stand in this order, whatever is between them but letters."""
        if UNSPACED.search(statement):
            return self._quoted_characters(statement)
        wanted = [bare for word in statement.split() if (bare := _bare(word))]
        if len(wanted) < _LEAST_WORDS:
            return None
        joined, begins, places = self._words
        looked_for = " ".join(wanted)
        at = joined.find(f" {looked_for} ")
        if at < 0:
            return None
        first = bisect_right(begins, at) - 1
        last = bisect_right(begins, at + len(looked_for) - 1) - 1
        return places[first][0], places[last][1]

    def _quoted_characters(self, statement: str) -> Mark | None:
        wanted, _ = _letters(statement)
        joined, places = self._characters
        at = joined.find(wanted) if len(wanted) >= _LEAST_CHARACTERS else -1
        return (places[at], places[at + len(wanted) - 1] + 1) if at >= 0 else None


def _letters(text: str) -> tuple[str, list[int]]:
    found = [(character.lower()[:1], place) for place, character in enumerate(text) if character.isalnum()]
    return "".join(character for character, _ in found), [place for _, place in found]


def _pieces(text: str) -> Iterable[tuple[str, int, int]]:
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        yield word, start, end


def _bare(word: str) -> str:
    return word.strip(_EDGES).casefold().replace("’", "'")


def _moved(found: Sequence[Token], by: int) -> Iterable[Token]:
    return (replace(token, start=token.start + by, end=token.end + by) for token in found)
