"""Passages that an answer may cite, tokenised once for all statements of the answer."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from django.utils.functional import cached_property

from ingestion.search.sentence_splitting import split_sentences

from .terms.facts import UNSPACED, abbreviations, language_of, parts_of, tokens
from .terms.lexicon import STOP_WORDS
from .terms.likeness import Likeness
from .terms.relations import Relations
from .terms.words import Kind, Token, measure

Mark = tuple[int, int]

_SENTENCE_ENDS = (".", "!", "?", "…", ";", ":", "。", "！", "？")
_NUMBERED = re.compile(r"[.)]\s")
_EDGES = ".,;:!?()[]{}\"'“”„‘’«»‹›…*_`>|•–-—。！？、，"
_WRAPPED = (
    # A sentence's first line break is only intentional if the line and the next word would have fitted into
    # this share of the longest line.
    0.85
)
_LABEL = re.compile(r"(?:^|;\s)\s{0,20}([^:;\s][^:;\n]{0,60}):\s")
_FOOT = re.compile(r"\b(?:Page|Seite) \d{1,5} (?:of|von) \d{1,5}\b")  # a page footer
_FOOT_LENGTH = 200
_INDENT = 20  # blanks before a footer in its line, at most
_NOT_SPACES = re.compile(r"\S+")
_ITEM = re.compile(r"[ \t]{0,20}(?:[-*•]|\d{1,3}[.)]|[a-z]\))[ \t]")
_HEADER_LINES = 2  # in the header of a table, including a heading above it
_HEADER_TOKENS = 40  # tokens of such a line that are used
_ARTICLE = 8  # characters before the first token of a sentence that are searched for its article
_MIN_WORDS = 2  # words of a quotation
_MIN_CHARACTERS = 4  # characters of a quotation in a script without spaces


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with its label; `start` and `end` are token positions in its row.

    `opening` has the words before the first token, such as “up to”, and `begin` is where they start in the
    text. `closing` has the last token and the words after it, such as “pay made up”, and `finish` is its end.
    """

    label: frozenset[str]
    words: frozenset[str]
    start: int
    end: int
    opening: str = ""
    begin: int = 0
    closing: str = ""
    finish: int = 0


@dataclass(frozen=True)
class Unit:
    """A sentence, heading, list item or row, with its tokens; positions are those in the passage."""

    rank: int
    place: int  # index among the units of the passage
    tokens: tuple[Token, ...]
    is_heading: bool
    is_sentence: bool = True  # False for headings and lines without a final mark: any word may be capitalised
    context: frozenset[str] = frozenset()  # words of the heading above and of the table's header
    table: int = -1  # the number of its table in the passage; -1 outside tables and in their headers
    header: tuple[Token, ...] = ()  # the header of this table
    denied: bool = False  # whether the lead-in of its list has a negation: “It must not:”
    columns: tuple[Token, ...] = ()  # the line of this header that names the columns
    cells: tuple[Cell, ...] = ()  # the cells of a row in the form “Class: A; Passengers: 320”
    text: str = field(default="", repr=False, compare=False)  # the text of the passage

    @cached_property
    def said(self) -> frozenset[tuple[str, bool]]:
        return said(self.tokens) | {(value, False) for value in self.context}

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the unit and its context."""
        return self.context | self.content

    @cached_property
    def content(self) -> frozenset[str]:
        """The words of the unit itself."""
        return frozenset(token.value for token in self.tokens if token.kind in (Kind.WORD, Kind.NAME))

    @cached_property
    def values(self) -> frozenset[str]:
        return frozenset(token.value for token in self.tokens if token.kind is not Kind.NEGATION)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(token.value for token in self.tokens if token.kind is Kind.NAME)

    @cached_property
    def measures(self) -> frozenset[tuple[str, float]]:
        return frozenset(found for token in self.tokens if token.unit and (found := measure(token)))

    @cached_property
    def abbreviated(self) -> dict[str, frozenset[str]]:
        return abbreviations(self.tokens, self.text)

    @cached_property
    def articles(self) -> dict[str, str]:
        return articles_of(self.tokens, self.text)

    @cached_property
    def parts(self) -> list[list[Token]]:
        return parts_of(self.tokens, self.text)

    @cached_property
    def numbers(self) -> int:
        return len(self.number_tokens)

    @cached_property
    def number_places(self) -> tuple[int, ...]:
        """Positions of numbers among the tokens."""
        return tuple(at for at, token in enumerate(self.tokens) if token.kind is Kind.NUMBER)

    @cached_property
    def number_tokens(self) -> tuple[Token, ...]:
        return tuple(self.tokens[at] for at in self.number_places)

    @cached_property
    def relations(self) -> Relations:
        return Relations(self.tokens)


def said(found: Iterable[Token]) -> frozenset[tuple[str, bool]]:
    """All words, each with whether it was recognised as a word that has an opposite.

    For example, “open” has the opposite “closed”, but not as the stem of “opening”.
    """
    kinds = (Kind.WORD, Kind.NAME, Kind.POLAR)
    return frozenset((token.value, token.kind is Kind.POLAR) for token in found if token.kind in kinds)


def articles_of(found: Sequence[Token], text: str) -> dict[str, str]:
    """The word before each token, or before a run of adjacent tokens.

    If it is an article, it shows the case of a German noun.
    """
    articles: dict[str, str] = {}
    article, end = "", max(0, found[0].start - _ARTICLE) if found else 0
    for token in found:
        if between := text[end : token.start].split():
            article = between[-1].casefold() if between[-1].isalpha() else ""
        articles.setdefault(token.value, article)
        end = token.end
    return articles


class Citable(Protocol):
    """The attributes of a source that verification needs."""

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
    def _lines(self) -> list[tuple[int, int, bool]]:
        return list(_lines(self.text))

    @cached_property
    def _line_starts(self) -> list[int]:
        return [start for start, _, _ in self._lines]

    def sentence_end(self, place: int) -> int:
        """The end of the sentence or line that contains the character at `place`."""
        return self._lines[max(bisect_right(self._line_starts, place) - 1, 0)][1]

    @cached_property
    def units(self) -> list[Unit]:
        """Sentences, headings, list items and rows; in PDF files, each line of a table is a row."""
        header: tuple[Token, ...] = ()
        columns: tuple[Token, ...] = ()
        headers = 0
        denied = False
        found: list[Unit] = []
        table = rows = 0
        context: frozenset[str] = frozenset()  # words of the table's header, or of the heading above
        for place, (start, end, is_heading) in enumerate(self._lines):
            held = tuple(tokens(self.text[start:end], start))
            foot = _FOOT.search(self.text, start, end) if end - start < _FOOT_LENGTH else None
            if foot:
                held = tuple(token for token in held if not foot.start() <= token.start < foot.end())
                if not held or self._is_footer(start, foot.end(), end):
                    continue
            if denied:
                denied = bool(_ITEM.match(self.text, self.text.rfind("\n", 0, start) + 1))
            if held and held[0].kind is Kind.NUMBER and _NUMBERED.match(self.text, held[0].end):
                held = held[1:]  # “(2) …”
            if is_heading or not self.text[start:end].rstrip("\"'”’)*_ ").endswith(_SENTENCE_ENDS):
                cells = _cells(self.text, start, end, held)
                heading_like = not cells and not any(token.kind is Kind.NUMBER for token in held[1:])
                is_header = rows == headers < _HEADER_LINES and heading_like
                number = -1 if is_header or not (rows or cells) else table
                found.append(
                    Unit(
                        self.rank,
                        place,
                        held,
                        is_heading,
                        False,
                        context,
                        number,
                        header,
                        denied,
                        columns,
                        cells,
                        self.text,
                    )
                )
                own = frozenset(
                    token.value for token in held[:_HEADER_TOKENS] if token.kind in (Kind.WORD, Kind.NAME)
                )
                if is_header:
                    if not any(token.value.startswith("letter ") for token in columns):
                        columns = held[:_HEADER_TOKENS]
                    header += held[:_HEADER_TOKENS]
                    headers += 1
                    context |= own
                rows += 1
                last = own if heading_like else frozenset()
            else:
                if rows:
                    context, header, columns, headers, rows, table = last, (), (), 0, 0, table + 1
                found.append(
                    Unit(self.rank, place, held, False, True, context, denied=denied, text=self.text)
                )
            if self.text[start:end].rstrip("*_ ").endswith(":"):
                denied = any(token.kind is Kind.NEGATION for token in held)
        return found

    def _is_footer(self, start: int, number_end: int, end: int) -> bool:
        """Whether a line among others is a footer, because it ends with the number of the page."""
        begins_line = self.text[max(0, start - _INDENT) : start].rstrip(" \t")[-1:] in ("", "\n")
        ends_with_number = not self.text[number_end:end].strip(" \n*_|–—-")
        return begins_line and ends_with_number and "\n" in self.text.strip()

    @cached_property
    def around(self) -> frozenset[str]:
        """The words of the title, the headings and the label.

        A statement may use them although the text lacks them.
        """
        return frozenset(token.value for token in self.tokens if token.kind is not Kind.NEGATION)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(unit.names for unit in self.units if unit.is_sentence))

    @cached_property
    def values(self) -> frozenset[str]:
        return self.around.union(*(unit.values for unit in self.units))

    @cached_property
    def relations(self) -> Relations:
        return Relations([*(token for unit in self.units for token in unit.tokens), *self.tokens])

    @cached_property
    def language(self) -> str:
        return language_of(self.text)

    @cached_property
    def likeness(self) -> Likeness:
        units = self.units
        sentences, contexts = [unit.tokens for unit in units], [unit.context for unit in units]
        return Likeness(sentences, contexts, self.tokens, self.relations)

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the title, the headings and the label."""
        return tokens(self._around)

    @cached_property
    def _words(self) -> tuple[str, list[int], list[Mark]]:
        """The words joined by single spaces, and their positions in this string and in the text."""
        words = _NOT_SPACES.finditer(self.text)
        found = [(bare, word.start(), word.end()) for word in words if (bare := _bare(word[0]))]
        begins = [0, *accumulate(len(bare) + 1 for bare, _, _ in found)]
        joined = " ".join(bare for bare, _, _ in found)
        return f" {joined} ", begins[: len(found)], [(start, end) for _, start, end in found]

    @cached_property
    def _characters(self) -> tuple[str, list[int]]:
        """The letters and digits, with their positions in the text."""
        return _letters(self.text)

    def quoted(self, statement: str) -> Mark | None:
        """The range in which a statement occurs word for word; None if it does not.

        Only case, spaces and punctuation may differ.
        """
        if UNSPACED.search(statement):
            return self._quoted_characters(statement)
        wanted = [bare for word in statement.split() if (bare := _bare(word))]
        if len(wanted) < _MIN_WORDS:
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
        at = joined.find(wanted) if len(wanted) >= _MIN_CHARACTERS else -1
        return (places[at], places[at + len(wanted) - 1] + 1) if at >= 0 else None


def _cells(text: str, start: int, end: int, held: Sequence[Token]) -> tuple[Cell, ...]:
    """The cells of a row in the form “label: value; …”.

    Empty for a line with fewer than two labels.
    """
    labels = list(_LABEL.finditer(text[start:end]))
    if len(labels) < 2:
        return ()
    cells = []
    at = 0
    for place, match in enumerate(labels):
        label_end = start + match.end(1)
        cell_end = start + labels[place + 1].start() if place + 1 < len(labels) else end
        label: set[str] = set()
        words: set[str] = set()
        while at < len(held) and held[at].start < label_end:
            label.add(held[at].value)
            at += 1
        first = at
        while at < len(held) and held[at].start < cell_end:
            words.add(held[at].value)
            at += 1
        opens = held[first].start if first < at else cell_end
        opening = text[label_end:opens].lstrip(": ")
        begin = opens - len(opening)
        closing = text[held[at - 1].start : cell_end].rstrip("; \n") if first < at else ""
        finish = held[at - 1].start + len(closing) if closing else 0
        both = opening.strip(), begin, closing, finish
        cells.append(Cell(frozenset(label), frozenset(words), first, at, *both))
    return tuple(cells)


def _lines(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end and `is_heading` of the sentences, which also end at intentional line breaks."""
    longest = max(map(len, text.splitlines()), default=0)
    width = longest * _WRAPPED
    for span in split_sentences(text):
        start = span.start
        at = text.find("\n", start, span.end)
        while at >= 0:
            line = text[text.rfind("\n", 0, at) + 1 : at].rstrip()
            following = text[at + 1 : at + 80].split(maxsplit=1)
            limit = longest if start > span.start else width
            if (
                following
                and (following[0][0].isupper() or following[0][0].isdigit())
                and len(line) + 1 + len(following[0]) <= limit
                and not line.endswith((",", "-"))
                and (len(line) < longest / 2 or line.rpartition(" ")[2].casefold() not in STOP_WORDS)
            ):
                yield start, at, span.is_heading
                start = at + 1
            at = text.find("\n", at + 1, span.end)
        yield start, span.end, span.is_heading


def _letters(text: str) -> tuple[str, list[int]]:
    found = [(character.lower()[:1], place) for place, character in enumerate(text) if character.isalnum()]
    return "".join(character for character, _ in found), [place for _, place in found]


def _bare(word: str) -> str:
    return word.strip(_EDGES).casefold().replace("’", "'")
