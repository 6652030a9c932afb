"""What a verified answer rests on, why it may be silent, and which questions get it."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from chat.verification.same_question import asks_the_same
from chatsite.accounts.models import User
from history.models import Message
from ingestion.models import Document, Passage
from ingestion.search.tokens import plain_words

from .models import VerifiedAnswer
from .unanswered import MIN_PEOPLE

REMIND = timedelta(days=14)  # before its last day, unless another day is set
MAX_RECORDED = 100_000  # newest questions against which a pattern is tested
MAX_TEXTS = 5_000  # distinct texts of these; comparing one takes a quarter of a millisecond
RECORDED_FOR = timedelta(days=30)


def passage_with(document: Document, words: str) -> Passage | None:
    """The first passage of the document that contains these words, regardless of case and punctuation."""
    wanted = f" {plain_words(words)} "
    if not wanted.strip():
        return None
    for passage in Passage.objects.filter(document=document).order_by("position").iterator():
        if wanted in f" {plain_words(passage.content)} ":
            return passage
    return None


def digest_of(passage: Passage) -> str:
    """The same digest as in sql/verified_answers.sql."""
    return hashlib.md5(passage.content.encode(), usedforsecurity=False).hexdigest()


def reasons_for_silence(answer: VerifiedAnswer, today: date) -> Iterator[str]:
    """Why no reader gets the answer at all, apart from individual rights."""
    if not answer.active:
        yield gettext("it is a draft")
    if answer.owner_id is None:
        yield gettext("it has no owner")
    if answer.valid_until < today:
        yield gettext("it was valid until %(day)s") % {"day": date_format(answer.valid_until)}
    if answer.restricted and not answer.groups.exists():
        yield gettext("its groups were deleted")
    citations = list(answer.citations.all())
    if len(citations) < answer.citation_count or not citations:
        yield gettext("a source was deleted")
    for citation in citations:
        passage = Passage.objects.filter(document=citation.document_id, position=citation.position).first()
        document = citation.document
        if document.valid_until and document.is_expired:
            yield gettext("“%(document)s” was valid until %(day)s") % {
                "document": document,
                "day": date_format(document.valid_until),
            }
        is_same = passage is not None and digest_of(passage) == citation.digest
        if document.sha256 != citation.sha256 or not is_same:
            yield gettext("“%(document)s” was changed: check the text, and save it to confirm it") % {
                "document": document
            }


def is_due(answer: VerifiedAnswer, today: date) -> bool:
    return (answer.remind_on or answer.valid_until - REMIND) <= today


def first_match(asked: str, patterns: list[str]) -> str:
    """The pattern of the answer that a question matches; empty if none."""
    return next((pattern for pattern in patterns if asks_the_same(asked, pattern)), "")


def answer_to(wordings: Sequence[str], answers: Iterable[VerifiedAnswer]) -> VerifiedAnswer | None:
    """The first of the answers that one of these questions gets."""
    for answer in answers:
        patterns = [question.text for question in answer.questions.all()]
        if any(first_match(wording, patterns) for wording in wordings):
            return answer
    return None


def recorded_matches(patterns: list[str]) -> dict[str, Any]:
    """How many recorded questions of how many people would have got the answer; words that several used.

    A pattern that matches fewer people counts as none: otherwise adding one would reveal whether it was
    asked. Guests and programs are no people: anybody can be several of them. `since` is the time of the
    oldest tested question if there are more.
    """
    since = timezone.now() - RECORDED_FOR
    asked = Message.objects.filter(
        Q(conversation__listed=True), role=Message.Role.USER, created_at__gte=since, imported=False,
        conversation__deleted_at=None,
    ).order_by("-created_at")  # fmt: skip
    answered: list[tuple[str, int, list[str]]] = []
    asked_by: dict[str, set[int]] = {}  # accounts by pattern
    known: dict[str, list[str]] = {}  # the patterns that each text matches
    oldest, rows = None, 0
    questions = asked.values_list("content", "conversation__owner_id", "created_at")[: MAX_RECORDED + 1]
    for text, person, at in questions.iterator(chunk_size=2_000):
        if rows == MAX_RECORDED or (len(known) == MAX_TEXTS and text not in known):
            break
        if text not in known:
            known[text] = [pattern for pattern in patterns if first_match(text, [pattern])]
        oldest, rows = at, rows + 1
        if matching := known[text]:
            answered.append((plain_words(text), person, matching))
            for pattern in matching:
                asked_by.setdefault(pattern, set()).add(person)
    else:
        oldest = None
    accounts = {person for _, person, _ in answered}
    wanted = User.objects.filter(pk__in=accounts, guest_until=None, service_for="")
    people = set(wanted.values_list("pk", flat=True))
    usual = {pattern for pattern, askers in asked_by.items() if len(askers & people) >= MIN_PEOPLE}
    counted = [(words, person) for words, person, matching in answered if usual.intersection(matching)]
    askers: dict[str, set[int]] = {}
    for words, person in counted:
        askers.setdefault(words, set()).add(person)
    shown = sorted(words for words, persons in askers.items() if len(persons & people) >= MIN_PEOPLE)
    return {
        "count": len(counted),
        "people": len(people.intersection(person for _, person in counted)),
        "shown": shown,
        "since": oldest,
    }
