"""What is said below an answer that did not simply end well, and what one can do about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.conf import settings
from django.utils.translation import gettext, gettext_lazy, ngettext

from chat.errors import words
from chat.events import RunResult, thought_from_json
from chat.models import Run
from chat.permissions import may_see_thoughts
from chat.runs import journal
from chat.statements import Proof, Statement, from_rows
from chatsite.accounts.principal import Principal
from history import feedback
from history.branches import Branches
from history.citation_text import without
from history.models import Conversation, Feedback, Message, Source
from history.signatures import signed
from history.tally import Tally, tally
from ingestion.glossary.lookup import Glossary, Meaning
from ingestion.models import Document
from ingestion.parsing.language import language_tag
from ingestion.search.scopes import DOCUMENT, describe, named

from .labels import (
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
from .markdown import (
    BlockSplitter,
    Chip,
    Citations,
    render,
    render_block,
    render_open,
    with_marks,
)

REFERENCE_LENGTH = 12
LANGUAGE_SAMPLE = 1_000  # characters of an answer by which its language is found
SAVED = gettext_lazy("Your question is saved.")


@dataclass(frozen=True, slots=True)
class Note:
    """`kind` is plain, warn or danger; `action` the words of the button that answers again."""

    kind: str
    icon: str
    text: str
    action: str = ""
    reference: str = ""


def note_for(message: Message) -> Note | None:
    """None for an answer that runs or that is complete."""
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
            return Note("danger", "error", _failure(message), gettext("Try again"), reference)
        case Message.State.COMPLETE if message.finish_reason == "length":
            return Note("plain", "warn", gettext("The answer reached its length limit."))
    return None


def _failure(message: Message) -> str:
    if message.error_code in ("", "internal"):
        text = gettext("The answer could not be written.")
    else:
        text = gettext(words(message.error_code))
    return f"{text} {SAVED}"


STEP_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Switch:
    """Which of several branches is shown, and the positions that the ones beside it begin at."""

    number: int  # from 1
    count: int
    previous: int | None
    next: int | None


def switch_of(branches: Branches | None, position: int) -> Switch | None:
    """None where the message at this position is the only one that follows the one before it."""
    siblings = branches.siblings(position) if branches else [position]
    if len(siblings) < 2:
        return None
    place = siblings.index(position)
    previous = siblings[place - 1] if place else None
    following = siblings[place + 1] if place + 1 < len(siblings) else None
    return Switch(place + 1, len(siblings), previous, following)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One row of the list of sources; without a source the reader may not open it (any more)."""

    number: int
    label: str
    source: Source | None
    tally: Tally  # of the statements that cite it

    @property
    def place(self) -> str:
        return place_of(self.source.label, self.source.heading) if self.source else ""

    @property
    def folder(self) -> str:
        return self.source.document.folder if self.source else ""

    @property
    def use(self) -> str:
        """How many statements cite it; whether any of them was found in it."""
        if not self.tally.cited:
            return ""
        if not self.tally.found:
            return gettext("not found")
        count = self.tally.cited
        return ngettext("%(count)s statement", "%(count)s statements", count) % {"count": count}


@dataclass
class Answer:
    """An answer, rendered from its row; while it is written, from its journal."""

    message: Message
    sources: Sequence[Source] = ()  # those that the reader may open now, best first
    labels: Sequence[str] = ()  # of all its sources, also of those
    run: Run | None = None
    newest: bool = False  # of the conversation
    shows_thoughts: bool = True  # whether the reader may see the steps behind it
    superseded: bool = False  # the same question was answered again
    shareable: bool = True  # guests share nothing
    scope: str = ""  # what was searched, in words, where it was not all that the reader may read
    branches: Branches | None = None  # of its conversation; None where only one is shown
    glossary: Glossary | None = None  # of the reader

    @property
    def place(self) -> int:
        return self.message.position

    @cached_property
    def switch(self) -> Switch | None:
        """Between the versions of the answer; of a team's, at its first message."""
        return switch_of(self.branches, self.place)

    @property
    def repeatable(self) -> bool:
        """Whether it can be answered again: not what was, nor what a program has brought along."""
        brought = self.message.client_id is not None and self.message.run_id is None
        return not self.superseded and not brought

    @property
    def running(self) -> bool:
        return self.message.state in Message.UNFINISHED

    @cached_property
    def _live(self) -> RunResult | None:
        """What the journal has of a running answer; None of one that is stored."""
        if not self.running or self.run is None:
            return None
        result = RunResult()
        for _, event in journal.read(self.run.pk):
            result.add(event)
        return result

    @cached_property
    def text(self) -> str:
        """Stored when the answer ends; until then its events have it."""
        return self._live.text_of(str(self.message.pk)) if self._live else self.message.content

    @cached_property
    def citations(self) -> Citations:
        citations = Citations(self.place, self.chips, list(self.message.citations))
        citations.read(self.text)
        return citations

    @cached_property
    def chips(self) -> Mapping[str, Chip]:
        named = {row.label: Chip(name_of(row.title, row.label, row.heading)) for row in self.sources}
        return dict.fromkeys((*self.message.citations, *self.labels), Chip()) | named

    @cached_property
    def html(self) -> str:
        """The finished blocks."""
        if not self.running:
            missing = [(each.start, each.end) for each in self.statements if each.verdict == "not_found"]
            return render(with_marks(self.text, missing) if missing else self.text, self.citations)
        return "\n".join(render_block(block, self.citations) for block in self._cut[0])

    @property
    def language(self) -> str:
        """The tag of the language that it is written in; empty where that is not clear."""
        return language_tag(without(self.text[:LANGUAGE_SAMPLE], self.message.citations))

    @property
    def open(self) -> str:
        """The unfinished block of a running answer, as safe HTML."""
        splitter = self._cut[1]
        return render_open(splitter.tail, self.citations, in_fence=splitter.in_fence) if self.running else ""

    @property
    def found(self) -> str:
        """What a running answer is written from."""
        thoughts = map(thought_from_json, self.message.thoughts if self.shows_thoughts else ())
        return found_html(self.place, searched_for(thoughts), self.sources)

    @cached_property
    def _cut(self) -> tuple[list[str], BlockSplitter]:
        splitter = BlockSplitter()
        return splitter.feed(self.text), splitter

    @cached_property
    def cited(self) -> list[SourceLine]:
        """The sources that the text cites, by number."""
        order = self.citations.order
        return [
            SourceLine(
                number,
                label,
                self.source_of(label),
                tally(each.verdict for each in self.statements if label in each.citations),
            )
            for number, label in enumerate(order, start=1)
        ]

    def source_of(self, label: str) -> Source | None:
        """The passage behind a citation. Those of a page share a label: the quoted one, else the best."""
        same = [source for source in self.sources if source.label == label]
        return next((source for source in same if source.quotes), same[0] if same else None)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """What was found of each statement; none where the answer was not compared with its sources."""
        if self._live and self._live.done:  # whole, while follow-up questions are awaited
            return self._live.done.verification
        return from_rows(self.message.verification or ())

    @cached_property
    def proofs(self) -> list[Proof]:
        """Of each citation in the text, in order of the text, what its statement rests on."""
        found = {proof.start: proof for statement in reversed(self.statements) for proof in statement.proofs}
        return [found[start] for start in sorted(found)]

    @cached_property
    def tally(self) -> Tally:
        return tally(statement.verdict for statement in self.statements)

    @property
    def all_found(self) -> bool:
        """Whether each cited statement was found in a source that the reader may still open."""
        return bool(self.tally.found) and not self.tally.missing and all(line.source for line in self.cited)

    @property
    def status(self) -> str:
        """What is being done, or what was."""
        passages, documents = len(self.sources), len({source.document_id for source in self.sources})
        if self.verified and not self.running:
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
        """Who vouches for it, of an answer that a person wrote."""
        return signed(self.message.verified)

    @property
    def worked(self) -> bool:
        """Whether a search was made that can be shown."""
        return bool(self.message.thoughts) and self.shows_thoughts and not self.running

    @property
    def steps(self) -> list[str]:
        return [step for thought in self.message.thoughts if (step := _step(thought))]

    @cached_property
    def explained(self) -> Sequence[Meaning]:
        """Words of the house in its text, as far as the reader may know them."""
        if self.running or self.glossary is None:
            return ()
        return self.glossary.explain(without(self.text, self.message.citations))

    @property
    def followups(self) -> Sequence[str]:
        """Questions to go on with; they may name what a source was about, so none where one is gone."""
        return self.message.followups if len(self.sources) >= len(self.labels) else ()

    @property
    def can_continue(self) -> bool:
        """Whether a model can write the rest of it; offered for the newest answer, which nothing follows."""
        return bool(settings.CHAT_MODEL) and self.newest and self.repeatable and self.message.can_continue

    @property
    def note(self) -> Note | None:
        return note_for(self.message)

    @cached_property
    def feedback(self) -> Feedback | None:
        return feedback.of(self.message)

    @property
    def ratings(self) -> list[tuple[str, str, bool]]:
        """Of each rating: value, words, and whether it was given."""
        given = self.feedback.rating if self.feedback else ""
        return [(value, str(words), value == given) for value, words in Feedback.Rating.choices]

    @property
    def reasons(self) -> list[tuple[str, str, bool]]:
        """Of each reason against an answer but its sources: value, words, and whether it was given."""
        given = self.feedback.reasons if self.feedback else ()
        own = Feedback.Reason.WRONG_SOURCE
        return [
            (value, str(words), value in given) for value, words in Feedback.Reason.choices if value != own
        ]

    @property
    def doubted(self) -> Sequence[str]:
        """The labels of the sources that were said not to support the answer."""
        return self.feedback.wrong_sources if self.feedback else ()


@dataclass
class Turn:
    """A question and what was answered to it: once, or again."""

    question: Message
    answers: list[Answer] = field(default_factory=list)
    branches: Branches | None = None  # as of its answers
    documents: list[Document] = field(default_factory=list)  # that it was asked about, if it names them

    @cached_property
    def switch(self) -> Switch | None:
        """Between the question and others that were asked instead of it."""
        return switch_of(self.branches, self.question.position)

    @property
    def last(self) -> int:
        """The position of its last message."""
        return self.answers[-1].place if self.answers else self.question.position

    @property
    def long(self) -> bool:
        """Whether the question is cut, with “Show all”."""
        return self.question.content.count("\n") >= 12 or len(self.question.content) > 1_200


def _step(thought: Mapping[str, Any]) -> str:
    description = thought.get("description")
    if not isinstance(description, str) or not description or len(description) > STEP_LENGTH:
        return ""
    return f"{thought.get('title', '')}: {description}"


def scope_of(answer: Message) -> str:
    """The scope that an answer was searched in, by its steps; empty for all that could be read."""
    for thought in answer.thoughts:
        if thought.get("title") == SEARCHED_FOR:
            return str((thought.get("props") or {}).get("scope", ""))
    return ""


def answers_of(
    principal: Principal, messages: Sequence[Message], branches: Branches | None = None
) -> list[Answer]:
    """The given answers with their sources: two queries, and one for the run of one that is written."""
    ids = [message.pk for message in messages]
    readable: dict[Any, list[Source]] = {}
    visible = Source.objects.visible_to(principal).filter(message__in=ids).select_related("document")
    for source in visible.order_by("message_id", "rank"):
        readable.setdefault(source.message_id, []).append(source)
    scopes = {scope: describe(principal, scope) for scope in {scope_of(message) for message in messages}}
    runs: dict[Any, Run] = {}
    shows_thoughts = may_see_thoughts(principal)
    glossary = Glossary(principal)
    if any(message.state in Message.UNFINISHED for message in messages):
        run_ids = {message.run_id for message in messages}
        # Include a run that has ended since the messages were read: its followers receive the end.
        runs = Run.objects.owned_by(principal).in_bulk(run_ids)
    return [
        Answer(
            message,
            readable.get(message.pk, ()),
            message.labels,
            runs.get(message.run_id),
            shows_thoughts=shows_thoughts,
            shareable=principal.method != "guest",
            scope=scopes[scope_of(message)],
            branches=branches,
            glossary=glossary,
        )
        for message in messages
    ]


def turns_of(principal: Principal, conversation: Conversation) -> list[Turn]:
    """The chosen branch of a conversation, in order."""
    messages = list(conversation.messages.chosen().select_related("feedback").order_by("position"))
    branches = Branches(conversation.pk)
    said = [row for row in messages if row.role == Message.Role.ASSISTANT]
    answers = answers_of(principal, said, branches)
    if answers:
        answers[-1].newest = True
    by_id = {answer.message.pk: answer for answer in answers}
    turns: list[Turn] = []
    for message in messages:
        if message.role == Message.Role.USER:
            turns.append(Turn(message, branches=branches))
        elif turns:
            for earlier in turns[-1].answers:
                # Answers of other agents of the same run are shown beside it and replace nothing.
                if earlier.message.run_id != message.run_id:
                    earlier.superseded = True
            turns[-1].answers.append(by_id[message.pk])
            if (scope := scope_of(message)).startswith(f"{DOCUMENT}:") and not turns[-1].documents:
                turns[-1].documents = named(principal, scope)
    return turns
