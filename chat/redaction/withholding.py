"""What a reader of a share may see: only text based on sources that the reader may read.

If the reader may open all sources of an answer, it is shown completely. If some sources are closed to the
reader, only statements that an open source supports are shown, both of this answer and of later answers,
which may repeat it. An answer that the site made of quotations, and each of its parts, is only based on the
passages that it cites. A verified answer for certain groups is only shown to their members.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from uuid import UUID

from chat.quoting.table_rows.table_notices import ROWS_SHOWN
from chat.redaction.quoted_parts import QuotedPart, is_phrase, is_quoted, quoted_parts, statements_of
from chat.statements import Statement, to_rows
from chat.verification import verify_or_log
from chat.verification.terms.lexicon import STOP_WORDS
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.threads import reading_everything
from history.branches import Branches
from history.citation_text import without
from history.models import Message, Share, Source
from ingestion.models import Document, Passage

LEFT_OUT = "[…]"
FOUND = ("quoted", "supported")
CLOSED = "\x1f{}"  # replaces the label of a closed source in the citations; no text can cite it
STEM = 6  # characters to which words are truncated for comparison
GIVEN_AS_ANSWER = "{'role': 'assistant'"  # how an earlier answer begins in the step with the prompt
_MARKER = re.compile(r"[ \t>]{0,40}(?:[-*+•]|\d{1,9}[.)])?[ \t]{0,20}(?:\[[ xX]\][ \t]{1,20})?")
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+")
_AFTER = re.compile(r"[.,;:!?…)\"'”’»*_。！？]*")


@dataclass
class SharedMessage:
    """A question or an answer as its reader may see it.

    Do not save `message`, because text, citations and labels of closed sources were removed. `statements` is
    the number of its statements, and `left_out` the number of removed ones; `closed` says that nothing
    remains. `closed_documents` are the documents that caused something to be left out.
    """

    message: Message
    sources: Sequence[Source] = ()
    left_out: int = 0
    closed: bool = False
    statements: int = 0
    closed_documents: frozenset[int] = frozenset()


@dataclass
class _Reader:
    """The sources that a reader may open, and the text that may be based on other sources."""

    sources: Mapping[UUID, Sequence[Source]]
    closed_sources: Mapping[UUID, Sequence[Source]]
    closed_questions: Mapping[str, frozenset[int]]
    groups: frozenset[int] = frozenset()  # groups of the reader
    doubtful: bool = False  # whether any answer so far is based on closed or unknown sources
    unknown: bool = False  # whether some of these sources can no longer be looked up
    offered: set[str] = field(default_factory=set)  # questions generated from such answers
    closed_words: set[str] = field(default_factory=set)  # words of closed sources
    shown_words: set[str] = field(default_factory=set)  # words of the questions that are shown
    closed_documents: set[int] = field(default_factory=set)  # ids of the documents of closed sources
    offering: set[int] = field(default_factory=set)  # documents on which offered questions may be based
    answered_words: set[str] = field(default_factory=set)  # words of the answers before the current message
    answers: int = 0  # number of these answers

    def add_answer(self, message: Message) -> None:
        """Record an answer's sources."""
        open_sources = self.sources.get(message.pk, ())
        closed_sources = self.closed_sources.get(message.pk, ())
        if _is_of_unknown_origin(message, self.answers, self.answered_words):
            self.doubtful = self.unknown = True
        # Sources that the model was given or that the answer cites may have been deleted, or be closed to the
        # reader.
        used = {*message.citations, *message.labels}
        readable = {source.label for source in open_sources}
        known = readable | {source.label for source in closed_sources}
        if len(open_sources) < len(message.labels) or not readable >= used:
            self.doubtful = True
            if len(open_sources) + len(closed_sources) < len(message.labels) or not known >= used:
                self.unknown = True
        for source in closed_sources:
            self.closed_words |= _words(source.content, source.title, source.heading, source.label)
            self.closed_documents.add(source.document_id)

    def may_get(self, message: Message) -> bool:
        """Whether a verified answer is for everybody, or for a group of the reader.

        An answer that was stored by a version that did not record groups may have been for other groups.
        """
        if not message.verified:
            return True
        groups = message.verified.get("groups")
        return groups == [] or not self.groups.isdisjoint(groups or ())

    def is_open(self, text: str, sources: Sequence[Source]) -> bool:
        """Whether a statement is free of words that could come from a closed source.

        Verification allows a statement to have words that its source lacks.
        """
        words = _words(text) - self.shown_words
        for source in sources:
            words -= _words(source.content, source.title, source.heading, source.label)
        return not (words if self.unknown else words & self.closed_words)

    def show(self, message: Message) -> SharedMessage:
        """The message as this reader may see it. Call this for each message, in order."""
        if message.role == Message.Role.USER:
            return self._question(message)
        shown = self._answer(message)
        self.answers += 1
        self.answered_words |= _words(message.content)
        return shown

    def _answer(self, message: Message) -> SharedMessage:
        sources = self.sources.get(message.pk, ())
        if message.state not in Message.UNFINISHED and not message.verified:
            if is_phrase(message.content):
                return self._whole(message, sources)
            if is_quoted(message):
                return self._quoted(message, sources)
        self.add_answer(message)
        if message.state in Message.UNFINISHED:
            return SharedMessage(_bare(message, ""), closed=True)
        if not self.may_get(message):
            self.doubtful = self.unknown = True  # later answers may repeat its words, which are in no source
            self._offer(message)
            bare = _bare(message, "")
            bare.verified, bare.citations, bare.labels = None, [], []
            return SharedMessage(bare, closed=True)
        if not self.doubtful:
            return self._whole(message, sources)
        self._offer(message)
        shortened, kept = self._supported(message.content, message, sources)
        total = max(statements_of(message), kept)
        return self._partly(message, sources, shortened, kept, total)

    def _question(self, message: Message) -> SharedMessage:
        text = normal(message.content)
        closed = text in self.offered or text in self.closed_questions
        if not closed:
            self.shown_words |= _words(message.content)
            return SharedMessage(_bare(message, message.content))
        documents = self.closed_questions.get(text, frozenset(self.offering))
        return SharedMessage(_bare(message, ""), closed=True, closed_documents=documents)

    def _offer(self, message: Message) -> None:
        """Record suggested questions that may be based on closed sources of this answer or earlier ones."""
        self.offered |= {normal(each) for each in message.followups if isinstance(each, str)}
        self.offering |= self.closed_documents
        self.offering |= {source.document_id for source in self.closed_sources.get(message.pk, ())}

    def _whole(self, message: Message, sources: Sequence[Source]) -> SharedMessage:
        if self.doubtful or len(sources) < len(message.labels):
            self._offer(message)
        whole = _bare(message, message.content)
        whole.verification, whole.grade = message.verification, message.grade
        whole.labels = [source.label for source in sources]
        return SharedMessage(whole, sources, statements=statements_of(message))

    def _quoted(self, message: Message, sources: Sequence[Source]) -> SharedMessage:
        """An answer made of quotations.

        A quotation that the reader may open is shown with its lead-in; of any other, only the statements that
        open sources support. Sources that the answer does not cite are not part of its text.
        """
        cites_closed = not {source.label for source in sources}.issuperset(message.citations)
        doubtful = self.doubtful or cites_closed or len(sources) < len(message.labels)
        parts = quoted_parts(message.content, {*message.labels, *message.citations})
        closed = [part for part in parts if not _is_open_part(part, message, sources)]
        if not doubtful or not closed:
            return self._whole(message, sources)
        self.add_answer(message)
        self.doubtful = True
        # The answer may continue one that a model wrote; the origin of that text is then unknown.
        open_labels = {source.label for source in sources}
        self.unknown |= any(part.labels <= open_labels for part in closed)
        self._offer(message)
        pieces: list[str] = []
        kept = 0
        for part in parts:
            if part not in closed:
                pieces.append(part.text)
                kept += part.statements
                continue
            piece, number = self._supported(part.text, message, sources)
            kept += min(number, part.statements)
            if piece or pieces[-1:] != [LEFT_OUT]:
                pieces.append(piece or LEFT_OUT)
        total = sum(part.statements for part in parts)
        shown = self._partly(message, sources, "\n\n".join(pieces), kept, total)
        # Parts of an answer made of quotations are based only on what they cite, not on the sources of
        # earlier answers.
        labels = {label for part in closed for label in part.labels}
        cited = [each for each in self.closed_sources.get(message.pk, ()) if each.label in labels]
        shown.closed_documents = frozenset(each.document_id for each in cited) or shown.closed_documents
        return shown

    def _supported(self, text: str, message: Message, sources: Sequence[Source]) -> tuple[str, int]:
        """The text of the statements that these sources alone support, and the number of these statements."""
        open_labels = {source.label for source in sources}
        text = without(text, {*message.citations, *message.labels} - open_labels)
        kept = [
            statement
            for statement in verify_or_log(text, sources, message.run_id) or ()
            if statement.verdict in FOUND
            and self.is_open(without(text[statement.start : statement.end], open_labels), sources)
        ]
        return joined(text, kept), len(kept)

    def _partly(
        self, message: Message, sources: Sequence[Source], shortened: str, kept: int, total: int
    ) -> SharedMessage:
        """The answer with only the text `shortened`, which contains `kept` of its `total` statements."""
        open_labels = {source.label for source in sources}
        shown = _bare(message, shortened if kept else "")
        shown.verification = to_rows(verify_or_log(shown.content, sources, message.run_id) or ())
        numbers = {label: number for number, label in enumerate(message.citations, start=1)}
        shown.citations = [
            label if label in open_labels else CLOSED.format(numbers[label]) for label in message.citations
        ]
        shown.labels = [source.label for source in sources]
        shown.verified = None  # the person who verified the answer has not verified this part by itself
        left_out = total - kept
        if not left_out and LEFT_OUT in shortened:
            left_out = 1  # a heading or code was left out
        return SharedMessage(
            shown,
            sources if kept else (),
            left_out=left_out,
            closed=bool(message.content.strip()) and not kept,
            statements=kept + left_out,
            closed_documents=frozenset(self.closed_documents),
        )


def _is_open_part(part: QuotedPart, message: Message, sources: Sequence[Source]) -> bool:
    """Whether the reader may open all cited passages, and these contain all words of the text."""
    if part.is_phrase:
        return True
    cited = [source for source in sources if source.label in part.labels]
    if not cited or len(cited) < sum(label in part.labels for label in message.labels):
        return False
    known = _words(*(text for source in cited for text in (source.content, source.title, source.heading)))
    return (
        part.labels <= {source.label for source in cited}
        and _words(without(ROWS_SHOWN.sub("", part.text), part.labels)) <= known
    )


OpenTo = Callable[[Document], bool]


def shared_messages(principal: Principal, share: Share, is_open: OpenTo | None = None) -> list[SharedMessage]:
    """The messages that a share shows, in order, as `principal` may see them now.

    With `is_open`, they are shown as to a person in no group who may open only documents that `principal` may
    open and for which `is_open` is true.
    """
    path = Branches(share.conversation_id).path_to(share.up_to)
    rows = share.conversation.messages.filter(position__in=path)
    messages = list(rows.defer("search").order_by("position"))
    questions = [row.content for row in messages if row.role == Message.Role.USER]
    open_sources = _readable(principal, messages, is_open)
    with reading_everything():
        # The other sources, which the reader may not open, are used only for comparison and never shown.
        known = [source.pk for sources in open_sources.values() for source in sources]
        # The default order would join the messages, and PostgreSQL may then compare every pair of rows.
        others = Source.objects.filter(message__in=[row.pk for row in messages]).order_by()
        others = others.exclude(pk__in=known)
        closed_sources: dict[UUID, list[Source]] = {}
        for source in others:
            closed_sources.setdefault(source.message_id, []).append(source)
    groups = User.groups.through.objects.filter(user=principal.user_id).values_list("group", flat=True)
    made_of_closed = closed_questions(principal, questions, is_open)
    reader = _Reader(open_sources, closed_sources, made_of_closed, frozenset(() if is_open else groups))
    shown = [reader.show(message) for message in messages]
    if share.answer_id is None:
        return shown
    place = next(place for place, row in enumerate(messages) if row.pk == share.answer_id)
    asked = [each for each in shown[:place] if each.message.role == Message.Role.USER]
    return [*asked[-1:], shown[place]]


def _is_of_unknown_origin(message: Message, answers: int, answered_words: Set[str]) -> bool:
    """Whether a program imported the text, or sent earlier messages that the text may repeat.

    The site gives the model the earlier answers, whose number is `answers`, and whose words are
    `answered_words`. If the model was given more answers or other words, a program sent its own messages
    instead of the stored ones.
    """
    if message.imported or (message.client_id is not None and message.run_id is None):
        return True
    given = [
        item.removeprefix(GIVEN_AS_ANSWER)
        for thought in message.thoughts
        if isinstance(thought, dict) and isinstance(thought.get("description"), list)
        for item in thought["description"]
        if isinstance(item, str) and item.startswith(GIVEN_AS_ANSWER)
    ]
    return len(given) > answers or not all(_words(_content(item)) <= answered_words for item in given)


def _content(representation: str) -> str:
    """The text of a message in the prompt's step, without its role; unchanged if it cannot be parsed."""
    try:
        return str(ast.literal_eval("{" + representation.removeprefix(", "))["content"])
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return representation


def joined(text: str, kept: Iterable[Statement]) -> str:
    """These statements with their citations, and a mark wherever other text was removed."""
    parts: list[str] = []
    end = 0
    for statement in kept:
        citations = [proof for proof in statement.proofs if proof.verdict in FOUND]
        own = [proof.end for proof in citations if proof.start >= statement.start]
        start, stop = statement.start, max([statement.end, *own])
        if start < end:
            continue
        line = text.rfind("\n", 0, start) + 1
        gap = text[end:start]
        marker = text[line:start] if _MARKER.fullmatch(text, line, start) else ""
        piece = _balanced(text[start:stop])
        if text[line:start].lstrip().startswith("|"):  # a table row, without its header
            marker, piece = "- ", " · ".join(filter(None, map(str.strip, piece.split("|"))))
        inherited = [f" [{proof.label}]" for proof in citations if proof.start < statement.start]
        if _WORD.search(gap):
            parts.append(f"\n\n{LEFT_OUT}\n\n" if "\n" in gap else f" {LEFT_OUT} ")
        elif parts:
            parts.append("\n\n" if re.search(r"\n\s*\n", gap) else "\n" if "\n" in gap else " ")
        after = _AFTER.match(text, stop)
        end = after.end() if after else stop
        begins_line = not parts or parts[-1].endswith("\n")
        parts.append((marker if begins_line else "") + piece + "".join(dict.fromkeys(inherited)))
        parts.append(_balanced(text[stop:end]))
    if parts and _WORD.search(text, end):
        parts.append(f"\n\n{LEFT_OUT}" if "\n" in text[end:].rstrip() else f" {LEFT_OUT}")
    return "".join(parts).strip()


def _balanced(piece: str) -> str:
    """The text without unbalanced Markdown marks of emphasis or code."""
    for mark in ("**", "__", "`"):
        if piece.count(mark) % 2:
            piece = piece.replace(mark, "")
    return piece


def _bare(message: Message, content: str) -> Message:
    """A copy with this text, without values that are private to the person who asked."""
    shown = copy(message)
    shown.content = content
    shown.verification, shown.grade = None, ""
    shown.client_members = None
    shown.thoughts, shown.followups, shown.usage = [], [], {}
    shown.searched_count = None
    shown.request_id = ""
    return shown


def _readable(
    principal: Principal, messages: Sequence[Message], is_open: OpenTo | None
) -> dict[UUID, list[Source]]:
    """{answer: its sources that the reader may open in the current version of their documents}

    If a newer version lacks a passage, the passage may have been removed to hide it from this reader.
    """
    rows = Source.objects.visible_to(principal).filter(message__in=[row.pk for row in messages])
    sources = list(rows.select_related("document__owner").order_by("message_id", "rank"))
    if is_open is not None:
        known = {row.document_id: row.document for row in sources}
        opened = {key for key, document in known.items() if is_open(document)}
        sources = [row for row in sources if row.document_id in opened]
    older = [row for row in sources if row.document_version != row.document.version]
    same: set[tuple[int, str, str]] = set()
    if older:
        there = Passage.objects.filter(
            document__in={row.document_id for row in older}, content__in={row.content for row in older}
        )
        same = set(there.values_list("document_id", "heading", "content"))
    found: dict[UUID, list[Source]] = {}
    for row in sources:
        if (
            row.document_version == row.document.version
            or (row.document_id, row.heading, row.content) in same
        ):
            row.title = str(row.document)
            found.setdefault(row.message_id, []).append(row)
    return found


def closed_questions(
    principal: Principal, questions: Sequence[str], is_open: OpenTo | None
) -> dict[str, frozenset[int]]:
    """The questions that were generated only from documents that the reader may not read.

    Returns the ids of these documents by the question in the form of `normal`.
    """
    if not questions:
        return {}
    with reading_everything():
        made = Document.objects.filter(questions__has_any_keys=list(set(questions)))
        rows = list(made.values_list("pk", "questions"))
    visible = Document.objects.visible_to(principal).filter(pk__in=[pk for pk, _ in rows])
    readable = {each.pk for each in visible if is_open is None or is_open(each)}
    known = {each for pk, made_of_it in rows if pk in readable for each in made_of_it}
    closed: dict[str, frozenset[int]] = {}
    for question in questions:
        documents = frozenset(pk for pk, made_of_it in rows if question in made_of_it)
        if documents and question not in known:
            closed[normal(question)] = documents | closed.get(normal(question), frozenset())
    return closed


def _words(*texts: str) -> set[str]:
    """Stems of the words of texts, to match inflected forms."""
    words = (word for text in texts for word in _WORDS.findall(text.casefold()))
    return {word[:STEM] for word in words if word not in STOP_WORDS}


def normal(question: str) -> str:
    return " ".join(question.split()).casefold()
