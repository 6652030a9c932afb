"""JSON by record.

Records are the values of a JSON Lines file or of a list that is the whole document; otherwise, the objects in
lists of objects or in objects of objects, anywhere in the document.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ingestion.parsing.encodings import decode
from ingestion.parsing.sections import SEPARATOR, Contents, Limits, Unreadable, anchor, one_line

DEEPEST = 60
LINE_CHARACTERS = 200
NAMES = ("title", "name", "label", "subject", "question", "id")  # fields that name a record
NAME_CHARACTERS = 120
MANY = 1_000  # after this many records, or if they are not objects, short adjacent ones share a section
SHORT = 300  # maximum total length of records that share a section, in characters
TOO_DEEP = "The file is not valid JSON, or nested too deeply."
SPACE = re.compile(r"[\s,]*")


def read(path: Path, limits: Limits) -> Contents:
    """Read a JSON document, or a sequence of JSON values; records without keys are numbered from 1."""
    text = decode(path.read_bytes()).strip().lstrip("\ufeff")
    contents = Contents(limits)
    collector = _Collector(contents)
    try:
        if text.startswith("["):
            collector.records(_numbered(_values(text, 1, "]")), "")
        else:
            values = _values(text, 0, "")
            first = next(values, None)
            second = next(values, None)
            if second is None:
                collector.whole(first)
            else:
                collector.records(_numbered(itertools.chain([first, second], values)), "")
    except json.JSONDecodeError as error:
        raise Unreadable(f"The file is not valid JSON (line {error.lineno}).") from error
    except (RecursionError, ValueError) as error:
        raise Unreadable(TOO_DEEP) from error
    return contents


def _values(text: str, start: int, end: str) -> Iterator[Any]:
    """Yield values up to the closing bracket `end`, or the end of the text.

    Nothing may follow the bracket.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    while True:
        start = SPACE.match(text, start).end()  # type: ignore[union-attr]
        if end and text.startswith(end, start) and not text[start + 1 :].strip():
            return
        if not end and start == len(text):
            return
        value, start = decoder.raw_decode(text, start)
        yield value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. If a name occurs several times, its value is a list of all of the values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        several: dict[str, list[Any]] = {}
        for name, value in pairs:
            several.setdefault(name, []).append(value)
        values = {name: each if len(each) > 1 else each[0] for name, each in several.items()}
    return values


class _Collector:
    """Writes records as sections."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._waiting: list[str] = []
        self._first = ""

    def whole(self, value: Any) -> None:
        """Add one value; the members of groups in it (see `_part`) become records."""
        if isinstance(value, dict):
            title = value.get("title")
            self._contents.title = one_line(title, 200) if isinstance(title, str) else ""
        rest: list[str] = []
        groups: list[tuple[str, Any]] = []
        _part(value, "", rest, groups, 0)
        self._contents.add("", None, "", "\n".join(_lines(iter(rest))))
        for path, group in groups:
            if isinstance(group, dict):
                self.records(((key, str(key), item) for key, item in group.items()), path, keyed=True)
            else:
                self.records(_numbered(group), path)

    def records(self, values: Iterator[tuple[str, str, Any]], path: str, keyed: bool = False) -> None:
        """Add each (number or key, name, record) of `values`; the name may be empty.

        If the values are `keyed`, the names are keys, and precede the texts of records that share a section.
        """
        label = ""
        for count, (label, name, value) in enumerate(values):
            text = "\n".join(_lines(_leaves(value, "", 0)))
            if count < MANY and isinstance(value, dict):
                heading = SEPARATOR.join(part for part in (path, name) if part)
                self._add(path, label, heading, text)
            else:
                self._wait(path, label, f"{name}: {text}" if keyed else text)
        self._flush(path, label)

    def _wait(self, path: str, label: str, text: str) -> None:
        if sum(map(len, self._waiting)) + len(text) > SHORT:
            self._flush(path, label)
        if not self._waiting:
            self._first = label
        self._waiting.append(text)

    def _flush(self, path: str, label: str) -> None:
        if self._waiting:
            self._add(path, self._first, path, "\n".join(filter(None, self._waiting)))
        self._waiting = []

    def _add(self, path: str, label: str, heading: str, text: str) -> None:
        where = f"{path}/" if path else ""
        self._contents.add(anchor(f"record={where}{label}"), None, heading, text)


def _numbered(values: Iterable[Any]) -> Iterator[tuple[str, str, Any]]:
    """(number, name, value) for each value; the name is empty if it has none."""
    for number, value in enumerate(values, 1):
        name = ""
        if isinstance(value, dict):
            fields = {str(key).lower(): item for key, item in value.items()}
            names = (str(fields[each]) for each in NAMES if isinstance(fields.get(each), str | int))
            name = one_line(next(names, ""), NAME_CHARACTERS)
        yield str(number), name, value


def _part(value: Any, name: str, rest: list[str], groups: list[tuple[str, Any]], depth: int) -> None:
    """Sort the members of a value into `groups` and `rest`.

    Lists that consist of objects, and objects that consist of several objects, are added to `groups` with
    their paths; other values are added to `rest` as lines.
    """
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    several = len(items) >= (2 if isinstance(value, dict) else 1)
    if depth > DEEPEST:
        raise ValueError(TOO_DEEP)
    if several and all(isinstance(item, dict) for item in items):
        groups.append((name, value))
    elif isinstance(value, dict):
        for key, item in value.items():
            _part(item, f"{name}.{key}" if name else str(key), rest, groups, depth + 1)
    else:
        rest.extend(_leaves(value, name, depth))


def _lines(pairs: Iterator[str]) -> Iterator[str]:
    """Lines of the form "path: value"; short adjacent ones are joined."""
    line = ""
    for pair in pairs:
        if line and len(line) + len(pair) > LINE_CHARACTERS:
            yield line
            line = pair
        else:
            line = f"{line}; {pair}" if line else pair
    if line:
        yield line


def _leaves(value: Any, name: str, depth: int) -> Iterator[str]:
    """The scalar values, except null and empty texts, in the form "path: value"."""
    if depth > DEEPEST:
        raise ValueError(TOO_DEEP)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name, depth + 1)
    elif value is not None and value != "":
        text = value if isinstance(value, str) else json.dumps(value)
        text = one_line(text, len(text))
        yield f"{name}: {text}" if name else text
