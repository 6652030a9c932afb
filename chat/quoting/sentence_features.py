"""The quotable sentences of a passage, with features that are the same for all questions.

Each process caches these features for recently found passages, because many questions, such as suggested
follow-up questions, find the same passages.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from django.utils.functional import cached_property

from chat.quoting.questions.applicability import (
    case_of,
    condition_of,
    directions_of,
    offices_in,
    outsiders_in,
)
from chat.quoting.questions.entities import has_name, has_place
from chat.quoting.table_rows.named_rows import names_in
from ingestion.embedding import BUILT_IN_NAME, Vectors, embedder, runs_here
from ingestion.search.rough_stems import held_stems, stems, weak_stems
from ingestion.search.sentence_splitting import Span, continues, spans_of
from ingestion.search.table_rows import cells_of

MAX_CACHED = 200  # passages, some ten kilobytes each
MIN_CONTENTS = 4  # a text with this many numbered titles may be a table of contents
MAX_TITLE = 60  # maximum length of such a text per title, in characters
BARE_WORDS = 5  # a list item without a lead-in and with at most this many words means nothing by itself

_POINTER = re.compile(
    r"(?:please )?(?:see|refer to|read|consult|siehe|vgl)\b"
    r"|(?:for )?(?:more|further|detailed) (?:details|information)\b",
    re.IGNORECASE,
)
# “How long you are paid is set out on the next page.”
_ELSEWHERE = re.compile(
    r"\b(?:is|are) (?:(?:set out|described|explained|dealt with|listed|found|given) )?(?:on|in) "
    r"(?:the|another|a) (?:\w+ ){0,2}(?:page|section|chapter|document|guide|manual|handbook)\b"
    r"|\b(?:steht|stehen|finden Sie) (?:auf|in) de[rmn] (?:\w+ ){0,2}"
    r"(?:Seite|Abschnitt|Kapitel|Dokument|Handbuch)\b"
    r"|\bon the (?:next|previous|following) page[.:]?\Z"
)
# The headings of sections that tell how a document changed, or list its parts.
_HISTORY = re.compile(
    r"\A(?:(?:appendix|annex|anhang|anlage|part|teil)? ?[\w.]{0,4}[.:)–-]? ?)?"
    r"(?:(?:list|history|record|log) of )?"
    r"(?:amendments?(?: (?:to|of) .*)?|change ?log|changes|revisions?|release notes|table of contents"
    r"|contents|(?:revision|version|document|change|amendment)s? (?:history|log)|index|versionshistorie"
    r"|änderungs(?:historie|verzeichnis|nachweis|protokoll)|(?:inhalts|stichwort)verzeichnis|inhalt)\s*\Z",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_LEADER = ". . . ."
_CONTENTS_LINE = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){1,4}\.? [^\Wa-zäöü\d_]")
_QUESTION_MARKS = ("?", "？")


class Quotable(Protocol):
    """The attributes of a passage that this module reads."""

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...

    @property
    def content(self) -> str: ...

    @property
    def score(self) -> float: ...


@dataclass(frozen=True)
class QuotableSentence:
    """A sentence with the stems of its words, and of the words around it and in its passage.

    `around` has the previous sentence, the headings and the title; `everywhere` the whole passage with these
    headings and title.
    """

    span: Span
    words: frozenset[str]
    around: frozenset[str]
    everywhere: frozenset[str]
    headings: frozenset[str]
    topic: frozenset[str]  # stems of the innermost heading
    heading: str  # all headings of the passage
    following: "Span | None"  # the next sentence of the same paragraph
    has_list: bool  # whether the sentence introduces a list or table
    is_cut: bool  # whether the sentence is incomplete, or introduces content that the passage lacks
    opens: bool  # whether the sentence is the first one of its passage, or below a heading in it

    @property
    def text(self) -> str:
        return self.span.text

    @cached_property
    def near(self) -> frozenset[str]:
        return self.words | self.around

    @cached_property
    def is_pointer(self) -> bool:
        """Whether the sentence refers to another text: “For details see …”."""
        return bool(_POINTER.match(self.text))

    @cached_property
    def is_elsewhere(self) -> bool:
        """Whether the sentence only says where an answer can be found."""
        return bool(_ELSEWHERE.search(self.text))

    @cached_property
    def history(self) -> frozenset[str]:
        """`topic`, if the passage's last heading is “Change log”, “Table of contents” or the like."""
        return self.topic if _HISTORY.search(self.heading.rpartition("›")[2].strip()) else frozenset()

    @cached_property
    def condition(self) -> frozenset[str]:
        return condition_of(self.text)

    @cached_property
    def case(self) -> frozenset[str]:
        return case_of(self.text)

    @cached_property
    def names(self) -> Sequence[frozenset[str]]:
        """The stems of the names in a row."""
        return [name - weak_stems() for name in names_in(self.text).values()] if self.span.is_row else []

    @cached_property
    def columns(self) -> Sequence[frozenset[str]]:
        """The stems of a row's column names."""
        return [stems(name) - weak_stems() for name in cells_of(self.text)] if self.span.is_row else []

    @cached_property
    def outsiders(self) -> frozenset[str]:
        return outsiders_in(f"{self.text} {self.heading}")

    @cached_property
    def offices(self) -> frozenset[tuple[str, frozenset[str]]]:
        return offices_in(self.text)

    @cached_property
    def directions(self) -> frozenset[tuple[bool, str]]:
        return directions_of(self.text)

    @cached_property
    def has_place(self) -> bool:
        return has_place(self.text)

    @cached_property
    def has_name(self) -> bool:
        return has_name(self.text)


def sentences_of(passage: Quotable) -> tuple[QuotableSentence, ...]:
    """The quotable sentences of a passage in order; empty for a table of contents."""
    return _sentences(passage.title, passage.heading, passage.content)


def vectors_of(passages: Sequence[Quotable], question: str) -> tuple[Vectors, Vectors]:
    """The vector of the question, and those of the sentences of all passages in order."""
    if runs_here():
        # Use the built-in model: one from a configured folder may take a second for this many sentences.
        asked = np.asarray(embedder(BUILT_IN_NAME).embed([question]))
        known = [_vectors(each.title, each.heading, each.content) for each in passages if sentences_of(each)]
        return asked[0], np.concatenate(known)
    sentences = [sentence.text for passage in passages for sentence in sentences_of(passage)]
    vectors = np.asarray(embedder("").embed([question, *sentences]))
    return vectors[0], vectors[1:]


@functools.lru_cache(maxsize=MAX_CACHED)
def _vectors(title: str, heading: str, content: str) -> Vectors:
    texts = [sentence.text for sentence in _sentences(title, heading, content)]
    return np.asarray(embedder(BUILT_IN_NAME).embed(texts))


@functools.lru_cache(maxsize=MAX_CACHED)
def _sentences(title: str, heading: str, content: str) -> tuple[QuotableSentence, ...]:
    if _is_contents(content):
        return ()
    named = held_stems(f"{title} {heading}")
    topic = stems(heading.rpartition("›")[2]) - weak_stems()
    everywhere = held_stems(content) | named
    found = []
    of_heading: frozenset[str] = frozenset()
    above = topic
    before: frozenset[str] = frozenset()
    opens = True
    spans = spans_of(content)
    names = {_plain(title), _plain(heading.rpartition("›")[2])}
    for place, span in enumerate(spans):
        words = held_stems(span.text)
        if span.is_heading or _plain(span.text) in names:
            of_heading, above, before = words, stems(span.text) or topic, frozenset()
            opens = True
            continue
        if not span.text.endswith(_QUESTION_MARKS) and not _is_bare_item(spans, place):
            after = spans[place + 1] if place + 1 < len(spans) else None
            introduces = span.text.endswith((":", "："))
            found.append(
                QuotableSentence(
                    span,
                    words,
                    named | of_heading | before,
                    everywhere,
                    named | of_heading,
                    above,
                    heading,
                    following=after if after and after.block == span.block else None,
                    has_list=introduces and after is not None and (after.is_item or after.is_row),
                    is_cut=continues(spans, place) or (introduces and after is None),
                    opens=opens,
                )
            )
        before, opens = words, False
    return tuple(found)


def _is_contents(content: str) -> bool:
    """Whether the content is a table of contents: almost only numbered titles."""
    titles = len(_CONTENTS_LINE.findall(content))
    return titles >= MIN_CONTENTS and titles * MAX_TITLE > len(content)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text)).lower()


def _is_bare_item(spans: Sequence[Span], place: int) -> bool:
    """Whether the sentence has no meaning by itself.

    This applies to a line of a table of contents, and to a short list item without a lead-in, such as the
    number and title of a part.
    """
    span = spans[place]
    if _LEADER in span.text:
        return True
    if not span.is_item or len(span.text.split()) > BARE_WORDS:
        return False
    first = place
    while first and spans[first - 1].is_item:
        first -= 1
    leads_in = (":", "：", "—", "–")
    return first == 0 or spans[first - 1].is_heading or not spans[first - 1].text.endswith(leads_in)
