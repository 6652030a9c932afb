"""Plain text, CSV and JSON: one section each, without an anchor."""

import csv
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import charset_normalizer

from .sections import Contents, Limits, Section, Unreadable, clean, one_line, table_text

MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
GUESSING_BYTES = 100_000
SAMPLE_CHARACTERS = 20_000
DEEPEST = 60


def decode(data: bytes) -> str:
    """Text of unknown encoding: by its mark, as UTF-8, else as the most likely one."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        best = charset_normalizer.from_bytes(data[:GUESSING_BYTES]).best()
        return data.decode(best.encoding if best else "cp1252", "replace")


def read_text(path: Path, limits: Limits) -> Contents:
    return Contents([Section("", None, "", clean(decode(path.read_bytes())))])


def read_csv(path: Path, limits: Limits) -> Contents:
    text = decode(path.read_bytes()).replace("\x00", "")
    csv.field_size_limit(1_000_000)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), dialect=_dialect(text)))
    except csv.Error as error:
        raise Unreadable(
            "The table cannot be read: a cell is too long or a quotation mark is missing."
        ) from error
    return Contents([Section("", None, "", table_text(rows))])


def _dialect(text: str) -> type[csv.Dialect]:
    try:
        return csv.Sniffer().sniff(text[:SAMPLE_CHARACTERS], delimiters=",;\t|")
    except csv.Error:
        return csv.excel


def read_json(path: Path, limits: Limits) -> Contents:
    try:
        value = json.loads(decode(path.read_bytes()))
    except json.JSONDecodeError as error:
        raise Unreadable(f"The file is not valid JSON (line {error.lineno}).") from error
    except (RecursionError, ValueError) as error:
        raise Unreadable("The file is not valid JSON, or nested too deeply.") from error
    title = value.get("title") if isinstance(value, dict) else None
    records = value if isinstance(value, list) else [value]
    text = "\n\n".join("\n".join(_lines(record)) for record in records)
    return Contents(
        [Section("", None, "", clean(text))], one_line(title, 200) if isinstance(title, str) else ""
    )


def _lines(record: Any) -> Iterator[str]:
    """A record as lines of "path: value", neighbouring short ones joined."""
    pairs = (f"{name}: {value}" if name else value for name, value in _leaves(record, "", 0))
    line = ""
    for pair in pairs:
        if line and len(line) + len(pair) > 200:
            yield line
            line = pair
        else:
            line = f"{line}; {pair}" if line else pair
    if line:
        yield line


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > DEEPEST:
        raise Unreadable("The file is not valid JSON, or nested too deeply.")
    if isinstance(value, dict):
        inner = ((f"{name}.{key}" if name else str(key), item) for key, item in value.items())
        yield from itertools.chain.from_iterable(_leaves(item, path, depth + 1) for path, item in inner)
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(_leaves(item, name, depth + 1) for item in value)
    elif value is not None and value != "":
        text = value if isinstance(value, str) else json.dumps(value)
        yield name, one_line(text, len(text))
