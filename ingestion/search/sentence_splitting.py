"""Splits text into quotable pieces with positions: sentences, bullets, table rows, headings.

Lines may break anywhere, so a line break alone does not end a sentence, but a blank line, a bullet, a row or
a heading does. In a paragraph whose lines are short, as in an address or a schedule, so does each line break
that no lower-case letter follows.
"""

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_CACHED = 1_000  # passages, some kilobytes each; cached because different questions find the same passages
LONGEST = 500  # characters; longer sentences are cut at semicolons or line breaks
_SHORT_LINE = 70  # characters of a line that may be a heading
_NUMBERED_LINE = 100  # the same for a line that begins with a section number
MIN_CLAUSE = 12  # characters of an enumerated clause; shorter ones only refer to others, as in “(a) and (b)”
# A line is short if it and the first word of the next line would fit into _SHORT_SHARE of the longest line;
# if the longest line has more than _LONGEST_SHORT characters, no line is short.
_SHORT_SHARE, _LONGEST_SHORT = 0.75, 90

_BLOCK_START = re.compile(r"\s*(?:[-*•–▪‣●○■❑❖➢]\s|\(?\d{1,2}[.)]\s|\(?[a-z]\)\s|#{1,6}\s|\||>)")
_ITEM = re.compile(r"\s*(?:[-*•–▪‣●○■❑❖➢]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s)")
_NUMBERED = re.compile(r"(?:\d{1,3}\.){1,5}\d{1,3}\.?[ \t]{1,8}(?:[^\Wa-zß-öø-ÿ\d_]|/)")
# The label of a list item before its full stop, as in “100. Item” and “iii. Item”.
_LABEL = re.compile(r"(?:\A|(?<=\n))[ \t]*(?:\d{1,3}|[ivx]{1,6}|[IVX]{1,6})\Z")
_LABEL_CHARACTERS = 10
_MARKER = re.compile(r"(?:\s|[-*•–▪‣●○■❑❖➢](?=\s)|#{1,6}(?=\s)|\|(?=\s)|>(?=\s))+")
_ROW = re.compile(r"\s*[^;:\n]{1,80}: [^;\n]*(?:; [^;:\n]{1,80}: [^;\n]*)+\s*\Z")
_CELL = re.compile(r"\s*([^;:\n]{1,80}): [^;:\n]+\s*\Z")
_RULE = re.compile(r"[\s|:\-=_*+]*\Z")
# Ends of sentences: of Latin and similar scripts, where group 1 is the next letter, which must not be lower
# case; of scripts without spaces; and of scripts such as Arabic and Devanagari.
_END = re.compile(
    r"(?<![.!?…])[.!?…]+[\"'”’»)\]]*(?=\s+[\"'“‘«„¿¡(\[]*(\w))|[。！？｡]+[」』”’）]*|[؟۔।]+[\"'”’»)\]]*"
)
_CLAUSE = re.compile(r"\(([a-z])\)(?=\s?\w)")  # as in “The owner must: (a) …; (b) …”
_ENDS_CLAUSE = re.compile(r"(?:[;,.:—–]|\b(?:and|or|und|oder))\Z")
_CUT = re.compile(r";\s|\n")
# A sentence before a list: “Try the following. If one does not help, go on to the next.”
INTRODUCES_LIST = re.compile(
    r"\b(?:the following|as follows|these (?:steps|rules|points)|here is how|folgende\w{0,2}|wie folgt)\b"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|\d{1,2}|several|zwei|drei|vier|fünf|sechs|mehrere)"
    r" (?:[\w-]{1,20} ){0,2}(?:ways|steps|actions|options|methods|rules|conditions|reasons|cases|kinds"
    r"|possibilities|schritte|möglichkeiten|wege|gründe|bedingungen|regeln|fälle)\b",
    re.IGNORECASE,
)
# Abbreviations that end with a full stop and may precede a word that looks like the start of a sentence: a
# name, a number, or, in German, any noun.
_ABBREVIATIONS = """
    mr mrs ms dr prof st sr jr vs no nr fig art sec ch vol p pp approx ca cf al inc ltd co corp dept est
    gen col capt lt rev hon jan feb mar apr jun jul aug sep sept oct nov dec max min tel
    bzw usw abs str vgl ggf evtl inkl zzgl abt mio mrd tsd std ziff buchst kap abb anl gem insb bspw sog
    einschl exkl geb az stk dipl ext incl excl
    mme mlle env chap éd hab
    sra srta pág págs núm ud uds avda dña
    sig dott pag artt ecc
    bijv dhr mevr blz enz art
    exmo exma núm
    kl resp bl dvs osv
    np tj ul pkt ust r godz tzw itd inż mgr
    г гг ул стр рис руб им см др тыс млн млрд т е д п ст
    vb örn bkz sn cad sok
""".split()  # noqa: SIM905 (a list of words reads as one)
_ABBREVIATION = re.compile(
    rf"(?:\b(?:{'|'.join(_ABBREVIATIONS)})|\b\w|\b[^\W\d_]{{1,2}}(?:\.[^\W\d_]{{1,3}}){{1,4}}|\b\d{{1,2}})\.\Z",
    re.IGNORECASE,
)


# What makes a number with a full stop a German ordinal (“am 12. März”, “im 2. Stock”): a month after it,
# or an article or preposition before it, unless the next word begins a sentence.
_MONTH = re.compile(
    r"\s+(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)
_BEFORE_ORDINAL = re.compile(
    r"\b(?:am|im|der|die|das|dem|den|des|zum|zur|vom|beim)\s+\d{1,2}\Z", re.IGNORECASE
)
_BEGINS = re.compile(
    r"\s+(?:Der|Die|Das|Den|Dem|Ein|Eine|Es|Er|Sie|Wir|Ich|Man|In|Im|Am|An|Auf|Bei|Bis|Ab|Für|Mit|Nach|Von|Vor|Zu"
    r"|Zum|Zur|Danach|Dann|Davor|Dies|Diese|Dieser|Dieses|Wenn|Wer|Alle|Jede|Jeder|Jedes|Auch|Ist|Sind|Wird|Werden|Hat"
    r"|Haben|Nur|The|This|It|In|If|You|We|They|A|An|All|For|From|After|Then)\b"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A sentence or another quotable piece: `text` is the text at start:end, on one line.

    `block` is the number of its paragraph, list item, row or heading, to distinguish neighbours.
    """

    start: int
    end: int
    text: str
    is_heading: bool = False
    is_item: bool = False
    is_row: bool = False
    block: int = 0


def continues(spans: Sequence[Span], place: int) -> bool:
    """Whether a span continues the previous passage, or the last item of the list above it."""
    span = spans[place]
    above = spans[place - 1] if place else None
    follows = above is None or (above.is_item and above.block != span.block)
    return follows and span.text[:1].islower() and not (span.is_item or span.is_row)


@functools.lru_cache(maxsize=MAX_CACHED)
def spans_of(content: str) -> tuple[Span, ...]:
    """The pieces of a passage that can be quoted by themselves."""
    return tuple(split_sentences(content, to_quote=True))


def split_sentences(content: str, *, to_quote: bool = False) -> list[Span]:
    """The non-empty sentences and headings of `content` in order, without bullets and markup.

    With `to_quote`, table rows are kept whole, because the second sentence of a cell would lose its column;
    the clauses of a sentence such as “No person may: (a) …; (b) …” become list items. Otherwise, rows and
    such sentences are split only at the ends of sentences, so that each sentence can be verified by itself.
    """
    spans = []
    columns = _first_columns(content)
    blocks = _blocks(content, columns)
    for number, (start, end, is_line, is_clause) in enumerate(_with_clauses(content, blocks, to_quote)):
        block = content[start:end]
        heading = not is_line and not is_clause and _is_heading(block)
        row = _is_row(block, columns)
        item = is_clause or (not row and bool(_ITEM.match(block)))
        is_whole = heading or (row and to_quote)
        for first, last in [(start, end)] if is_whole else _sentences(content, start, end):
            marker = _MARKER.match(content, first, last)
            begin, stop = marker.end() if marker else first, last
            while stop > begin and (content[stop - 1].isspace() or content[stop - 1] == "|"):
                stop -= 1
            text = " ".join(content[begin:stop].split())
            if text and not _RULE.match(text):
                spans.append(Span(begin, stop, text, heading, item, row, number))
    return spans


def _first_columns(content: str) -> frozenset[str]:
    """The names of the first columns of the tables in the content."""
    rows = filter(_ROW.match, content.splitlines())
    return frozenset(row.partition(": ")[0].strip() for row in rows)


def _is_row(line: str, columns: Collection[str]) -> bool:
    """Whether a line is a table row: several cells, or one cell of a first column (“Item: Files”)."""
    cell = _CELL.match(line)
    return bool(_ROW.match(line)) or (cell is not None and cell[1] in columns)


def _blocks(content: str, columns: Collection[str]) -> Iterator[tuple[int, int, bool]]:
    """The start and end of each paragraph, list item, row and heading, and whether it is a short line.

    A paragraph whose lines were broken on purpose (`_are_short`) is divided into its lines; a line that
    begins in lower case stays with the line above.
    """
    for start, end in _whole_blocks(content, columns):
        lines = content[start:end].splitlines(keepends=True)
        if not _are_short(lines):
            yield start, end, False
            continue
        place = first = start
        for line, following in itertools.pairwise([*lines, ""]):
            place += len(line)
            if not following or not following.lstrip()[:1].islower():
                yield first, place, True
                first = place


def _with_clauses(
    content: str, blocks: Iterable[tuple[int, int, bool]], is_split: bool
) -> Iterator[tuple[int, int, bool, bool]]:
    """The blocks, each with whether it is a clause of an enumeration; `is_split` splits enumerations."""
    beginning = len(content) - len(content.lstrip())  # the first block may continue the previous passage
    for start, end, is_line in blocks:
        starts = _clauses(content, start, end, is_cut=start <= beginning) if is_split else []
        if not starts:
            yield start, end, is_line, False
            continue
        if start < starts[0]:
            yield start, starts[0], is_line, False
        yield from ((first, last, False, True) for first, last in itertools.pairwise(starts))
        # The sentences after the last clause are not part of the enumeration.
        stop = next(last for _, last in _sentences(content, starts[-1], end))
        yield starts[-1], stop, False, True
        if stop < end:
            yield stop, end, is_line, False


def _clauses(content: str, start: int, end: int, *, is_cut: bool) -> list[int]:
    """The starts of the clauses “(a) …; (b) …” in a block; empty if it has no such enumeration.

    With `is_cut`, the enumeration may begin with a later clause than (a).
    """
    found: list[int] = []
    expected = ""
    for match in _CLAUSE.finditer(content, start, end):
        before = content[max(start, match.start() - 4) : match.start()].rstrip()
        if found:
            is_next = match[1] == expected and match.start() - found[-1] >= MIN_CLAUSE
            follows = is_next and _ENDS_CLAUSE.search(before)
        elif match[1] == "a":
            follows = before.endswith((":", "—", "–"))
        else:
            follows = is_cut and match[1] not in "ivx" and _ENDS_CLAUSE.search(before)
        if follows:
            found.append(match.start())
            expected = chr(ord(match[1]) + 1)
    return found if len(found) > 1 else []


def _are_short(lines: Sequence[str]) -> bool:
    """Whether the lines of a paragraph were broken on purpose: often, one more word would have fitted."""
    texts = [line.strip() for line in lines]
    longest = max(map(len, texts), default=0)
    if len(lines) < 3 or longest > _LONGEST_SHORT:
        return False
    fits = _SHORT_SHARE * longest
    begun = [(line, after) for line, after in itertools.pairwise(texts) if not after[:1].islower()]
    short = sum(len(line) + 1 + len(after.split(maxsplit=1)[0]) <= fits for line, after in begun)
    return len(begun) >= 0.8 * (len(texts) - 1) and 2 * short >= len(begun)


def _whole_blocks(content: str, columns: Collection[str]) -> Iterator[tuple[int, int]]:
    start = place = 0
    single = False  # whether the next line cannot continue the block
    for line in content.splitlines(keepends=True):
        blank = not line.strip()
        row = _is_row(line, columns)
        heading = _is_numbered_heading(line)
        if place > start and (blank or single or row or heading or _BLOCK_START.match(line)):
            yield start, place
            start = place
        place += len(line)
        single = row or heading or line.lstrip().startswith(("#", "|"))
        if blank:
            start = place
    if place > start:
        yield start, place


def _sentences(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for match in _END.finditer(content, start, end):
        if _is_end(content, match, first):
            yield from _cut(content, first, match.end())
            first = match.end()
    if first < end:
        yield from _cut(content, first, end)


def full_stops_within(text: str) -> Iterator[int]:
    """The positions of full stops of abbreviations and ordinals, which do not end sentences."""
    first = 0
    for match in _END.finditer(text):
        if _is_end(text, match, first):
            first = match.end()
        elif match[0] == ".":
            yield match.start()


def _is_end(content: str, match: re.Match[str], first: int) -> bool:
    """Whether a match of _END ends the sentence that begins at `first`."""
    if match[1] and match[1].islower():
        return False
    dot = match.start()
    if content[dot] == "." and _LABEL.search(content, max(0, dot - _LABEL_CHARACTERS), dot):
        return False
    if not _ABBREVIATION.search(content[max(first, dot - 12) : dot + 1]):
        return True
    # A full stop after a number may end a sentence ("by 12.") or belong to an item number ("12. Item").
    before = content[max(0, dot - 12) : dot]
    word = re.split(r"\W", before)[-1]
    is_label = (dot <= 12 or "\n" in before) and before.rpartition("\n")[2].strip() == word
    is_answer = dot - first <= 12 and content[first:dot].strip() == "No" and not (match[1] or "").isdigit()
    if not is_answer and (not word.isdigit() or is_label):
        return False
    return not (word.isdigit() and _is_ordinal(content, dot))


def _is_ordinal(content: str, dot: int) -> bool:
    """Whether the full stop at `dot` makes the number before it a German ordinal."""
    if _MONTH.match(content, dot + 1):
        return True
    return bool(_BEFORE_ORDINAL.search(content[max(0, dot - 12) : dot])) and not _BEGINS.match(
        content, dot + 1
    )


def _cut(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a sentence longer than LONGEST into quotable parts."""
    first = start
    if end - start > LONGEST:
        for match in _CUT.finditer(content, start, end):
            if match.end() - first > LONGEST // 3:
                yield first, match.end()
                first = match.end()
    if first < end:
        yield first, end


def _is_heading(block: str) -> bool:
    text = block.strip()
    if text.startswith("#") or _is_numbered_heading(text):
        return True
    return (
        not _BLOCK_START.match(text)
        and "\n" not in text
        and len(text) <= _SHORT_LINE
        and not re.search(r"[.!?:;,。！？؟،।|\d]", text)
        and len(text.split()) <= 8
    )


def _is_numbered_heading(line: str) -> bool:
    """Whether a line is a section heading with a number of at least two levels: “4.2 Sick pay”."""
    text = line.strip()
    return len(text) <= _NUMBERED_LINE and bool(_NUMBERED.match(text)) and text[-1] not in ".,;:!?"
