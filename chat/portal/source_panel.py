"""The source panel: the cited passage, its page, the steps of the answer, and all passages."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy

from chat.portal.citing.quotations import best_span
from chat.statements import Proof
from chatsite.accounts.principal import Principal
from chatsite.http.parameters import whole_number
from history.branches import question_of
from history.models import Conversation, Message, Source
from history.withheld import withheld_labels
from ingestion.access.explain import why_readable
from ingestion.models import Document, FormerVersion, Passage
from ingestion.parsing.boxes import Box, boxes_of
from ingestion.parsing.language import language_tag
from ingestion.parsing.sections import Unreadable
from ingestion.search.passage_completion import MAX_ALONE
from ingestion.search.scopes import describe
from ingestion.storage import files
from ingestion.versions import former_versions

from .citing.passage_parts import Part, flowing, parts_of
from .citing.source_labels import (
    grouped,
    place_of,
)
from .citing.source_pages import Stretches, pages_of, spans_on, stretches_of
from .citing.surroundings import Surroundings
from .conversation.shown_answers import Answer, answers_of
from .step_texts import Step, step

View = Literal["passage", "page", "thoughts", "support"]
VIEWS = {
    "passage": gettext_lazy("Quote"),
    "page": gettext_lazy("Page"),
    "thoughts": gettext_lazy("How it was found"),
    "support": gettext_lazy("All passages"),
}
PLACE = re.compile(r"(\d{1,9})\.(r?)(\d{1,9})\Z", re.ASCII)
ZOOMS = (
    ("out", gettext_lazy("Smaller"), "zoom-out"),
    ("in", gettext_lazy("Larger"), "zoom-in"),
    ("fit", gettext_lazy("Fit the width"), "fit"),
)
MAX_PASSAGES = 40  # passages of a page that is shown as text
FOUND_BY = {
    "words": gettext_lazy("its words"),
    "meaning": gettext_lazy("its meaning"),
    "both": gettext_lazy("its words and its meaning"),
    "person": gettext_lazy("a person, who verified the answer"),
    "scope": gettext_lazy("reading the whole of a short document"),
}


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Boxes on a page, in the same units as `width` and `height`."""

    width: int
    height: int
    boxes: list[Box]

    @property
    def rectangles(self) -> list[tuple[int, int, int, int]]:
        """Left, top, width and height of each box."""
        return [(left, top, right - left, bottom - top) for left, top, right, bottom in self.boxes]


@dataclass(frozen=True, slots=True)
class Support:
    """A passage that the model got, with the place that opens it in the panel.

    Passages of a page share a label. A passage with a cited label counts as cited if it is quoted, supports a
    statement or is the only one with this label; otherwise it is only on the same page (`is_near`).
    """

    source: Source
    place: str
    is_cited: bool
    is_near: bool


@dataclass
class Panel:
    """Data for the templates of the panel.

    `source` is None if the reader may not open it.
    """

    principal: Principal
    answer: Answer
    number: int  # number of the cited source; 0 if the passage was opened by its rank
    rank: int
    source: Source | None
    view: View
    turned_to: int = 0  # the page to which the reader turned; 0 for the passage's page
    proof: Proof | None = None  # proof of the opened citation
    statement: int = 0  # number of the opened citation in the answer's text

    @property
    def place(self) -> str:
        return f"{self.answer.place}.{self.number}" if self.number else f"{self.answer.place}.r{self.rank}"

    @property
    def language(self) -> str:
        """The BCP 47 tag of the passage's language; empty if unclear."""
        return language_tag(self.source.content) if self.source else ""

    @property
    def query(self) -> str:
        """The place and the citation's number, for links: the query string after `source=`."""
        return f"{self.place}&s={self.statement}" if self.proof else self.place

    @property
    def verdict(self) -> str:
        """The verdict on the opened citation; without a proof, “quoted” if the source is quoted."""
        if self.proof:
            return self.proof.verdict
        return "quoted" if self.source and self.source.quotes else ""

    @property
    def tabs(self) -> list[tuple[str, str]]:
        """The available views, with their labels.

        If the reader may not open the source, there are none, unless the URL requests a view of the whole
        answer.
        """
        if self.source is None and self.view in ("passage", "page"):
            return []
        return [(view, str(words)) for view, words in VIEWS.items() if self._has_view(view)]

    def _has_view(self, view: str) -> bool:
        if view == "thoughts":
            return self.answer.shows_thoughts
        if view == "page":
            return self.page > 0
        return view == "support" or self.source is not None

    @property
    def zooms(self) -> Sequence[tuple[str, str, str]]:
        return [(way, str(words), icon) for way, words, icon in ZOOMS]

    @property
    def count(self) -> int:
        return len(self.answer.citations.order)

    @property
    def previous(self) -> int:
        return self.number - 1 if self.number > 1 else 0

    @property
    def next(self) -> int:
        return self.number + 1 if 0 < self.number < self.count else 0

    @property
    def where(self) -> str:
        """The folder and place of the passage, if known."""
        if self.source is None:
            return ""
        document = self.source.document
        numbers = [self.row_page] if self.row_page else pages_of(self.stretches)
        place = place_of(self.source.label, self.source.heading, numbers)
        if self.source.page and document.page_count and "#page=" in self.source.label:
            place = gettext("%(place)s of %(count)s") % {
                "place": place,
                "count": grouped(document.page_count),
            }
        place = place[:1].upper() + place[1:]
        return " · ".join(filter(None, (document.shown_origin.replace("/", " / "), place)))

    @property
    def replaced(self) -> bool:
        """Whether the document has a newer version; the passage is shown as it was cited."""
        return self.source is not None and self.source.document.version != self.source.document_version

    @cached_property
    def former(self) -> FormerVersion | None:
        """The version of the document that was cited.

        None if the document has not changed, if the version was not kept, or if the reader may not see it.
        """
        if self.source is None or not self.replaced:
            return None
        kept = former_versions.visible(self.principal, self.source.document)
        return former_versions.with_number(kept.defer("content"), self.source.document_version)

    @property
    def parts(self) -> list[Part]:
        """The passage with the supporting words marked, and the rest of its table, if short."""
        if self.surroundings is None:
            return []
        start = self.surroundings.start
        spans = [[first + start, last + start] for first, last in self.spans]
        return parts_of(flowing(self.surroundings.whole), spans)

    @cached_property
    def spans(self) -> Sequence[Sequence[int]]:
        """The marked spans of the passage's content."""
        if self.source is None:
            return []
        if self.proof:
            return self.proof.marks
        return self.source.quotes or [best_span(self._question, self.source.content) or (0, 0)]

    @cached_property
    def page_boxes(self) -> PageBoxes | None:
        """The boxes of the marked words on the page's image; None if unknown.

        A passage with its whole table may have rows from adjacent pages; each row is marked on its own page.
        """
        if self.source is None or not self.has_image:
            return None
        spans, only_rows = self.spans, False
        if self.stretches:
            spans = spans_on(self.page, self.stretches, spans)
        elif not self.shows_passage:
            spans, only_rows = spans if len(self.source.content) > MAX_ALONE else [], True
        if not spans:
            return None
        try:
            page = files.page_characters(self.source.document, self.page)
        except (Unreadable, FileNotFoundError, files.StorageFault):
            return None  # the image's own request reports the error
        source = self.source
        boxes = boxes_of(page, source.content, spans, only_rows=only_rows, heading=source.heading)
        return PageBoxes(page["width"], page["height"], boxes)

    @cached_property
    def stretches(self) -> Stretches:
        """The parts of the passage by page, if it is on several pages."""
        return stretches_of([self.source]).get(self.source.pk, ()) if self.source else ()

    @cached_property
    def row_page(self) -> int:
        """The page of the first marked words of a passage on several pages; otherwise 0."""
        return next(iter(pages_of(self.stretches, self.spans)), 0)

    @cached_property
    def _question(self) -> str:
        question = question_of(self.answer.message)
        return question.content if question else ""

    @property
    def found_by(self) -> str:
        return str(FOUND_BY.get(self.source.found_by, "")) if self.source else ""

    @cached_property
    def reasons(self) -> list[str]:
        return why_readable(self.principal, self.source.document) if self.source else []

    @cached_property
    def surroundings(self) -> Surroundings | None:
        """The text around the passage; None if the reader may not open the source."""
        return Surroundings(self.source, self.replaced) if self.source else None

    @property
    def page(self) -> int:
        return self.turned_to or self.row_page or (self.source.page or 0 if self.source else 0)

    @property
    def shown_as_text(self) -> str:
        """The line above the page's text, which is shown if there is no image."""
        if self.source and self.page == self.source.page:
            place = place_of(self.source.label, self.source.heading)
            return gettext("The text of %(place)s.") % {"place": place}
        return gettext("The text of page %(page)s.") % {"page": self.page}

    @property
    def page_count(self) -> int:
        return (self.source.document.page_count or 0) if self.source else 0

    @property
    def has_image(self) -> bool:
        """Whether the page can be shown as an image."""
        if self.source is None or self.replaced or not self.page:
            return False
        return self.source.document.media_type == "application/pdf"

    @property
    def shows_passage(self) -> bool:
        """Whether the shown page contains the passage or a part of it."""
        if self.stretches:
            return self.page in pages_of(self.stretches)
        return self.source is not None and self.page == self.source.page

    @cached_property
    def page_passages(self) -> list[list[Part]]:
        """The text of the page, if there is no image."""
        if self.source is None or self.surroundings is None:
            return []
        contents = [] if self.replaced else self._page_contents(self.source)
        own = self.surroundings.whole
        shown: list[list[Part]] = []
        is_own_shown = False
        for content in contents or [own]:
            if content not in own:
                shown.append(parts_of(flowing(content), []))
            # A passage completed with its table may contain several passages of the page: show it once.
            elif not is_own_shown:
                shown.append(self.parts)
                is_own_shown = True
        return shown

    def _page_contents(self, source: Source) -> list[str]:
        rows = Passage.objects.filter(document=source.document_id, page=self.page)
        return list(rows.order_by("position").values_list("content", flat=True)[:MAX_PASSAGES])

    @property
    def thoughts(self) -> list[Step]:
        """The steps, without names of unreadable sources, even where they quote earlier answers."""
        gone = withheld_labels(self.principal, self.answer.message.conversation_id)
        shown = []
        for thought in self.answer.message.thoughts:
            props = thought.get("props") or {}
            if "scope" in props:  # describe it for the reader, without ids or names of hidden folders
                props = {**props, "scope": describe(self.principal, str(props["scope"]))}
            shown.append(step({**thought, "props": props}, gone))
        return shown

    @property
    def support(self) -> list[Support]:
        """The passages that the model got and that the reader may open."""
        order = self.answer.citations.order
        sources = self.answer.sources
        places = Counter(source.label for source in sources)
        proven = {
            proof.rank
            for statement in self.answer.statements
            for proof in statement.proofs
            if proof.verdict in ("quoted", "supported")
        }
        found = []
        for source in sources:
            place_cited = source.label in order
            is_proven = bool(source.quotes) or source.rank in proven
            cited = place_cited and (is_proven or places[source.label] == 1)
            opened = self.answer.source_of(source.label) if cited else None
            number = order.index(source.label) + 1 if opened and opened.rank == source.rank else 0
            place = f"{self.answer.place}.{number}" if number else f"{self.answer.place}.r{source.rank}"
            found.append(Support(source, place, cited, place_cited and not cited))
        return found

    @property
    def cited_count(self) -> int:
        return sum(each.is_cited for each in self.support)

    @property
    def hidden_count(self) -> int:
        """The number of passages that the model got and that the reader may no longer open."""
        return len(self.answer.labels) - len(self.answer.sources)

    @property
    def document(self) -> Document | None:
        return self.source.document if self.source else None


def panel_of(
    principal: Principal,
    conversation: Conversation,
    place: str,
    view: str,
    page: str = "",
    statement: str = "",
) -> Panel | None:
    """The panel for `<answer>.<source number>` or `<answer>.r<rank>`; None if there is none.

    `statement` is the number of the citation in the text; the panel marks its supporting words.
    """
    position = position_of(place)
    if position is None:
        return None
    message = conversation.messages.filter(role=Message.Role.ASSISTANT, position=position).first()
    if message is None:
        return None
    return panel_of_answer(principal, answers_of(principal, [message])[0], place, view, page, statement)


def position_of(place: str) -> int | None:
    """The position of the answer in a place such as `3.1` or `3.r2`.

    None if the place is invalid.
    """
    match = PLACE.match(place)
    return int(match[1]) if match else None


def panel_of_answer(
    principal: Principal, answer: Answer, place: str, view: str, page: str = "", statement: str = ""
) -> Panel | None:
    """The panel for a place in this answer, like :func:`panel_of`."""
    match = PLACE.match(place)
    if match is None:
        return None
    by_rank, number = bool(match[2]), int(match[3])
    order = answer.citations.order
    if by_rank:
        source = next((each for each in answer.sources if each.rank == number), None)
        if source is None:
            return None
    elif 1 <= number <= len(order):
        # None if the reader may not open the source; the panel then says so.
        source = answer.source_of(order[number - 1])
    else:
        return None
    nth = whole_number(statement) or 0
    proof = None if by_rank else _proof_of(answer, number, nth)
    if proof and source:
        source = next((each for each in answer.sources if each.rank == proof.rank), source)
    chosen: View = view if view in VIEWS else "passage"  # type: ignore[assignment]
    if chosen == "thoughts" and not answer.shows_thoughts:
        chosen = "passage"
    turned = whole_number(page) or 0
    if source is None or turned > (source.document.page_count or 0):
        turned = 0
    panel = Panel(
        principal,
        answer,
        number=0 if by_rank else number,
        rank=source.rank if source else 0,
        source=source,
        view=chosen,
        turned_to=turned,
        proof=proof,
        statement=nth,
    )
    if panel.view == "page" and not panel.page:
        panel.view = "passage"
    return panel


def _proof_of(answer: Answer, number: int, statement: int) -> Proof | None:
    """The proof of citation number `statement` in the text, if it cites source `number`."""
    proofs = answer.proofs
    if not 1 <= statement <= len(proofs):
        return None
    proof = proofs[statement - 1]
    return proof if proof.label == answer.citations.order[number - 1] else None
