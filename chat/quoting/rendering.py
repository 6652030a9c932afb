"""Renders quotations as Markdown, each with its citation."""

import re
from itertools import pairwise

from chat.quoting.table_rows.quoted_tables import table_markdown
from chat.quoting.table_rows.table_notices import notice
from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems

from .extracts import NUMBERED, Extract, as_item

MAX_HEADING = 160  # characters of a heading above a quotation

# A chapter number, but not “§ 6”, which people use to name a rule, nor the start of “3D printing”.
_CAPTION = re.compile(
    r"^(?:(?:chapter|section|part|annex|appendix|kapitel|abschnitt)\s+)?[\d.\s)(:-]*(?:[.\s)(:-]|$)",
    re.IGNORECASE,
)


def markdown(quoted: Extract, source: SourceView, all_rows: int) -> str:
    """The extract as a block quotation or a table, with its citation.

    If the source has only a part of a table, `all_rows` is the number of rows of the whole table (negative if
    unknown); otherwise it is 0.
    """
    cite = f"[{source.label}]"
    headings = heading_above(source, " ".join((*quoted.columns, *quoted.lines)) if quoted.cells else "")
    heading = f"**{headings}**" if quoted.needs_heading and headings else ""
    if quoted.kind == "table":
        table = table_markdown(quoted.columns, [(cells, source.label) for cells in quoted.cells])
        is_lead_in = not quoted.lead or quoted.lead.endswith((":", "："))
        lead = quoted.lead if is_lead_in else f"> {quoted.lead} {cite}"
        shown, total = len(quoted.cells), max(all_rows, 0) if all_rows else quoted.rows
        below = notice(shown, total) if shown < total or all_rows else ""
        return "\n\n".join(part for part in (heading, lead, table, below) if part)
    lines = [quoted.lead] if quoted.lead else []
    lines += quoted.lines if quoted.kind == "passage" else map(as_item, quoted.lines)
    quotation = f"> {lines[0]}"
    for before, line in pairwise(lines):
        quotation += f"\n> {line}" if _is_item(before) and _is_item(line) else f"\n>\n> {line}"
    return "\n\n".join(part for part in (heading, f"{quotation} {cite}") if part)


def _is_item(line: str) -> bool:
    return line.startswith("- ") or bool(NUMBERED.match(line))


def heading_above(source: SourceView, table: str = "") -> str:
    """The two innermost headings of a passage.

    Chapter numbers and the document's title are left out. Above a `table` whose text has words of the outer
    heading, but none of the inner one, the inner heading is left out: a table at the end of a chapter may
    belong to the whole chapter and not to its last section.
    """
    parts = [_CAPTION.sub("", part).strip() for part in source.heading.split("›")]
    parts = [part for part in parts if part and part != source.title][-2:]
    if table and len(parts) == 2:
        words, outer = held_stems(table), held_stems(parts[0])
        inner = held_stems(parts[1]) - outer
        is_about_it = any(word.startswith(other) for word in inner for other in words if len(other) > 2)
        if outer & words and not is_about_it:
            parts = parts[:1]
    return " › ".join(parts)[:MAX_HEADING]
