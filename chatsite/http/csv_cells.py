"""Cells of CSV files that spreadsheets open: no cell is a formula, and each can be told from every other."""

import re

# With these a spreadsheet begins to calculate. Apostrophes before them count, so that one can be taken off.
FORMULA = re.compile(r"'*[=+\-@\t\r]")


def plain(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe says that it is text."""
    return f"'{cell}" if FORMULA.match(cell) else cell


def unplain(cell: str) -> str:
    """What `plain` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
