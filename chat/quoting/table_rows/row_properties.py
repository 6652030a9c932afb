"""Selects table rows with a property that a question names: “Which rooms have a projector?”

A row has a property if its cell in the property's column is not “no” (*Projector: yes*, *Sunday: 10–14*), or
if a cell contains the property's name (*Equipment: projector, screen*, or *Sunday: closed* for “closed on
Sunday”).
"""

import re
from collections.abc import Collection, Mapping

from ingestion.search.rough_stems import held_stems, stems, weak_stems

from .row_extremes import Rows, by_columns

MIN_ROWS = 2  # rows of a table

_ASKS = re.compile(
    r"\b(?:which|what|welche[nrsm]?) (\w{1,60}) "
    r"(?:has|have|is|are|with|offers?|hat|haben|ist|sind|mit|bieten)\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:no(?:ne)?\b(?!\.)|not?\b(?!\.)|closed\b|without\b|n/?a\b|nein\b|kein\w{0,2}\b|nicht\b|geschlossen\b|ohne\b"
    r"|[-–—✗✘✕❌]|0\Z|\Z)",
    re.IGNORECASE,
)
# Words that a cell implies if it is not “no”: “Sunday: 10–14” says “open on Sunday”.
_YES = stems("open opened available equipped offered there offen geöffnet verfügbar vorhanden ausgestattet")


def asks_rows_with_property(question: str) -> bool:
    """Whether the question may ask for rows with a property."""
    return bool(_ASKS.search(question))


def rows_with_property(question: str, tables: Rows, subject: str) -> tuple[str, ...]:
    """The rows with everything that `question` names.

    `subject` has the titles and headings above the tables. The result is empty if the question does not ask
    for rows with a property, or names something that no row and no column has.
    """
    asked = _ASKS.search(question)
    if asked is None:
        return ()
    thing = stems(asked[1])
    words = stems(question) - thing - weak_stems()
    found: list[str] = []
    for rows in by_columns(tables):
        names = next(iter(rows.values()))
        columns = {name: stems(name) - weak_stems() - thing for name in names}
        is_about = thing <= held_stems(f"{subject} {' '.join(names)}")
        if is_about and len(rows) >= MIN_ROWS:
            found += _with_all(words, rows, columns)
    return tuple(text for text in tables if text in found)


def _with_all(words: Collection[str], rows: Rows, columns: Mapping[str, frozenset[str]]) -> list[str]:
    """The rows with everything that `words` name."""
    named = [name for name, found in columns.items() if found and found <= frozenset(words)]
    rest = frozenset(words).difference(*(columns[name] for name in named))
    held = {text: held_stems(" ".join(cells.values())) for text, cells in rows.items()}
    in_named = {
        text: held_stems(" ".join(cells.get(name, "") for name in named)) for text, cells in rows.items()
    }
    said = frozenset(word for word in rest if any(word in cells for cells in in_named.values()))
    rest -= said | _YES
    if not (named or rest) or any(all(word not in cells for cells in held.values()) for word in rest):
        return []
    return [
        text
        for text, cells in rows.items()
        if said <= in_named[text]
        and rest <= held[text]
        and (said or not any(_NO.match(cells[name].strip()) for name in named))
    ]
