"""Splits an answer into statements, each with its citations."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ingestion.search.sentence_splitting import Span, split_sentences

MAX_STATEMENTS = 300  # statements of an answer; the rest of a longer answer becomes a single statement
CITATION = re.compile(r"\[([^\[\]\n]{1,800})\](?!\()")

_FENCE = re.compile(r"^[ \t>]{0,20}(`{3,}|~{3,})", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{1,400}(?<!`)\1(?!`)")
_FIRST = re.compile(r"[^\s>*•–-]")
_QUOTED_BLOCK = re.compile(r"(?:^ {0,3}>.*\n?)++", re.MULTILINE)
_QUOTED_TABLE = re.compile(r"^ {0,3}>[ \t]{0,8}\|", re.MULTILINE)
_TABLE_ROW = re.compile(r"^ {0,3}\|.*", re.MULTILINE)
_TABLE_RULE = re.compile(r"[ \t]*+\|?[ \t]*+:?-[-|: \t]*+$", re.MULTILINE)
_NOT_SPACE = re.compile(r"[^\s]")
_WORD = re.compile(r"\w")
_NUMBER = re.compile(r"(?<![^\n>])[ \t]{0,20}\d{1,9}[.)][ \t]{1,20}")
# Text with fewer words before a citation is no statement by itself: “As in [a], it ends in May [b].”
_SEGMENT_WORDS = 3
_AFTER = re.compile(r"[.,;:!?…)\]\"'”’»*_。！？\s]*+")


@dataclass(frozen=True, slots=True)
class Citation:
    """`[label]` at start:end of the answer."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class StatementSpan:
    """A statement at start:end of the answer.

    With `past_bound`, it is the text beyond MAX_STATEMENTS, which is not compared with sources.
    """

    start: int
    end: int
    citations: tuple[Citation, ...]
    past_bound: bool = False


def cut(answer: str, labels: Collection[str]) -> list[StatementSpan]:
    """The statements in order: sentences, list items and table rows.

    Fenced code is left out, and so are headings, table headers, questions, and lead-ins (sentences that end
    with a colon), unless they have citations.

    A sentence with citations in several places becomes one statement for each place. A citation after a full
    stop belongs to the sentence before it. Citations of a lead-in also belong to the list items below it that
    have none. A sentence without citations in a table row gets those that follow it in the row. A block
    quotation without a table, and with citations only at its end, is one statement.
    """
    masked = _without_code(answer)
    citations = [
        Citation(match.start(), match.end(), match[1])
        for match in CITATION.finditer(masked)
        if match[1] in labels
    ]
    prose = _blanked(masked, [(citation.start, citation.end) for citation in citations])
    spans = [_without_number(prose, span) for span in split_sentences(prose)]
    starts = [citation.start for citation in citations]
    quotations = _quotations(prose, citations)
    quoted_from = [start for start, _, _ in quotations]
    rows = [match.span() for match in _TABLE_ROW.finditer(prose)]
    row_starts = [start for start, _ in rows]
    found: list[StatementSpan] = []
    inherited: tuple[Citation, ...] = ()
    for place, span in enumerate(spans):
        following = spans[place + 1].start if place + 1 < len(spans) else len(answer)
        own = tuple(
            citations[bisect_left(starts, span.start if place else 0) : bisect_left(starts, following)]
        )
        before = prose[max(0, span.start - 40) : span.start]
        mark = before[before.rfind("\n") + 1 :].strip()
        is_item = bool(mark) and not _WORD.search(mark.rstrip(".)0123456789")) and mark[-1:] not in "#|>"
        if not is_item:
            inherited = own if span.text.endswith(":") else ()
        if not own and is_item and inherited:
            own = inherited
        row = bisect_right(row_starts, span.start) - 1
        if not own and row >= 0 and span.start < rows[row][1]:
            own = tuple(citations[bisect_left(starts, span.start) : bisect_left(starts, rows[row][1])])
        nearest = bisect_right(quoted_from, span.start) - 1
        if nearest >= 0 and span.start < quotations[nearest][1]:
            if not found or found[-1] is not quotations[nearest][2]:
                found.append(quotations[nearest][2])
        elif own or not _says_nothing(prose, span):
            found += _segments(prose, span, own)
        if len(found) > MAX_STATEMENTS:
            first = found[MAX_STATEMENTS].start
            rest = tuple(citations[bisect_left(starts, first) :])
            return [*found[:MAX_STATEMENTS], StatementSpan(first, len(answer), rest, past_bound=True)]
    return found


def _quotations(prose: str, citations: Sequence[Citation]) -> list[tuple[int, int, StatementSpan]]:
    """Block quotations without tables, cited only at their end: start, end, single statement."""
    found = []
    place = 0
    for block in _QUOTED_BLOCK.finditer(prose):
        start, end = block.span()
        while place < len(citations) and citations[place].start < start:
            place += 1
        within = place
        while within < len(citations) and citations[within].start < end:
            within += 1
        own = tuple(citations[place:within])
        place = within
        first = _FIRST.search(prose, start, end)
        if not own or first is None or not first.start() < own[0].start:
            continue
        if not _WORD.search(prose, own[0].start, end) and not _QUOTED_TABLE.search(prose, start, end):
            found.append((start, end, StatementSpan(*_bare(prose, first.start(), own[0].start), own)))
    return found


def _without_code(answer: str) -> str:
    """The text without code that could be mistaken for statements or citations.

    Fenced blocks are replaced with blanks; in inline code, only square brackets are.
    """
    fences: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(answer):
        if opened is None:
            opened = match
        elif match[1][0] == opened[1][0] and len(match[1]) >= len(opened[1]):
            end = answer.find("\n", match.end())
            fences.append((opened.start(), end if end >= 0 else len(answer)))
            opened = None
    if opened is not None:
        fences.append((opened.start(), len(answer)))
    blank = _blanked(answer, fences) if fences else answer
    if "`" not in blank:
        return blank
    # Blank the brackets of apparent citations; the words of inline code remain.
    return _CODE.sub(lambda code: code[0].replace("[", " ").replace("]", " "), blank)


def _blanked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """The text with these ranges replaced with spaces; line breaks and length do not change."""
    parts: list[str] = []
    end = 0
    for start, stop in ranges:
        parts += [text[end:start], _NOT_SPACE.sub(" ", text[start:stop])]
        end = stop
    parts.append(text[end:])
    return "".join(parts)


def _without_number(text: str, span: Span) -> Span:
    """The sentence without the number of its list item."""
    line = text.rfind("\n", 0, span.start) + 1
    number = _NUMBER.match(text, line if not text[line : span.start].strip() else span.start)
    if not number or not span.start < number.end() < span.end:
        return span
    return replace(span, start=number.end(), text=span.text[number.end() - span.start :])


def _says_nothing(text: str, span: Span) -> bool:
    """Whether the span is a heading, a lead-in, a question or a table header, or has no words."""
    if span.is_heading or span.text.endswith((":", "?", "：", "？")) or not _WORD.search(span.text):
        return True
    bare = span.text.strip("*_ ")
    if span.text.startswith(("**", "__")) and span.text.endswith(("**", "__")) and bare[-1:] not in ".!。":
        return True
    line_end = text.find("\n", span.end)
    return (
        line_end >= 0 and "|" in text[span.start : line_end] and bool(_TABLE_RULE.match(text, line_end + 1))
    )


def _segments(text: str, span: Span, citations: Sequence[Citation]) -> Iterator[StatementSpan]:
    """The sentence, or its parts if it has citations in several places."""
    groups: list[list[Citation]] = []  # citations of one group have only spaces and punctuation between them
    for citation in citations:
        if not groups or _WORD.search(text, groups[-1][-1].end, citation.start):
            groups.append([])
        groups[-1].append(citation)
    start = span.start
    kept: list[Citation] = []
    for place, group in enumerate(groups):
        kept += group
        last = place == len(groups) - 1
        ends = start < group[0].start < span.end and not (
            last and _WORD.search(text, group[-1].end, span.end)
        )
        end = group[0].start if ends else span.end
        words = len(text[start:end].split())
        if not last and words < _SEGMENT_WORDS:
            continue
        yield StatementSpan(*_bare(text, start, max(end, start)), tuple(kept))
        start, kept = _AFTER.match(text, group[-1].end).end(), []  # type: ignore[union-attr]
    if not groups:
        yield StatementSpan(span.start, span.end, ())


def _bare(text: str, start: int, end: int) -> tuple[int, int]:
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
