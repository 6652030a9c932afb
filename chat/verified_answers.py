"""What a verified answer rests on, why it may be silent, and which questions get it."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from chat.verification.same_question import asks_the_same, beginnings
from chatsite.db.sql_files import rows
from ingestion.models import Document, Passage
from ingestion.search.tokens import plain_words

from .models import VerifiedAnswer
from .unanswered.unanswered_list import MIN_PEOPLE

SQL = Path(__file__).parent / "sql"
REMIND = timedelta(days=14)  # before its last day, unless another day is set
MAX_TEXTS = 5_000  # newest distinct questions that are compared; one takes a quarter of a millisecond
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
    queries = [beginnings(pattern) for pattern in patterns]
    wanted = {
        "since": timezone.now() - RECORDED_FOR,
        "query": " | ".join(f"({query})" for query in queries) if all(queries) else None,
        "most": MAX_TEXTS + 1,
    }
    asked = rows("recorded_questions", wanted, SQL)
    oldest = asked[MAX_TEXTS - 1]["last"] if len(asked) > MAX_TEXTS else None
    matches: list[tuple[dict[str, Any], list[str]]] = []
    asked_by: dict[str, set[int]] = {}  # people by pattern
    for row in asked[:MAX_TEXTS]:
        if matching := [pattern for pattern in patterns if first_match(row["content"], [pattern])]:
            matches.append((row, matching))
            for pattern in matching:
                asked_by.setdefault(pattern, set()).update(row["people"])
    usual = {pattern for pattern, people in asked_by.items() if len(people) >= MIN_PEOPLE}
    counted = [row for row, matching in matches if usual.intersection(matching)]
    askers: dict[str, set[int]] = {}
    for row in counted:
        askers.setdefault(plain_words(row["content"]), set()).update(row["people"])
    return {
        "count": sum(row["times"] for row in counted),
        "people": len(set().union(*askers.values())),
        "shown": sorted(words for words, people in askers.items() if len(people) >= MIN_PEOPLE),
        "since": oldest,
    }
