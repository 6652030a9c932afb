"""Tables in quotations, and the rows that a question selects, from several passages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chat.sources import SourceView
from ingestion.search.extracts import cells_of
from ingestion.search.row_conditions import select_rows
from ingestion.search.sentence_splitting import split_sentences

from . import table_notices

MAX_SELECTED = 20  # rows


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """A table as Markdown, each row with its citation; empty if no rows are selected.

    `is_whole` is whether these are all such rows, `needs_all` whether some rows are no certain answer.
    """

    text: str = ""
    is_whole: bool = False
    needs_all: bool = False


def selected_rows(
    question: str, passages: Sequence[SourceView], table_rows: Mapping[int, int], best: str
) -> SelectedRows:
    """The rows that `question` selects, of tables with the columns of the best sentence.

    `table_rows` has the number of rows of tables cut short by passage, below 0 if not known.
    """
    titles = " ".join(f"{each.title} {each.heading}" for each in passages)
    selection = select_rows(question, [each.content for each in passages], titles)
    columns = tuple(cells_of(best))
    wanted = {row for row in selection.rows if tuple(cells_of(row)) == columns}
    if not wanted:
        return SelectedRows(needs_all=selection.needs_all)
    rows: dict[str, str] = {}  # with the label of the passage
    seen: set[str] = set()
    totals: set[int] = set()
    documents: set[str] = set()
    for passage in passages:
        here = [span.text for span in split_sentences(passage.content) if span.is_row]
        here = [text for text in here if tuple(cells_of(text)) == columns]
        if not here:
            continue
        seen.update(here)
        documents.add(passage.sourcefile)
        totals.add(table_rows.get(passage.passage_id, 0))
        for text in here:
            if text in wanted:
                rows.setdefault(text, passage.label)
    cut = totals - {0}
    known = next(iter(cut)) if len(cut) == len(documents) == 1 else -1
    is_whole = len(rows) <= MAX_SELECTED and (not cut or len(seen) == known)
    kept = dict(list(rows.items())[:MAX_SELECTED])
    table = table_markdown(columns, [(tuple(cells_of(text).values()), kept[text]) for text in kept])
    total = len(seen) if not cut else max(known, 0)
    notice = table_notices.notice(len(kept), total) if len(kept) < total or cut else ""
    text = f"{table}\n\n{notice}".rstrip()
    return SelectedRows(text, is_whole, selection.needs_all)


def table_markdown(columns: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]) -> str:
    """A table of rows, each with the label that it cites."""
    cited = [[*cells[:-1], f"{cells[-1]} [{label}]".strip()] for cells, label in rows]
    lines = [columns, ["---"] * len(columns), *cited]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in lines)
