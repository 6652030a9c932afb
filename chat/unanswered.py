"""What was asked in vain, grouped by likeness, and what of it a content manager may see.

A wording is shown where at least three people used it or its asker agreed, and never where the conversation
rests on something that the manager may not read. Everything else is only counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path

from django.utils import timezone
from django.utils.crypto import salted_hmac

from chat.llm.base import NOTHING_FITS
from chat.llm.quoting import UNSURE
from chat.models import DismissedQuestion
from chat.verification.same_question import asks_the_same, content_words, read
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.search.tokens import plain_words

SQL = Path(__file__).parent / "sql"
LISTED_FOR = timedelta(days=30)
MAX_ASKED = 5_000  # newest questions that are grouped, and as many that may have been asked again
MIN_PEOPLE = 3  # who asked before anything is shown of it
LIKE = 0.6  # of the words of both, that questions of a group share
COMPARED = 100  # other wordings that a question is compared with
REASONS = {
    "refused": "nothing found",
    "unsure": "unsure",
    "bad": "marked bad",
    "again": "asked again",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was asked in vain."""

    text: str
    person: int
    at: datetime
    reasons: frozenset[str]  # of REASONS
    shared: bool  # who asked agreed that content managers read it
    closed: bool  # it may tell of what the manager may not read

    @property
    def digest(self) -> str:
        return digest_of(self.text)


@dataclass(slots=True)
class Group:
    """Questions that are alike."""

    asked: list[Asked] = field(default_factory=list)

    @property
    def times(self) -> int:
        return len(self.asked)

    @property
    def people(self) -> int:
        return len({each.person for each in self.asked})

    @property
    def last(self) -> datetime:
        return max(each.at for each in self.asked)

    @property
    def key(self) -> str:
        """Names the group in a form; a wording cannot be guessed from it."""
        return min(each.digest for each in self.asked)

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Words for each reason, and how often it was."""
        counted = Counter(reason for each in self.asked for reason in each.reasons)
        return [(words, counted[reason]) for reason, words in REASONS.items() if counted[reason]]

    @property
    def wordings(self) -> list[str]:
        """Those that may be shown, the most frequent first."""
        used: dict[str, list[Asked]] = {}
        for each in self.asked:
            if not each.closed:
                used.setdefault(plain_words(each.text), []).append(each)
        shown = [
            same
            for same in used.values()
            if any(each.shared for each in same) or len({each.person for each in same}) >= MIN_PEOPLE
        ]
        shown.sort(key=len, reverse=True)
        return [next((each for each in same if each.shared), same[0]).text for same in shown]

    @property
    def words(self) -> list[str]:
        """The content words that at least three people used, for a group without a wording to show."""
        return sorted(word for word, people in self._users.items() if len(people) >= MIN_PEOPLE)

    @property
    def usual_words(self) -> list[str]:
        """Those of them that at least half of the people used: what the group is about."""
        users, enough = self._users, max(MIN_PEOPLE, self.people / 2)
        return sorted(word for word, people in users.items() if len(people) >= enough)

    @property
    def _users(self) -> dict[str, set[int]]:
        """Who used each content word."""
        users: dict[str, set[int]] = {}
        for each in self.asked:
            if not each.closed:
                for word in content_words(each.text):
                    users.setdefault(word, set()).add(each.person)
        return users

    @property
    def is_shown(self) -> bool:
        return self.people >= MIN_PEOPLE or bool(self.wordings)


@dataclass(frozen=True)
class Unanswered:
    """All groups that may be shown, the most frequent first, and how many other questions there are.

    `since` is set where more were asked in vain than are grouped: the oldest of these.
    """

    groups: Sequence[Group]
    others: int
    since: datetime | None = None

    @cached_property
    def by_key(self) -> dict[str, Group]:
        return {group.key: group for group in self.groups}

    def group_of(self, key: str) -> Group | None:
        """The group that had this key: it has another one when new questions have joined it."""
        found = self.by_key.get(key)
        return found or next((g for g in self.groups if any(each.digest == key for each in g.asked)), None)


def unanswered(principal: Principal) -> Unanswered:
    """What was asked in vain, as far as `principal` may see it."""
    asked, since = _asked(principal)
    groups = grouped(_without_dismissed(asked))
    shown = sorted(
        (group for group in groups if group.is_shown),
        key=lambda group: (group.times, group.last),
        reverse=True,
    )
    return Unanswered(shown, sum(group.times for group in groups if not group.is_shown), since)


def digest_of(text: str) -> str:
    """Keyed, so that nobody learns by guessing whether a question was asked."""
    return salted_hmac("chat.unanswered", plain_words(text), algorithm="sha256").hexdigest()


def alike(one: str, other: str) -> bool:
    """Whether questions ask the same, or share most words and all numbers and negations."""
    first, second = content_words(one), content_words(other)
    shared = len(first & second)
    if 2 * shared < min(len(first), len(second)) or _signature(one) != _signature(other):
        return False
    return bool(shared) and (shared >= LIKE * len(first | second) or asks_the_same(one, other))


def _signature(text: str) -> tuple[object, ...]:
    """What questions of a group have in common: their numbers, and how often they deny."""
    return (read(text).negations, *sorted(word for word in content_words(text) if word.startswith("#")))


def grouped(asked: Iterable[Asked]) -> list[Group]:
    """Each question in the first group that has one like it, among the nearest."""
    every = list(asked)
    frequency = Counter(word for each in every for word in content_words(each.text))
    groups: list[Group] = []
    of_wording: dict[str, Group] = {}
    of_word: dict[tuple[object, ...], list[tuple[Group, str]]] = {}  # by signature and word
    for each in every:
        wording = plain_words(each.text)
        group = of_wording.get(wording)
        if group is None:
            # Rare words first: those that nearly every question has lead to the rest of them.
            words = sorted(content_words(each.text), key=lambda word: (frequency[word], word))
            keys = [(*_signature(each.text), word) for word in words]
            near = islice((pair for key in keys for pair in of_word.get(key, ())), COMPARED)
            group = next((known for known, text in near if alike(each.text, text)), None)
            if group is None:
                group = Group()
                groups.append(group)
            of_wording[wording] = group
            for key in keys:
                of_word.setdefault(key, []).append((group, each.text))
        group.asked.append(each)
    return groups


def dismiss(group: Group, person: int, reason: str) -> None:
    """Take the questions of the group from the list until one of them is asked again."""
    for digest in {each.digest for each in group.asked}:
        DismissedQuestion.objects.update_or_create(
            digest=digest,
            defaults={"reason": reason, "dismissed_by_id": person, "dismissed_at": timezone.now()},
        )


def _asked(principal: Principal) -> tuple[list[Asked], datetime | None]:
    """The newest that were asked in vain; and since when, if there are more."""
    parameters = {
        "since": timezone.now() - LISTED_FOR,
        "user_id": principal.user_id,
        "nothing": NOTHING_FITS,
        "unsure": UNSURE,
        "most": MAX_ASKED,
    }
    asked, found_at = [], []
    for row in rows("unanswered", parameters, SQL):
        reasons = {reason for reason in ("refused", "unsure", "bad", "again") if row[reason]}
        if reasons:
            found_at.append(row["created_at"])
        if row["repeated_soon"] and alike(row["content"], row["next_content"]):
            reasons.add("again")
        if reasons:
            asked.append(
                Asked(
                    row["content"],
                    row["owner_id"],
                    row["created_at"],
                    frozenset(reasons),
                    row["shared"],
                    row["closed"],
                )
            )
    return asked, found_at[-1] if len(found_at) >= MAX_ASKED else None


def _without_dismissed(asked: Iterable[Asked]) -> Iterator[Asked]:
    until = dict(DismissedQuestion.objects.values_list("digest", "dismissed_at"))
    for each in asked:
        dismissed_at = until.get(each.digest) if until else None
        if dismissed_at is None or each.at > dismissed_at:
            yield each
