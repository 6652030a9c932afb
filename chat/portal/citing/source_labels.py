"""The names of sources as readers see them, and lines about the search behind an answer."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext

from chat.events import Thought

PLACES = {
    "page": gettext_noop("page %(place)s"),
    "slide": gettext_noop("slide %(place)s"),
    "sheet": gettext_noop("sheet %(place)s"),
}
PLACE = re.compile(rf"({'|'.join(PLACES)})=(.{{1,500}})\Z")


class SourceLike(Protocol):
    """The attributes that a source of an event and a stored source have in common."""

    @property
    def title(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def heading(self) -> str: ...
    @property
    def rank(self) -> int: ...


def place_of(label: str, heading: str, pages: Sequence[int] = ()) -> str:
    """The place of a passage in its document: “page 4”, “sheet 2026”, a heading, or nothing.

    `pages` replaces the label's page; several pages result in “pages 1–2”.
    """
    if len(pages) > 1:
        return gettext("pages %(first)s–%(last)s") % {"first": min(pages), "last": max(pages)}
    if pages:
        one = PLACES["page"]
        return gettext(one) % {"place": pages[0]}
    match = PLACE.match(label.partition("#")[2])
    return gettext(PLACES[match[1]]) % {"place": match[2]} if match else heading


def name_of(title: str, label: str, heading: str) -> str:
    """The title with the place in the document, such as “Working abroad policy, page 4”."""
    place = place_of(label, heading)
    return f"{title}, {place}" if place and place != title else title


def grouped(number: int) -> str:
    """A number with thousands separators: 1,204 in English, 1.204 in German."""
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
    """One line about the search behind a finished answer.

    `readable` is the number of documents that were searched; None if it was not recorded.
    """
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
    """Like :func:`searched`, for a search in a part of the documents."""
    if not passages:
        return gettext("Found nothing in %(scope)s; nothing else was searched") % {"scope": scope}
    return gettext("Read %(passages)s in %(scope)s") % {"passages": _passages(passages), "scope": scope}


SEARCHED_FOR = "Generated search query"  # title of the step whose description is the search query
GONE = gettext_noop("a source you can no longer open")
MAX_FOUND = 4  # passages that are named while the answer is being written


def searched_for(thoughts: Iterable[Thought]) -> str:
    """The search query in the steps of an answer; empty if no step has one."""
    found = (thought.description for thought in thoughts if thought.title == SEARCHED_FOR)
    return next((words for words in found if isinstance(words, str)), "")


def found_html(place: int, query: str, sources: Iterable[SourceLike]) -> str:
    """What was searched for and found, as a line with links to the passages."""
    names: dict[str, int] = {}
    for source in sources:
        names.setdefault(name_of(source.title, source.label, source.heading), source.rank)
    if not query and not names:
        return ""
    links = list(names.items())[:MAX_FOUND]
    context = {"place": place, "query": query, "links": links, "more": len(names) - len(links)}
    return render_to_string("chat/found.html", context)
