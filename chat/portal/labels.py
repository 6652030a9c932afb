"""What a source is called: in a chip, in a row of the list, at the head of the panel."""

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext

from chat.events import Thought

PLACE = re.compile(r"(page|slide|sheet)=(.+)\Z")
PLACES = {
    "page": gettext_noop("page %(place)s"),
    "slide": gettext_noop("slide %(place)s"),
    "sheet": gettext_noop("sheet %(place)s"),
}


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
    return gettext(PLACES[match[1]]) % {"place": match[2]} if match else heading


def name_of(title: str, label: str, heading: str) -> str:
    """Working abroad policy, page 4."""
    place = place_of(label, heading)
    return f"{title}, {place}" if place and place != title else title


def grouped(number: int) -> str:
    """1,204 in English, 1.204 in German."""
    return number_format(number, force_grouping=True)


def _passages(number: int) -> str:
    return ngettext("%(number)s passage", "%(number)s passages", number) % {"number": grouped(number)}


def _documents(number: int) -> str:
    return ngettext("%(number)s document", "%(number)s documents", number) % {"number": grouped(number)}


def searching(readable: int) -> str:
    words = ngettext(
        "Searching %(number)s document you can read", "Searching %(number)s documents you can read", readable
    )
    return words % {"number": grouped(readable)}


def awaiting(documents: int) -> str:
    words = ngettext(
        "Waiting until %(number)s document is read", "Waiting until %(number)s documents are read", documents
    )
    return words % {"number": grouped(documents)}


def reading(passages: int, documents: int) -> str:
    if not passages:
        return gettext("Found nothing")
    words = gettext("Reading %(passages)s from %(documents)s")
    return words % {"passages": _passages(passages), "documents": _documents(documents)}


def searched(readable: int | None, passages: int, documents: int) -> str:
    """One line about the search behind a finished answer; `readable` is None if it was not recorded."""
    if not passages:
        outcome = gettext("found nothing")
    elif readable:
        outcome = gettext("read %(passages)s from %(number)s") % {
            "passages": _passages(passages),
            "number": documents,
        }
    else:
        outcome = gettext("read %(passages)s from %(documents)s") % {
            "passages": _passages(passages),
            "documents": _documents(documents),
        }
    if readable is None:
        return outcome[:1].upper() + outcome[1:]
    words = gettext("Searched %(documents)s, %(outcome)s")
    return words % {"documents": _documents(readable), "outcome": outcome}


def searched_in(scope: str, passages: int) -> str:
    """As :func:`searched`, of a search in a part of the documents."""
    if not passages:
        return gettext("Found nothing in %(scope)s") % {"scope": scope}
    return gettext("Read %(passages)s in %(scope)s") % {"passages": _passages(passages), "scope": scope}


SEARCHED_FOR = "Generated search query"  # title of the step whose description it is
GONE = gettext_noop("a source you can no longer open")
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


YES_NO = {"True": gettext_noop("yes"), "False": gettext_noop("no")}
STEPS = {  # words for the titles of the protocols
    "Original user query": gettext_noop("The question"),
    "Generated search query": gettext_noop("What was searched for"),
    "Results": gettext_noop("Passages found"),
    "Prompt": gettext_noop("What the answer was made from"),
    "Vector fields": gettext_noop("Vectors"),
    "Page images": gettext_noop("Images of pages"),
    "Overrides without effect": gettext_noop("Settings without effect"),
}
FACTS = {  # words for their properties
    "use_semantic_captions": gettext_noop("short excerpts"),
    "use_semantic_ranker": gettext_noop("ranked again"),
    "has_vector": gettext_noop("searched by meaning, too"),
    "retrieval_mode": gettext_noop("kind of search"),
    "top": gettext_noop("passages at most"),
    "filter": gettext_noop("only where"),
    "scope": gettext_noop("searched in"),
    "also_searched_for": gettext_noop("also searched for"),
    "model": gettext_noop("model"),
    "temperature": gettext_noop("temperature"),
}
VALUES = {
    ("retrieval_mode", "hybrid"): gettext_noop("words and meaning"),
    ("retrieval_mode", "text"): gettext_noop("words"),
    ("retrieval_mode", "vectors"): gettext_noop("meaning"),
    ("model", "quotations"): gettext_noop("none, quotations only"),
}


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
    items = []
    for value in values:
        text = spoken(value)
        for label in gone:
            text = text.replace(f"[{label}]", f"[{gettext(GONE)}]")
        items.append(text)
    # “kind of search: words and meaning”; a property without words of its own keeps its name.
    facts = []
    for name, value in props:
        told = gettext(FACTS[name]) if name in FACTS else name.replace("_", " ")
        words = YES_NO.get(str(value)) or VALUES.get((name, str(value)))
        facts.append(f"{told}: {gettext(words) if words else value}")
    title = str(thought.get("title", ""))
    return Step(gettext(STEPS[title]) if title in STEPS else title, items, facts)


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
