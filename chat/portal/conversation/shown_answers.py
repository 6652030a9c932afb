"""Answers on the page of a conversation, with text, sources, proofs, notes and actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.utils.functional import cached_property
from django.utils.translation import get_language, get_language_info, gettext, gettext_lazy, ngettext

from chat import pleasantries
from chat.errors import words
from chat.events import RunResult, thought_from_json
from chat.llm.chat_model import FORMER_NOTHING_FITS, NOTHING_FITS
from chat.models import Run
from chat.permissions import may_see_thoughts
from chat.portal.citing.source_labels import (
    SEARCHED_FOR,
    found_html,
    name_of,
    place_of,
    reading,
    searched,
    searched_for,
    searched_in,
    searching,
)
from chat.portal.citing.source_pages import Stretches, pages_of, stretches_of
from chat.portal.rendering.markdown import (
    BlockSplitter,
    Chip,
    Citations,
    RenderingBudget,
    render,
    render_block,
    render_open,
    with_marks,
)
from chat.portal.step_texts import in_short
from chat.runs import journal
from chat.statements import Proof, Statement, from_rows
from chatsite.accounts.principal import Principal
from history import feedback
from history.branches import Branches
from history.citation_text import without
from history.models import Feedback, Message, Source
from history.signatures import signed
from history.tally import HEDGES, Tally, tally
from ingestion.glossary.lookup import Glossary, Meaning
from ingestion.models import Document
from ingestion.parsing.language import language_tag
from ingestion.search.scopes import describe, kept_apart

REFERENCE_LENGTH = 12
LANGUAGE_SAMPLE = 1_000  # the language is detected from this many characters of an answer
MAX_NEAREST = 3  # documents that are named if nothing answers the question
SAVED = gettext_lazy("Your question is saved.")


@dataclass(frozen=True, slots=True)
class Note:
    """A note below an answer.

    `kind` is plain, warn or danger; `action` is the label of the button that regenerates the answer.
    """

    kind: str
    icon: str
    text: str
    action: str = ""
    reference: str = ""


def note_for(message: Message) -> Note | None:
    """The note for an answer that did not complete normally; otherwise None."""
    reference = message.request_id[:REFERENCE_LENGTH]
    match message.state:
        case Message.State.STOPPED:
            return Note("plain", "stop", gettext("You stopped this answer."), gettext("Answer again"))
        case Message.State.INTERRUPTED:
            kept = gettext("The partial answer is kept.") if message.content else SAVED
            text = gettext("The answer was interrupted.")
            return Note("warn", "warn", f"{text} {kept}", gettext("Answer again"), reference)
        case Message.State.BLOCKED:
            text = gettext("The question or the answer was blocked by the content filter.")
            return Note("danger", "error", text, "", reference)
        case Message.State.FAILED:
            text = gettext("The answer could not be written.")
            if message.error_code not in ("", "internal"):
                text = gettext(words(message.error_code))
            return Note("danger", "error", f"{text} {SAVED}", gettext("Try again"), reference)
        case Message.State.COMPLETE if message.finish_reason == "length":
            return Note("plain", "warn", gettext("The answer reached its length limit."))
    return None


@dataclass(frozen=True, slots=True)
class Switch:
    """The switch between versions: which one is shown, and the first positions of the adjacent ones."""

    number: int  # number of the shown version, from 1
    count: int
    previous: int | None
    next: int | None

    def comparable(self, position: int) -> tuple[int, int]:
        """The positions of this version and an adjacent one, older first."""
        if self.previous is not None:
            return self.previous, position
        return position, self.next or position


def switch_of(branches: Branches | None, position: int) -> Switch | None:
    """The switch at this position; None if there is only one version."""
    siblings = branches.siblings(position) if branches else [position]
    if len(siblings) < 2:
        return None
    place = siblings.index(position)
    previous = siblings[place - 1] if place else None
    following = siblings[place + 1] if place + 1 < len(siblings) else None
    return Switch(place + 1, len(siblings), previous, following)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A row of the list of sources; `source` is None if the reader may not open it."""

    number: int
    label: str
    source: Source | None
    tally: Tally  # tally of the statements that cite this source
    pages: Sequence[int] = ()  # the pages, for a passage on several pages

    @property
    def place(self) -> str:
        return place_of(self.source.label, self.source.heading, self.pages) if self.source else ""

    @property
    def folder(self) -> str:
        return self.source.document.shown_origin if self.source else ""

    @property
    def use(self) -> str:
        """How many statements cite the source, who checked them, or “not found”; empty if uncited."""
        if not self.tally.cited:
            return ""
        if self.tally.is_confirmed:
            return self.tally.summary
        if not (self.tally.found or self.tally.unclear):
            return gettext("not found")
        count = self.tally.cited
        return ngettext("%(count)s statement", "%(count)s statements", count) % {"count": count}


@dataclass
class Answer:
    """An answer, rendered from its row, or from the journal while it is being written."""

    message: Message
    sources: Sequence[Source] = ()  # the sources that the reader may open now, best first
    labels: Sequence[str] = ()  # labels of all sources, including those that the reader may not open
    run: Run | None = None
    newest: bool = False  # whether it is the newest answer of the conversation
    shows_thoughts: bool = True  # whether the reader may see the steps behind the answer
    superseded: bool = False  # whether a later run answered the same question again
    shareable: bool = True  # False for guests
    searched_in: str = ""  # the scope of the search, such as folder:x; empty for everything
    scope: str = ""  # the description of the scope for the reader; empty for everything
    branches: Branches | None = None  # branches of the conversation; None if no other versions are offered
    glossary: Glossary | None = None  # the glossary for the reader
    budget: RenderingBudget = field(default_factory=RenderingBudget)  # shared by the answers of a page
    # The parts of each source that is on several pages, by the source's primary key.
    stretches: Mapping[int, Stretches] = field(default_factory=dict)
    reader: Principal | None = None  # the person who asked; None for readers of a share

    @property
    def place(self) -> int:
        return self.message.position

    @cached_property
    def switch(self) -> Switch | None:
        """The switch between versions of the answer; for a team, at its first message."""
        return switch_of(self.branches, self.place)

    @property
    def comparable(self) -> tuple[int, int] | None:
        """The positions of this version and an adjacent one, older first."""
        return self.switch.comparable(self.place) if self.switch else None

    @property
    def repeatable(self) -> bool:
        """Whether the answer can be regenerated: not if it was superseded or imported."""
        brought = self.message.client_id is not None and self.message.run_id is None
        return not self.superseded and not brought

    @property
    def running(self) -> bool:
        return self.message.state in Message.UNFINISHED

    @cached_property
    def _live(self) -> RunResult | None:
        """The events of a running answer from the journal; None for a finished answer."""
        if not self.running or self.run is None:
            return None
        result = RunResult()
        for _, event in journal.read(self.run.pk):
            result.add(event)
        return result

    @cached_property
    def text(self) -> str:
        """The stored text, or the text from the events while the answer is being written."""
        return self._live.text_of(str(self.message.pk)) if self._live else self.message.content

    @cached_property
    def citations(self) -> Citations:
        citations = Citations(self.place, self.chips, list(self.message.citations), budget=self.budget)
        citations.read(self.text)
        return citations

    @cached_property
    def chips(self) -> Mapping[str, Chip]:
        named = {row.label: Chip(name_of(row.title, row.label, row.heading)) for row in self.sources}
        return dict.fromkeys((*self.message.citations, *self.labels), Chip()) | named

    @cached_property
    def html(self) -> str:
        """The text as safe HTML; for a running answer, only its finished blocks."""
        if not self.running:
            missing = [
                (each.start, each.end)
                for each in self.statements
                if each.verdict == "not_found" and not each.unclear and not self.verified
            ]
            return render(with_marks(self.text, missing) if missing else self.text, self.citations)
        return "\n".join(render_block(block, self.citations) for block in self._cut[0])

    @property
    def language(self) -> str:
        """The BCP 47 tag of the answer's language; empty if unclear."""
        return language_tag(without(self.text[:LANGUAGE_SAMPLE], self.message.citations))

    @property
    def foreign_language(self) -> str:
        """The name of the first cited document's language, if it differs from the page's."""
        source = next((line.source for line in self.cited if line.source), None)
        tag = language_tag(source.content[:LANGUAGE_SAMPLE]) if source else ""
        try:
            here = (get_language() or "").partition("-")[0]
            return str(get_language_info(tag)["name_translated"]) if tag not in ("", here) else ""
        except KeyError:
            return ""

    @property
    def open(self) -> str:
        """The unfinished block of a running answer, as safe HTML."""
        splitter = self._cut[1]
        return render_open(splitter.tail, self.citations, in_fence=splitter.in_fence) if self.running else ""

    @property
    def found(self) -> str:
        """What was searched for and found, as HTML; shown while the answer is being written."""
        thoughts = map(thought_from_json, self.message.thoughts if self.shows_thoughts else ())
        return found_html(self.place, searched_for(thoughts), self.sources)

    @cached_property
    def _cut(self) -> tuple[list[str], BlockSplitter]:
        splitter = BlockSplitter()
        return splitter.feed(self.text), splitter

    @cached_property
    def cited(self) -> list[SourceLine]:
        """The sources that the text cites, by number."""
        lines: list[SourceLine] = []
        for number, label in enumerate(self.citations.order, start=1):
            source = self.source_of(label)
            counted = self._tally_of([each for each in self.statements if label in each.citations])
            on = pages_of(self.stretches.get(source.pk, ())) if source else ()
            lines.append(SourceLine(number, label, source, counted, on))
        return lines

    def source_of(self, label: str) -> Source | None:
        """The passage of a citation.

        Passages of the same page share a label: the quoted one is preferred, or else the best one.
        """
        same = [source for source in self.sources if source.label == label]
        return next((source for source in same if source.quotes), same[0] if same else None)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements as checked by chat.verification; empty if the answer was not checked."""
        # The text is complete, but the run continues with follow-up questions.
        if self._live and self._live.done:
            return self._live.done.verification
        return from_rows(self.message.verification or ())

    @cached_property
    def proofs(self) -> list[Proof]:
        """One proof for each citation, in the order of the text."""
        found = {proof.start: proof for statement in reversed(self.statements) for proof in statement.proofs}
        return [found[start] for start in sorted(found)]

    @cached_property
    def tally(self) -> Tally:
        return self._tally_of(self.statements)

    def _tally_of(self, statements: Sequence[Statement]) -> Tally:
        by_model, unclear = (
            sum(each.by_model for each in statements),
            sum(each.unclear for each in statements),
        )
        return tally((each.verdict for each in statements), by_model, unclear, self.message.verified)

    @property
    def all_found(self) -> bool:
        """Whether each cited statement is supported by a source that the reader may still open.

        False if the text begins with one of HEDGES, which say that it may not answer the question.
        """
        if self.text.startswith(HEDGES):
            return False
        counted = self.tally
        is_checked = counted.found and not counted.missing and not counted.unclear
        return bool(is_checked) and all(line.source for line in self.cited)

    @property
    def status(self) -> str:
        """The current step, or a summary of the steps."""
        passages, documents = len(self.sources), len({source.document_id for source in self.sources})
        is_pleasantry = not passages and self.message.content in pleasantries.ANSWERS
        if (self.verified or is_pleasantry) and not self.running:
            return gettext("Answered without a search")
        if not self.running:
            if self.scope:
                return searched_in(self.scope, passages)
            return searched(self.message.searched_count, passages, documents)
        if self.message.state == Message.State.STREAMING:
            return reading(passages, documents)
        return searching(self.message.searched_count) if self.message.searched_count else gettext("Starting")

    @property
    def verified(self) -> str:
        """The signature line of a verified answer (see history.signatures); empty for any other."""
        return signed(self.message.verified)

    @property
    def worked(self) -> bool:
        """Whether the answer is finished and has steps to show."""
        return bool(self.message.thoughts) and self.shows_thoughts and not self.running

    @property
    def steps(self) -> list[str]:
        return [step for thought in self.message.thoughts if (step := in_short(thought))]

    @cached_property
    def explained(self) -> Sequence[Meaning]:
        """The meanings of glossary terms in the text, as far as the reader may see them."""
        if self.running or self.glossary is None:
            return ()
        return self.glossary.explain(without(self.text, self.message.citations))

    @property
    def followups(self) -> Sequence[str]:
        """Follow-up questions; none if a source is not readable, because they could reveal its subject."""
        return self.message.followups if len(self.sources) >= len(self.labels) else ()

    @property
    def can_continue(self) -> bool:
        """Whether a model can continue the text; only true for the newest answer."""
        return bool(settings.CHAT_MODEL) and self.newest and self.repeatable and self.message.can_continue

    @property
    def note(self) -> Note | None:
        return note_for(self.message)

    @property
    def unanswered_in(self) -> str:
        """The searched part of the documents, if a complete and repeatable answer cites nothing."""
        is_complete = self.message.state == Message.State.COMPLETE
        return self.scope if is_complete and self.repeatable and not self.message.citations else ""

    @property
    def is_nothing(self) -> bool:
        """Whether a search of everything found no answer; there may be :attr:`nearest` documents."""
        is_complete = self.message.state == Message.State.COMPLETE
        return is_complete and self.message.content in (NOTHING_FITS, FORMER_NOTHING_FITS)

    @cached_property
    def apart(self) -> int:
        """If :attr:`is_nothing`, the number of the reader's attached files that were left out."""
        return len(kept_apart(self.reader)) if self.is_nothing and self.reader else 0

    @cached_property
    def nearest(self) -> Sequence[Document]:
        """If :attr:`is_nothing`, the closest documents, whose owners the reader may ask."""
        if not self.is_nothing:
            return ()
        found = list({source.document_id: source.document for source in self.sources}.values())
        prefetch_related_objects(found[:MAX_NEAREST], "owner")
        return found[:MAX_NEAREST]

    @cached_property
    def feedback(self) -> Feedback | None:
        return feedback.of(self.message)

    @property
    def ratings(self) -> list[tuple[str, str, bool]]:
        """For each possible rating: value, label, and whether it was given."""
        given = self.feedback.rating if self.feedback else ""
        return [(value, str(words), value == given) for value, words in Feedback.Rating.choices]

    @property
    def reasons(self) -> list[tuple[str, str, bool]]:
        """For each possible reason except wrong sources: value, label, and whether it was given."""
        given = self.feedback.reasons if self.feedback else ()
        own = Feedback.Reason.WRONG_SOURCE
        return [
            (value, str(words), value in given) for value, words in Feedback.Reason.choices if value != own
        ]

    @property
    def doubted(self) -> Sequence[str]:
        """The labels of sources that were reported as wrong."""
        return self.feedback.wrong_sources if self.feedback else ()


def scope_of(answer: Message, run: Run | None = None) -> str:
    """The scope of an answer, from its search step; until that step is stored, from its run.

    Empty for everything.
    """
    for thought in answer.thoughts:
        if thought.get("title") == SEARCHED_FOR:
            return str((thought.get("props") or {}).get("scope", ""))
    return str(run.options.get("scope", "")) if run else ""


def answers_of(
    principal: Principal, messages: Sequence[Message], branches: Branches | None = None
) -> list[Answer]:
    """The given answers with their sources, which are read in one query.

    Further queries are needed if an answer is unfinished or has no steps, for each scope that names a
    folder, a category or documents, and if cited passages may be on several pages.
    """
    ids = [message.pk for message in messages]
    readable: dict[Any, list[Source]] = {}
    visible = Source.objects.visible_to(principal).filter(message__in=ids).select_related("document")
    for source in visible.order_by("message_id", "rank"):
        readable.setdefault(source.message_id, []).append(source)
    runs: dict[Any, Run] = {}
    shows_thoughts = may_see_thoughts(principal)
    glossary, budget = Glossary(principal), RenderingBudget()
    if any(message.state in Message.UNFINISHED or not message.thoughts for message in messages):
        run_ids = {message.run_id for message in messages}
        # Include runs that ended after the messages were read: the page still follows them to their end.
        runs = Run.objects.owned_by(principal).in_bulk(run_ids)
    asked_in = {message.pk: scope_of(message, runs.get(message.run_id)) for message in messages}
    scopes = {scope: describe(principal, scope) for scope in set(asked_in.values())}
    stretches = stretches_of(
        source
        for message in messages
        for source in readable.get(message.pk, ())
        if source.label in message.citations
    )
    return [
        Answer(
            message,
            readable.get(message.pk, ()),
            message.labels,
            runs.get(message.run_id),
            shows_thoughts=shows_thoughts,
            shareable=principal.method != "guest",
            searched_in=asked_in[message.pk],
            scope=scopes[asked_in[message.pk]],
            branches=branches,
            glossary=glossary,
            budget=budget,
            stretches=stretches,
            reader=principal,
        )
        for message in messages
    ]
