"""Word and Excel files, through kreuzberg."""

from pathlib import Path

from kreuzberg import (
    ExtractionConfig,
    ExtractionResult,
    KreuzbergError,
    PageConfig,
    extract_file_sync,
)

from .formats import SHEETS, WORD
from .markup import outline_of
from .sections import Contents, Limits, Section, Unreadable, anchor, one_line, table_text
from .sniffing import DAMAGED

CONFIGURATION = ExtractionConfig(
    use_cache=False, disable_ocr=True, output_format="markdown", pages=PageConfig(extract_pages=True)
)


def _extract(path: Path, media_type: str) -> ExtractionResult:
    try:
        return extract_file_sync(str(path), media_type, CONFIGURATION)
    except KreuzbergError as error:
        raise Unreadable(DAMAGED) from error


def read_word(path: Path, limits: Limits) -> Contents:
    """A Word file by heading. It has no pages of its own: where they break depends on the printer."""
    result = _extract(path, WORD.media_type)
    outline = outline_of(result.content)
    return Contents(outline.close(), str(result.metadata.get("title") or "") or outline.first_heading)


def read_sheets(path: Path, limits: Limits) -> Contents:
    """An Excel file by sheet; every row carries the names of its columns."""
    result = _extract(path, SHEETS.media_type)
    names = [str(name) for name in result.metadata.get("sheet_names") or []]
    contents = Contents(title=str(result.metadata.get("title") or ""))
    for table in result.tables:
        index = table.page_number - 1
        name = names[index] if 0 <= index < len(names) else f"{table.page_number}"
        text = table_text(table.cells)
        if text:
            heading = one_line(name, 200)
            contents.sections.append(Section(anchor(f"sheet={name}"), None, heading, text))
    return contents
