"""Unanswered questions, grouped by similarity, as far as a content manager may see them.

A wording is shown if at least three people used it or its asker agreed, and never if the conversation has
sources that the manager may not read. All others are only counted. The same holds for the documents that the
answers cited.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from uuid import UUID

from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy

from chat.llm.base import NOTHING_FITS
from chat.llm.quoting import UNSURE
from chat.models import DismissedQuestion
from chat.verification.same_question import asks_the_same, content_words, read
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.search.tokens import plain_words

SQL = Path(__file__).parent / "sql"
LISTED_FOR = timedelta(days=30)
# newest unanswered questions that are grouped, and newest questions that may be repetitions
MAX_ASKED = 5_000
MIN_PEOPLE = 3  # who asked, before anything is shown
LIKE = 0.6  # share of common words for questions of a group
COMPARED = 100  # other wordings that a question is compared with
MAX_DOCUMENTS = 3  # shown of a group
MAX_LOOKED_UP = 200  # newest questions of a group of which the documents are counted
REASONS = {
    "refused": gettext_lazy("not in the documents"),
    "unsure": gettext_lazy("the search was unsure"),
    "bad": gettext_lazy("marked bad"),
    "again": gettext_lazy("asked again"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question without a satisfactory answer."""

    text: str
    person: int | None  # None for guests and programs, of which anybody can have several
    at: datetime
    reasons: frozenset[str]  # of REASONS
    shared: bool  # the asker agreed that content managers may read it
    closed: bool  # it may reveal content that the manager may not read
    conversation: UUID
    position: int
    next_position: int  # of the next question

    @property
    def digest(self) -> str:
        return digest_of(self.text)


@dataclass(slots=True)
class Group:
    """Similar questions."""

    asked: list[Asked] = field(default_factory=list)

    @property
    def times(self) -> int:
        return len(self.asked)

    @property
    def people(self) -> int:
        return len({each.person for each in self.asked} - {None})

    @property
    def last(self) -> datetime:
        return max(each.at for each in self.asked)

    @property
    def key(self) -> str:
        """Identifies the group in a form, without revealing a wording."""
        return min(each.digest for each in self.asked)

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """The description of each reason with its count."""
        counted = self.counted
        return [(str(words), counted[reason]) for reason, words in REASONS.items() if counted[reason]]

    @property
    def counted(self) -> Counter[str]:
        """How many of its questions are listed for each of REASONS."""
        return Counter(reason for each in self.asked for reason in each.reasons)

    @property
    def wordings(self) -> list[str]:
        """The wordings that may be shown, most frequent first."""
        used: dict[str, list[Asked]] = {}
        for each in self.asked:
            if not each.closed:
                used.setdefault(plain_words(each.text), []).append(each)
        shown = [same for same in used.values() if may_be_shown(same)]
        shown.sort(key=len, reverse=True)
        return [next((each for each in same if each.shared), same[0]).text for same in shown]

    @property
    def words(self) -> list[str]:
        """The content words that at least three people used, for a group without a wording to show."""
        return sorted(word for word, people in self._users.items() if len(people) >= MIN_PEOPLE)

    @property
    def usual_words(self) -> list[str]:
        """Those that at least half of the people used: the subject of the group."""
        users, enough = self._users, max(MIN_PEOPLE, self.people / 2)
        return sorted(word for word, people in users.items() if len(people) >= enough)

    @property
    def _users(self) -> dict[str, set[int]]:
        """The people who used each content word."""
        users: dict[str, set[int]] = {}
        for each in self.asked:
            if not each.closed and each.person is not None:
                for word in content_words(each.text):
                    users.setdefault(word, set()).add(each.person)
        return users

    @property
    def is_shown(self) -> bool:
        return self.people >= MIN_PEOPLE or bool(self.wordings)


@dataclass(frozen=True)
class Unanswered:
    """The groups that may be shown, most frequent first, and the number of other questions.

    `since` is the time of the oldest grouped question if there are more than are grouped.
    """

    groups: Sequence[Group]
    others: int
    since: datetime | None = None

    @cached_property
    def by_key(self) -> dict[str, Group]:
        return {group.key: group for group in self.groups}

    def group_of(self, key: str) -> Group | None:
        """The group with this key, which changes when new questions join the group."""
        found = self.by_key.get(key)
        return found or next((g for g in self.groups if any(each.digest == key for each in g.asked)), None)


def unanswered(principal: Principal) -> Unanswered:
    """Unanswered questions as far as `principal` may see them."""
    asked, since = _asked(principal)
    dismissed = dict(DismissedQuestion.objects.values_list("digest", "dismissed_at"))
    if dismissed:
        asked = [each for each in asked if (until := dismissed.get(each.digest)) is None or each.at > until]
    groups = grouped(asked)
    shown = sorted(
        (group for group in groups if group.is_shown),
        key=lambda group: (group.times, group.last),
        reverse=True,
    )
    return Unanswered(shown, sum(group.times for group in groups if not group.is_shown), since)


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document that answers to a group's questions cited, and to how many of them."""

    id: int
    title: str
    times: int


def documents_shown(principal: Principal, groups: Sequence[Group]) -> list[list[ShownDocument]]:
    """Of each group the documents that its askers were shown most often, as far as `principal` may know.

    A document counts if the asker agreed to show the question, or if it was shown to at least three people.
    """
    open_ones = [[each for each in group.asked[:MAX_LOOKED_UP] if not each.closed] for group in groups]
    asked = [each for of_group in open_ones for each in of_group]
    parameters = {
        "user_id": principal.user_id,
        "conversations": [each.conversation for each in asked],
        "positions": [each.position for each in asked],
        "next_positions": [each.next_position for each in asked],
    }
    titles: dict[int, str] = {}
    of_question: dict[tuple[UUID, int], list[int]] = {}
    for row in rows("shown_in_vain", parameters, SQL) if asked else []:
        titles[row["document_id"]] = row["title"]
        place = (row["conversation_id"], row["position"])
        of_question.setdefault(place, []).append(row["document_id"])
    shown = []
    for of_group in open_ones:
        askers: dict[int, list[Asked]] = {}
        for each in of_group:
            for document in of_question.get((each.conversation, each.position), []):
                askers.setdefault(document, []).append(each)
        counted = [
            ShownDocument(document, titles[document], len(to))
            for document, to in askers.items()
            if may_be_shown(to)
        ]
        shown.append(sorted(counted, key=lambda each: (-each.times, each.title))[:MAX_DOCUMENTS])
    return shown


def may_be_shown(asked: Sequence[Asked]) -> bool:
    """Whether what these questions have in common may be shown: three people had it, or one agreed."""
    return any(each.shared for each in asked) or len({each.person for each in asked} - {None}) >= MIN_PEOPLE


def digest_of(text: str) -> str:
    """Keyed, so that nobody can guess whether a question was asked."""
    return salted_hmac("chat.unanswered", plain_words(text), algorithm="sha256").hexdigest()


def alike(one: str, other: str) -> bool:
    """Whether questions ask the same, or share most words and all numbers and negations."""
    first, second = content_words(one), content_words(other)
    shared = len(first & second)
    if 2 * shared < min(len(first), len(second)) or _signature(one) != _signature(other):
        return False
    return bool(shared) and (shared >= LIKE * len(first | second) or asks_the_same(one, other))


def _signature(text: str) -> tuple[object, ...]:
    """What questions of a group must have in common: numbers and the number of negations."""
    return (read(text).negations, *sorted(word for word in content_words(text) if word.startswith("#")))


def grouped(asked: Iterable[Asked]) -> list[Group]:
    """Each question joins the first similar group among its nearest ones."""
    every = list(asked)
    frequency = Counter(word for each in every for word in content_words(each.text))
    groups: list[Group] = []
    of_wording: dict[str, Group] = {}
    of_word: dict[tuple[object, ...], list[tuple[Group, str]]] = {}  # by signature and word
    for each in every:
        wording = plain_words(each.text)
        group = of_wording.get(wording)
        if group is None:
            # Rare words first, because frequent ones lead to almost all groups.
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
    """Remove the group's questions from the list until one of them is asked again."""
    for digest in {each.digest for each in group.asked}:
        DismissedQuestion.objects.update_or_create(
            digest=digest,
            defaults={"reason": reason, "dismissed_by_id": person, "dismissed_at": timezone.now()},
        )


def _asked(principal: Principal) -> tuple[list[Asked], datetime | None]:
    """The newest unanswered questions, and the time of the oldest if there are more."""
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
                    row["owner_id"] if row["is_person"] else None,
                    row["created_at"],
                    frozenset(reasons),
                    row["shared"],
                    row["closed"],
                    row["conversation_id"],
                    row["position"],
                    row["next_position"],
                )
            )
    return asked, found_at[-1] if len(found_at) >= MAX_ASKED else None
