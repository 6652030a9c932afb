"""Tables in quotations, made from rows that a question selects from several passages."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems, stems
from ingestion.search.table_rows import cells_of, rows_of

from .named_rows import names_in
from .row_conditions import select_rows
from .table_notices import notice

MAX_SELECTED = 20  # rows of a quoted table
MIN_COLUMNS = 2  # columns of a row, or common columns of two rows of one table


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """A table as Markdown, each row with its citation; empty if no rows are selected.

    `is_whole` says whether the table has all rows that match. `needs_all` says whether only the complete
    table could answer with certainty. `rows` has each row with its document and heading.
    """

    text: str = ""
    is_whole: bool = True
    needs_all: bool = False
    rows: frozenset[tuple[str, str, str]] = frozenset()


def selected_rows(
    question: str,
    passages: Sequence[SourceView],
    table_rows: Mapping[int, int],
    found: Sequence[str],
    other_words: Callable[[str], frozenset[str]],
) -> SelectedRows:
    """The rows that `question` selects from the best table.

    `found` has the texts of the best sentences, best first. The best table is that of the first row in
    `found` whose table has selected rows; if the first sentence is not a row, nothing is selected. For the
    least or greatest value (`compares_all`), `found` is not used. `table_rows` maps the id of each passage
    with only a part of a table to the number of rows of the whole table (negative if unknown).
    `other_words` returns the stems of the synonyms of a stem of the question.
    """
    titles = " ".join(f"{each.title} {each.heading}" for each in passages)
    selection = select_rows(question, [each.content for each in passages], titles, other_words)
    if selection.compares_all:
        table = _table(selection.rows, _columns(selection.rows[0]), passages, table_rows)
        return table if table.is_whole else SelectedRows(needs_all=True)
    tables = [_columns(row) for row in selection.rows]
    best = next((_columns(text) for text in found if _columns(text) in tables), None)
    if best is None or len(_columns(found[0])) < MIN_COLUMNS:
        return SelectedRows(needs_all=selection.needs_all)
    wanted = {row for row in selection.rows if _columns(row) == best}
    return replace(_table(wanted, best, passages, table_rows), needs_all=selection.needs_all)


def rows_alike(
    question: str,
    row: str,
    passages: Sequence[SourceView],
    table_rows: Mapping[int, int],
    other_rows: Collection[str] = (),
) -> SelectedRows:
    """The row, with rows of its table that have the same name; empty if there are none.

    For example, “a child ticket” may have a row for each route. The added rows must have all words of the
    question that this row has. The name is a cell whose words all occur in the question, or else the first
    cell if the question has one of its words. Rows in `other_rows` (about another name, or already
    shown) are never added.
    """
    columns, cells = _columns(row), cells_of(row)
    asked = stems(question)
    said = asked & held_stems(row)
    names = [column for column, name in names_in(row).items() if name and name <= asked]
    if not names and asked & held_stems(cells[columns[0]]):
        names = [columns[0]]
    wanted = {
        text
        for text in _rows_with(columns, passages)
        if said <= held_stems(text)
        and any(cells_of(text).get(name) == cells[name] for name in names)
        and text not in other_rows
    }
    return _table(wanted, columns, passages, table_rows) if len(wanted) > 1 else SelectedRows()


def rows_in_order(
    wanted: Sequence[str], passages: Sequence[SourceView], table_rows: Mapping[int, int]
) -> SelectedRows:
    """The `wanted` rows in order. Each may lack columns of the others, such as one for remarks."""
    places: dict[str, SourceView] = {}
    seen: set[str] = set()
    is_cut = False
    for passage in passages:
        here = rows_of(passage.content)
        if not here.keys().isdisjoint(wanted):
            places.update((text, passage) for text in here if text not in places)
            seen.update(here)
            is_cut |= bool(table_rows.get(passage.passage_id))
    kept = wanted[:MAX_SELECTED]
    columns = tuple(
        dict.fromkeys(name for text in sorted(kept, key=_width, reverse=True) for name in _columns(text))
    )
    cells = [([cells_of(text).get(name, "") for name in columns], places[text].label) for text in kept]
    below = notice(len(kept), 0 if is_cut else len(seen)) if is_cut or len(kept) < len(seen) else ""
    rows = frozenset((places[text].sourcefile, places[text].heading, text) for text in kept)
    is_whole = not is_cut and len(kept) == len(wanted)
    return SelectedRows(f"{table_markdown(columns, cells)}\n\n{below}".rstrip(), is_whole, rows=rows)


def _width(row: str) -> int:
    return len(_columns(row))


def _columns(row: str) -> tuple[str, ...]:
    return tuple(cells_of(row))


def _rows_with(columns: tuple[str, ...], passages: Iterable[SourceView]) -> Iterator[str]:
    """The rows of tables with these columns; a row may lack columns whose cells are empty."""
    for passage in passages:
        for text, cells in rows_of(passage.content).items():
            own, wanted = set(cells), set(columns)
            if own == wanted or (len(own & wanted) >= MIN_COLUMNS and (own < wanted or wanted < own)):
                yield text


def _table(
    wanted: Collection[str],
    columns: tuple[str, ...],
    passages: Sequence[SourceView],
    table_rows: Mapping[int, int],
) -> SelectedRows:
    rows: dict[str, SourceView] = {}
    seen: set[str] = set()
    totals: set[int] = set()
    documents: set[str] = set()
    for passage in passages:
        here = list(_rows_with(columns, [passage]))
        if not here:
            continue
        seen.update(here)
        documents.add(passage.sourcefile)
        totals.add(table_rows.get(passage.passage_id, 0))
        for text in here:
            if text in wanted:
                rows.setdefault(text, passage)
    cut = totals - {0}
    known = next(iter(cut)) if len(cut) == len(documents) == 1 else -1
    is_whole = len(rows) <= MAX_SELECTED and (not cut or len(seen) == known)
    kept = dict(list(rows.items())[:MAX_SELECTED])
    shown = tuple(
        dict.fromkeys(name for row in sorted(kept, key=_width, reverse=True) for name in _columns(row))
    )
    cells = [([cells_of(row).get(name, "") for name in shown], each.label) for row, each in kept.items()]
    table = table_markdown(shown, cells)
    total = max(known, 0) if cut else len(seen)
    below = notice(len(kept), total) if len(kept) < total or cut else ""
    places = frozenset((each.sourcefile, each.heading, text) for text, each in kept.items())
    return SelectedRows(f"{table}\n\n{below}".rstrip(), is_whole, rows=places)


def table_markdown(columns: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]) -> str:
    """A Markdown table of rows, each with the citation of its label in the last cell that is not empty."""
    cited = []
    for cells, label in rows:
        last = max((at for at, cell in enumerate(cells) if cell), default=0)
        cited.append([f"{cell} [{label}]".strip() if at == last else cell for at, cell in enumerate(cells)])
    lines = [columns, ["---"] * len(columns), *cited]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in lines)
