"""What a source is called: in a chip, in a row of the list, at the head of the panel."""

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from django.template.loader import render_to_string

from chat.events import Thought

PLACE = re.compile(r"(page|slide|sheet)=(.+)\Z")


class Found(Protocol):
    """A source, as an event has it or as a row."""

    @property
    def title(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def heading(self) -> str: ...
    @property
    def rank(self) -> int: ...


def place_of(label: str, heading: str) -> str:
    """The place of a passage in its document: “page 4”, “sheet 2026”, a heading, or nothing."""
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
    return f"Searching {counted(readable, 'document', 'documents')} you can read"


def reading(passages: int, documents: int) -> str:
    if not passages:
        return "Found nothing"
    files = counted(documents, "document", "documents")
    return f"Reading {counted(passages, 'passage', 'passages')} from {files}"


def searched(readable: int | None, passages: int, documents: int) -> str:
    """One line about the search behind a finished answer; `readable` is None if it was not recorded."""
    files = counted(documents, "document", "documents")
    if passages:
        outcome = f"read {counted(passages, 'passage', 'passages')} from {documents if readable else files}"
    else:
        outcome = "found nothing"
    if readable is None:
        return outcome.capitalize()
    return f"Searched {counted(readable, 'document', 'documents')}, {outcome}"


def searched_in(scope: str, passages: int) -> str:
    """As :func:`searched`, of a search in a part of the documents."""
    outcome = f"Read {counted(passages, 'passage', 'passages')}" if passages else "Found nothing"
    return f"{outcome} in {scope}"


SEARCHED_FOR = "Generated search query"  # title of the step whose description it is
MAX_FOUND = 4  # documents that are named while the answer is being written


def searched_for(thoughts: Iterable[Thought]) -> str:
    """The words of the search, where the reader may see the steps."""
    found = (thought.description for thought in thoughts if thought.title == SEARCHED_FOR)
    return next((words for words in found if isinstance(words, str)), "")


def found_html(place: int, query: str, sources: Iterable[Found]) -> str:
    """What was searched for and found, as a line of links to the passages."""
    names: dict[str, int] = {}
    for source in sources:
        names.setdefault(name_of(source.title, source.label, source.heading), source.rank)
    if not query and not names:
        return ""
    links = list(names.items())[:MAX_FOUND]
    context = {"place": place, "query": query, "links": links, "more": len(names) - len(links)}
    return render_to_string("chat/found.html", context)


YES_NO = {"True": "yes", "False": "no"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the thought process."""

    title: str
    items: list[str]
    facts: list[str]


def step(thought: Mapping[str, Any], gone: Collection[str] = ()) -> Step:
    """A thought as text: description in items, properties as facts; labels in `gone` lose their names."""
    description = thought.get("description")
    values = description if isinstance(description, list) else [description] if description else []
    props = (thought.get("props") or {}).items()
    facts = [f"{name.replace('_', ' ')}: {YES_NO.get(str(value), value)}" for name, value in props]
    return Step(str(thought.get("title", "")), [_without(spoken(value), gone) for value in values], facts)


def spoken(value: Any) -> str:
    """An item of a step as text. A message of the prompt is kept as its representation, role and content."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if not value.startswith("{'role': "):
        return value
    try:
        message = ast.literal_eval(value)
        return f"{message['role']}:\n{message['content']}"
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return value


def _without(text: str, gone: Collection[str]) -> str:
    for label in gone:
        text = text.replace(f"[{label}]", "[a source you can no longer open]")
    return text
