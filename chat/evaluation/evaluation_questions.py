"""Evaluation questions: import and export as CSV, and proposals from existing answers."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext

from chat.models import VerifiedAnswer
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.http.csv_cells import BadFile, bad_line, csv_of, rows_of, text_of
from history.models import Feedback, Message
from ingestion.access.models import AccessEntry
from ingestion.evaluation.judging import CitationTarget, Resolver, resolver_for
from ingestion.models import Document

from .models import ProofQuestion
from .running import MAX_QUESTIONS

COLUMNS = ("question", "document", "place")
NOTHING = "nothing"  # written instead of a document if the site should find nothing
MAX_PROPOSED = 50
MAX_LOOKED_AT = 200  # answers rated good that are considered, most recently rated first
Origin = ProofQuestion.Origin


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed question; `key` identifies it in a form."""

    key: str
    text: str
    document: Document
    origin: Origin
    asker_id: int | None = None  # the author of the question, if it comes from an answer rated good


def write_csv(user: User) -> str:
    """All questions that `user` may see, in the format of read_csv.

    Documents are given by name if that is unambiguous, otherwise by id. Questions whose document was deleted
    are left out, because they cannot be imported.
    """
    resolve = functools.cache(resolver_for(Principal(user.pk, "session"), user.get_username()))
    rows = [COLUMNS]
    complete = ProofQuestion.objects.managed_by(user.pk).exclude(document=None, wants_nothing=False)
    for each in complete.select_related("document").order_by("pk"):
        if document := each.document:
            is_clear = (
                resolve(document.name) == CitationTarget(document.pk) and document.name.lower() != NOTHING
            )
            named = document.name if is_clear else str(document.public_id)
        else:
            named = NOTHING
        rows.append((each.text, named, each.place))
    return csv_of(rows)


def read_csv(user: User, content: bytes) -> int:
    """Import the questions of a file; returns the number of new ones.

    Raises BadFile without importing any.
    """
    found = list(_questions(user, text_of(content)))
    with transaction.atomic():
        known = {_key(each) for each in ProofQuestion.objects.managed_by(user.pk)}
        new = list({_key(each): each for each in found if _key(each) not in known}.values())
        free = MAX_QUESTIONS - ProofQuestion.objects.count()
        if len(new) > free:
            raise BadFile(
                gettext("The file has new questions: %(count)s; there is room for %(free)s.")
                % {"count": len(new), "free": max(free, 0)}
            )
        ProofQuestion.objects.bulk_create(new)
    return len(new)


def proposals(user: User) -> list[Proposal]:
    """New questions from verified answers, and from answers that askers rated good and shared."""
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
    """Store new questions, up to the limit."""
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
    # Detect the separator only in a header, because questions may contain semicolons.
    first = text.partition("\n")[0].replace('"', "").strip().lower()
    headers = {each.join(COLUMNS[:count]): each for each in ",;\t" for count in (2, 3)}
    delimiter = headers.get(first, ",")
    resolve = resolver_for(Principal(user.pk, "session"), user.get_username())
    count = 0
    for line, cells in rows_of(text, delimiter):
        is_header = line == 1 and [cell.lower() for cell in cells] == list(COLUMNS)[: len(cells)]
        if any(cells) and not is_header:
            count += 1
            if count > MAX_QUESTIONS:
                words = gettext("a file holds at most %(most)s questions.") % {"most": MAX_QUESTIONS}
                raise bad_line(line, words)
            yield _question(user, cells, line, resolve)


def _question(user: User, cells: list[str], line: int, resolve: Resolver) -> ProofQuestion:
    if not 2 <= len(cells) <= len(COLUMNS):
        raise bad_line(
            line,
            gettext("its number of columns is %(count)s instead of 2 or 3: %(names)s.")
            % {"count": len(cells), "names": ", ".join(COLUMNS)},
        )
    text, document, place = [*cells, ""][:3]
    if not text or len(text) > ProofQuestion.MAX_CHARACTERS:
        raise bad_line(
            line,
            gettext("a question has 1 to %(most)s characters.") % {"most": ProofQuestion.MAX_CHARACTERS},
        )
    if any("\0" in cell for cell in cells):
        raise bad_line(line, gettext("it contains a NUL character."))
    question = ProofQuestion(text=text, added_by=user, origin=Origin.FILE)
    if document.lower() == NOTHING:
        if place:
            raise bad_line(line, gettext("“nothing” cannot have a place."))
        question.wants_nothing = True
        return question
    if not document:
        raise bad_line(
            line,
            gettext("name the document that should be found, or write “%(nothing)s”.") % {"nothing": NOTHING},
        )
    name, _, anchor = document.partition("#")
    found = _by_public_id(user, name) or resolve(name)
    if isinstance(found, str):
        words = gettext("you can read no document, or several documents, with the name “%(name)s”.")
        raise bad_line(line, words % {"name": name[:100]})
    question.document_id = found if isinstance(found, int) else found.document_id
    question.place = place or anchor
    if len(question.place) > ProofQuestion.MAX_PLACE:
        raise bad_line(line, gettext("the place is too long."))
    return question


def _by_public_id(user: User, name: str) -> int | None:
    """The primary key of the document with this public id, if `user` may read it."""
    try:
        public_id = UUID(name)
    except ValueError:
        return None
    readable = Document.objects.visible_to(Principal(user.pk, "session"))
    return readable.with_public_id(public_id).values_list("pk", flat=True).first()


def _of_feedback(user: User) -> Iterator[Proposal]:
    """Propose only first questions of conversations, because later ones may refer to earlier messages."""
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
        # Exclude answers that cite a document that `user` may not read.
        if asked and cited and all(document and document.pk in readable for document in cited):
            text = " ".join(asked.content.split())
            if cited[0] and 0 < len(text) <= ProofQuestion.MAX_CHARACTERS:
                yield Proposal(f"f{answer.pk}", text, cited[0], Origin.FEEDBACK, answer.conversation.owner_id)


def _key(question: ProofQuestion) -> tuple[str, int | None, str]:
    return question.text, question.document_id, question.place
