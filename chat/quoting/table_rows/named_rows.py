"""Finds table rows about a name other than the one that a question asks for.

A row is about a name if the name is a whole cell, not if it only occurs in a remark: “port: Port Ellery;
notes: Moved to Carrow Quay after 14 days” says nothing about the office in Carrow Quay.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chat.quoting.questions.question import Question
from ingestion.search.rough_stems import stems, weak_stems
from ingestion.search.table_rows import cells_of, rows_of

from .weekdays import days_named, days_of_row

MAX_NAME = 60  # maximum length of a cell that can be a name
MAX_CACHED = 5_000  # cached rows
_CAPITAL = re.compile(r"(?<=\s)[^\W\d_a-zß-öø-ÿ]\w*")


@dataclass(frozen=True, slots=True)
class NamedRows:
    """The rows about other names, and the earlier questions, adapted to the current one.

    `others` has the texts of these rows. `earlier` has the earlier questions, but without those names that
    the current question replaces.
    """

    others: frozenset[str]
    earlier: str


def named_rows(question: str, earlier: str, contents: Iterable[str]) -> NamedRows:
    """The rows in `contents` that are about a name other than that in `question`.

    If the `earlier` question has a name (“… in Port Ellery?”), a new name of the same column (“and in Carrow
    Quay?”) replaces it. Rows for weekdays other than those asked for also count as rows about another name.
    If no whole cell is a new name, rows about an earlier name that mention the new words also count.
    """
    rows = {text: cells for content in contents for text, cells in rows_of(content).items()}
    others = _of_other_days(question, earlier, rows)
    asked, before = stems(question), stems(earlier)
    new = asked - before - weak_stems()
    if not rows or not new:
        return NamedRows(others, earlier)
    words = {text: names_in(text) for text in rows}
    named: dict[str, set[frozenset[str]]] = defaultdict(set)
    for cells in words.values():
        for column, cell in cells.items():
            if cell <= asked and cell & new:
                named[column].add(cell)
    if named:
        others |= frozenset(text for text, cells in words.items() if _is_about_another(cells, named, before))
    else:
        others |= frozenset(
            text
            for text, cells in rows.items()
            if any(cell and cell <= before for cell in words[text].values())
            and any(_mentions(cell, new) for cell in cells.values())
        )
    replaced = frozenset[str]().union(
        *(
            cell
            for cells in words.values()
            for column, cell in cells.items()
            if column in named and cell <= before and cell not in named[column]
        )
    )
    kept = (word for word in earlier.split() if not stems(word) or not stems(word) <= replaced)
    return NamedRows(others, " ".join(kept) if replaced else earlier)


def _of_other_days(question: str, earlier: str, rows: Iterable[str]) -> frozenset[str]:
    """The rows for days other than those named by `question`, or else by `earlier`.

    Empty if the question is negated, or if neither names a day.
    """
    asked = days_named(question) or days_named(earlier)
    if not asked or Question(question).is_negated:
        return frozenset()
    days = {text: days_of_row(text) for text in rows}
    return frozenset(text for text, found in days.items() if found is not None and asked.isdisjoint(found))


def _mentions(cell: str, name: frozenset[str]) -> bool:
    """Whether the cell has these words as a name, with capital letters, among other words."""
    return name < stems(cell) and name <= stems(" ".join(_CAPITAL.findall(cell)))


@functools.lru_cache(maxsize=MAX_CACHED)
def names_in(row: str) -> Mapping[str, frozenset[str]]:
    """The stems of each cell that can be a name, by column."""
    return {column: _name(cell) for column, cell in cells_of(row).items() if len(cell) <= MAX_NAME}


def _name(cell: str) -> frozenset[str]:
    """The stems of a cell; empty for a single word with a digit, which is a value and not a name."""
    return frozenset() if any(map(str.isdigit, cell)) and len(cell.split()) == 1 else stems(cell)


def _is_about_another(
    cells: Mapping[str, frozenset[str]],
    named: Mapping[str, set[frozenset[str]]],
    before: frozenset[str],
) -> bool:
    """Whether the row has another name in a column in which the question names a cell.

    The other name must be from the preceding questions, or the row must have the name asked for in a remark.
    """
    for column, names in named.items():
        own = cells.get(column, frozenset())
        if not own or any(name <= own for name in names):
            continue
        for name in names:
            if name not in cells.values() and (
                own <= before or any(name <= other for other in cells.values())
            ):
                return True
    return False
