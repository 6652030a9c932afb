"""Verified answers: sources, questions, reasons to withhold an answer, and its reach."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from chat.verification.same_question import asks_the_same, beginnings, content_words
from chatsite.accounts.models import User
from chatsite.db.sql_files import Rows, rows
from ingestion.embedding.selection import embedder, runs_here
from ingestion.models import Document, Passage
from ingestion.search.tokens import plain_words

from .models import VerifiedAnswer, VerifiedQuestion
from .unanswered.question_likeness import is_small_talk
from .unanswered.unanswered_list import MIN_PEOPLE

BACKEND = "django.contrib.auth.backends.ModelBackend"  # the backend that knows permissions
SQL = Path(__file__).parent / "sql"
REMIND = timedelta(days=14)  # without `remind_on`, an answer is due for review this long before its last day
MAX_TEXTS = 5_000  # newest distinct questions that are compared, in a quarter of a millisecond each
RECORDED_FOR = timedelta(days=30)
MIN_COSINE = 0.5  # questions with at least this cosine may ask the same thing
# Share of the shorter question's words that the other must have; used if the embedding model is on a server.
MIN_SHARED = 0.5
MAX_NEAR = 8  # number of wordings that are offered
MAX_COMPARED = 30  # nearest wordings whose conversations are checked
MAX_CONVERSATIONS = 500  # at most this many conversations with the same wording are considered


def passage_with(document: Document, words: str) -> Passage | None:
    """The document's first passage that contains this text, ignoring case and punctuation."""
    wanted = f" {plain_words(words)} "
    if not wanted.strip():
        return None
    for passage in Passage.objects.filter(document=document).order_by("position").iterator():
        if wanted in f" {plain_words(passage.content)} ":
            return passage
    return None


def digest_of(passage: Passage) -> str:
    """The digest of a passage's content, as in engine/sql/verified_answers.sql."""
    return hashlib.md5(passage.content.encode(), usedforsecurity=False).hexdigest()


def reasons_withheld(answer: VerifiedAnswer, today: date) -> Iterator[str]:
    """Why nobody gets the answer, regardless of individual rights."""
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


@dataclass(frozen=True, slots=True)
class Reach:
    """How many people can get an answer, according to its documents and groups."""

    people: int
    others: int  # people who do not edit verified answers


def reach_of(answers: Iterable[VerifiedAnswer]) -> dict[int, Reach]:
    """The reach of each answer; answers that everyone who signs in can get are left out."""
    editors = User.objects.with_perm("chat.change_verifiedanswer", backend=BACKEND)
    wanted = {
        "ids": [answer.pk for answer in answers],
        "editors": list(editors.values_list("pk", flat=True)),
    }
    found = rows("verified_readers", wanted, SQL)
    return {row["answer_id"]: Reach(row["people"], row["others"]) for row in found}


def is_due(answer: VerifiedAnswer, today: date) -> bool:
    return (answer.remind_on or answer.valid_until - REMIND) <= today


def first_match(asked: str, patterns: list[str]) -> str:
    """The first of `patterns`, the questions of an answer, that `asked` matches; empty if none."""
    return next((pattern for pattern in patterns if asks_the_same(asked, pattern)), "")


def answer_to(wordings: Sequence[str], answers: Iterable[VerifiedAnswer]) -> VerifiedAnswer | None:
    """The first of these answers that one of `wordings` would get."""
    for answer in answers:
        patterns = [question.text for question in answer.questions.all()]
        if any(first_match(wording, patterns) for wording in wordings):
            return answer
    return None


def recorded_matches(patterns: list[str]) -> dict[str, Any]:
    """How many recorded questions, by how many people, would have received the answer.

    The result also has the wordings that at least MIN_PEOPLE people used. A pattern that matches questions of
    fewer people counts as unmatched: otherwise adding a pattern would reveal whether it was asked. Guests and
    programs do not count as people, because one person can be several of them. `since` is the time of the
    oldest tested question if not all were tested.
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
    asked_by: dict[str, set[int]] = {}  # the people who asked a question that matches the pattern
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


@dataclass(frozen=True, slots=True)
class NearWording:
    """A recorded question that is similar to an answer's questions but does not get the answer."""

    text: str
    people: int


def near_wordings(patterns: Sequence[str], reader_id: int) -> list[NearWording]:
    """Wordings that a manager (`reader_id`) may add to `patterns`, nearest first.

    At least MIN_PEOPLE people used each of them, in conversations that cite only what the manager may read.
    """
    wanted = {"since": timezone.now() - RECORDED_FOR, "query": None, "most": MAX_TEXTS}
    by_words: dict[str, Rows] = {}
    for row in rows("recorded_questions", wanted, SQL):
        by_words.setdefault(plain_words(row["content"]), []).append(row)
    usual = []
    for same in by_words.values():
        text = max(same, key=lambda row: int(row["times"]))["content"].strip()
        people = set().union(*(row["people"] for row in same))
        if (
            len(people) >= MIN_PEOPLE
            and len(text) <= VerifiedQuestion.MAX_CHARACTERS
            and not is_small_talk(text)
        ):
            usual.append((text, same))
    texts = [text for text, _ in usual]
    found: list[NearWording] = []
    for number in _nearest(list(patterns), texts):
        text, same = usual[number]
        if first_match(text, list(patterns)):
            continue
        conversations = [each for row in same for each in row["conversations"]][:MAX_CONVERSATIONS]
        opened = rows("open_conversations", {"ids": conversations, "user_id": reader_id}, SQL)
        people = {row["person"] for row in opened} - {None}
        if len(people) >= MIN_PEOPLE:
            found.append(NearWording(text, len(people)))
        if len(found) == MAX_NEAR:
            break
    return found


def _nearest(patterns: list[str], texts: list[str]) -> list[int]:
    """The indices of the texts that are similar to one of the patterns, nearest first."""
    if not patterns or not texts:
        return []
    if runs_here():
        model = embedder()
        nearness = (model.embed(texts) @ model.embed(patterns).T).max(axis=1).tolist()
        least = MIN_COSINE
    else:  # do not wait for an embedding model on a server
        nearness = [max(_shared(text, pattern) for pattern in patterns) for text in texts]
        least = MIN_SHARED
    near = [number for number, value in enumerate(nearness) if value >= least]
    return sorted(near, key=lambda number: -nearness[number])[:MAX_COMPARED]


def _shared(one: str, other: str) -> float:
    first, second = content_words(one), content_words(other)
    return len(first & second) / max(1, min(len(first), len(second)))
