"""CSV as spreadsheets save it, and cells that no spreadsheet reads as a formula."""

import codecs

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


def decoded(content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark, as Excel's “Unicode Text” has it.

    Raises UnicodeDecodeError.
    """
    has_mark = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if has_mark else "utf-8-sig")
