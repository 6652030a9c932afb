"""Proof questions: import and export as CSV, and proposals from existing answers."""

import csv
import functools
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext

from chat.models import VerifiedAnswer
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.http.csv_cells import decoded, plain, unplain
from history.models import Feedback, Message
from ingestion.access.models import AccessEntry
from ingestion.evaluation.judging import CitationTarget, Resolver, resolver_for
from ingestion.models import Document

from .models import ProofQuestion
from .running import MAX_QUESTIONS

COLUMNS = ("question", "document", "place")
NOTHING = "nothing"  # replaces a document
MAX_FILE_BYTES = 1_000_000
MAX_PROPOSED = 50
MAX_LOOKED_AT = 200  # newest answers marked as good
Origin = ProofQuestion.Origin


class BadFile(Exception):
    """Why a line of a file is invalid. Nothing was imported."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed question; `key` identifies it in a form."""

    key: str
    text: str
    document: Document
    origin: Origin
    asker_id: int | None = None  # the person who wrote it


def write_csv(user: User) -> str:
    """All questions that `user` may see, in the format of read_csv; documents by name, or else by id."""
    resolve = functools.cache(resolver_for(Principal(user.pk, "session"), user.get_username()))
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    for each in ProofQuestion.objects.managed_by(user.pk).select_related("document").order_by("pk"):
        named = NOTHING if each.wants_nothing else ""
        if document := each.document:
            is_clear = (
                resolve(document.name) == CitationTarget(document.pk) and document.name.lower() != NOTHING
            )
            named = document.name if is_clear else str(document.public_id)
        writer.writerow([plain(cell) for cell in (each.text, named, each.place)])
    return "\ufeff" + written.getvalue()  # the byte order mark by which Excel recognises UTF-8


def read_csv(user: User, content: bytes) -> int:
    """Import the questions of a file; returns the number of new ones. Raises BadFile without importing
    any."""
    if len(content) > MAX_FILE_BYTES:
        raise BadFile(
            gettext("The file has more than %(limit)s.") % {"limit": f"{MAX_FILE_BYTES // 1_000_000} MB"}
        )
    try:
        text = decoded(content)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadFile(_at(line, gettext("this is not UTF-8. Save the file as “CSV UTF-8”."))) from None
    found = list(_questions(user, text))
    with transaction.atomic():
        known = {_key(each) for each in ProofQuestion.objects.managed_by(user.pk)}
        new = list({_key(each): each for each in found if _key(each) not in known}.values())
        free = MAX_QUESTIONS - ProofQuestion.objects.count()
        if len(new) > free:
            raise BadFile(
                gettext("%(count)s questions are new, and there is room for %(free)s.")
                % {"count": len(new), "free": max(free, 0)}
            )
        ProofQuestion.objects.bulk_create(new)
    return len(new)


def proposals(user: User) -> list[Proposal]:
    """New questions from verified answers, and from answers marked as good whose askers agreed."""
    known = set(ProofQuestion.objects.managed_by(user.pk).values_list("text", "document"))
    answers = VerifiedAnswer.objects.managed_by(user.pk).filter(active=True)
    verified = [
        Proposal(f"v{question.pk}", question.text, cited.document, Origin.VERIFIED)
        for answer in answers.prefetch_related("questions", "citations__document")
        for cited in answer.citations.all()[:1]
        for question in answer.questions.all()
    ]
    found: list[Proposal] = []
    for proposal in (*verified, *_of_feedback(user)):
        if (proposal.text, proposal.document.pk) not in known:
            known.add((proposal.text, proposal.document.pk))
            found.append(proposal)
    return found[:MAX_PROPOSED]


def add(user: User, chosen: Sequence[Proposal]) -> list[ProofQuestion]:
    """Store them, up to the limit."""
    free = max(MAX_QUESTIONS - ProofQuestion.objects.count(), 0)
    return ProofQuestion.objects.bulk_create(
        ProofQuestion(
            text=each.text,
            document=each.document,
            added_by=user,
            asker_id=each.asker_id,
            origin=each.origin,
        )
        for each in chosen[:free]
    )


def _questions(user: User, text: str) -> Iterator[ProofQuestion]:
    # Only a header tells the separator: questions may contain semicolons.
    first = text.partition("\n")[0].replace('"', "").strip().lower()
    headers = {each.join(COLUMNS[:count]): each for each in ",;\t" for count in (2, 3)}
    delimiter = headers.get(first, ",")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    resolve = resolver_for(Principal(user.pk, "session"), user.get_username())
    line = 1
    count = 0
    try:
        for row in reader:
            cells = [unplain(cell.strip()) for cell in row]
            is_header = line == 1 and [cell.lower() for cell in cells] == list(COLUMNS)[: len(cells)]
            if any(cells) and not is_header:
                count += 1
                if count > MAX_QUESTIONS:
                    words = gettext("a file holds at most %(most)s questions.") % {"most": MAX_QUESTIONS}
                    raise BadFile(_at(line, words))
                yield _question(user, cells, line, resolve)
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadFile(_at(line, f"{error}.")) from None


def _question(user: User, cells: list[str], line: int, resolve: Resolver) -> ProofQuestion:
    if not 2 <= len(cells) <= len(COLUMNS):
        raise BadFile(
            _at(
                line,
                gettext("it has %(count)s columns and not 2 or 3: %(names)s.")
                % {"count": len(cells), "names": ", ".join(COLUMNS)},
            )
        )
    text, document, place = [*cells, ""][:3]
    if not text or len(text) > ProofQuestion.MAX_CHARACTERS:
        raise BadFile(
            _at(
                line,
                gettext("a question has 1 to %(most)s characters.") % {"most": ProofQuestion.MAX_CHARACTERS},
            )
        )
    if any("\0" in cell for cell in cells):
        raise BadFile(_at(line, gettext("it holds a NUL character.")))
    question = ProofQuestion(text=text, added_by=user, origin=Origin.FILE)
    if document.lower() == NOTHING:
        if place:
            raise BadFile(_at(line, gettext("nothing has no place.")))
        question.wants_nothing = True
        return question
    if not document:
        raise BadFile(
            _at(
                line,
                gettext("name the document that should be found, or write “%(nothing)s”.")
                % {"nothing": NOTHING},
            )
        )
    name, _, anchor = document.partition("#")
    found = _by_public_id(user, name) or resolve(name)
    if isinstance(found, str):
        words = gettext("you can read no document, or several, of the name “%(name)s”.")
        raise BadFile(_at(line, words % {"name": name[:100]}))
    question.document_id = found if isinstance(found, int) else found.document_id
    question.place = place or anchor
    if len(question.place) > ProofQuestion.MAX_PLACE:
        raise BadFile(_at(line, gettext("the place is too long.")))
    return question


def _at(line: int, words: str) -> str:
    return gettext("Line %(line)s: %(words)s") % {"line": line, "words": words}


def _by_public_id(user: User, name: str) -> int | None:
    """The primary key of the document with this public id."""
    try:
        public_id = UUID(name)
    except ValueError:
        return None
    readable = Document.objects.visible_to(Principal(user.pk, "session"))
    return readable.with_public_id(public_id).values_list("pk", flat=True).first()


def _of_feedback(user: User) -> Iterator[Proposal]:
    """Only first questions of conversations: later ones may refer to earlier messages."""
    agreed = Feedback.objects.filter(
        rating=Feedback.Rating.GOOD, shared=True, message__position=1,
        message__conversation__listed=True, message__conversation__deleted_at=None,
    )  # fmt: skip
    readable = set(
        Document.objects.filter(access_list__in=AccessEntry.lists_of(user.pk)).values_list("pk", flat=True)
    )
    for feedback in agreed.select_related("message__conversation")[:MAX_LOOKED_AT]:
        answer = feedback.message
        sources = {source.label: source.document for source in answer.sources.select_related("document")}
        cited = [sources.get(label) for label in answer.citations]
        asked = Message.objects.filter(
            conversation=answer.conversation_id, position=0, role=Message.Role.USER, imported=False
        ).first()
        # Excludes answers with sources that the manager may not read.
        if asked and cited and all(document and document.pk in readable for document in cited):
            text = " ".join(asked.content.split())
            if cited[0] and 0 < len(text) <= ProofQuestion.MAX_CHARACTERS:
                yield Proposal(f"f{answer.pk}", text, cited[0], Origin.FEEDBACK, answer.conversation.owner_id)


def _key(question: ProofQuestion) -> tuple[str, int | None, str]:
    return question.text, question.document_id, question.place
