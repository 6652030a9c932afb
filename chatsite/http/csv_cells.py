"""Cells of CSV files that spreadsheets open: no cell is a formula, and each can be told from every other."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet begins to calculate


def plain(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe says that it is text."""
    return f"'{cell}" if _is_formula(cell) else cell


def unplain(cell: str) -> str:
    """What `plain` was given."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    # Apostrophes before it count, so that one can be taken off.
    return cell.lstrip("'").startswith(FORMULA_STARTS)
