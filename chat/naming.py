"""What a source is called: in a chip, in a row of the list, at the head of the panel."""

import re

PLACE = re.compile(r"(page|slide|sheet)=(.+)\Z")


def place_of(label: str, heading: str) -> str:
    """Where in its document a passage stands: “page 4”, “sheet 2026”, a heading, or nothing."""
    match = PLACE.match(label.partition("#")[2])
    return f"{match[1]} {match[2]}" if match else heading


def name_of(title: str, label: str, heading: str) -> str:
    """Working abroad policy, page 4."""
    place = place_of(label, heading)
    return f"{title}, {place}" if place and place != title else title


def counted(number: int, one: str, many: str) -> str:
    """1 passage, 1,204 passages."""
    return f"{number:,} {one if number == 1 else many}"


def searching(readable: int) -> str:
    return f"Searching {counted(readable, 'document', 'documents')} you may read"


def reading(passages: int, documents: int) -> str:
    if not passages:
        return "Nothing found to read"
    files = counted(documents, "document", "documents")
    return f"Reading {counted(passages, 'passage', 'passages')} from {files}"


def searched(readable: int | None, passages: int, documents: int) -> str:
    """The steps of a finished answer, in one line."""
    files = counted(documents, "document", "documents")
    read = f"read {counted(passages, 'passage', 'passages')} from {documents if readable else files}"
    if readable is None:
        return read[0].upper() + read[1:]
    return f"Searched {counted(readable, 'document', 'documents')}, {read}"
