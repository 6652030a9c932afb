"""CSV cells that no spreadsheet reads as a formula, with an encoding that can be reversed."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet formula begins


def plain(cell: str) -> str:
    """Escape a cell that a spreadsheet would read as a formula with an apostrophe."""
    return f"'{cell}" if _is_formula(cell) else cell


def unplain(cell: str) -> str:
    """Reverse `plain`."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    # Leading apostrophes count as well, so that `unplain` can remove one.
    return cell.lstrip("'").startswith(FORMULA_STARTS)
