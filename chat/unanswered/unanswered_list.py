"""The unanswered questions that a content manager may see.

A wording is shown if at least three people used it or if the person who asked agreed, but never if the
conversation cites sources that the manager may not read. Other questions are only counted. The same
conditions decide which of the cited documents are shown. Texts, rights and consent are read again for each
page; the worker only stores judgements and groups.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy

from chat.models import DismissedQuestion
from chat.overview.models import CountedUntil
from chat.unanswered.models import UnansweredQuestion
from chat.verification.same_question import written_words
from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from history.models import Feedback, Message
from ingestion.models import Document

from .question_judging import LISTED_FOR, PLACE, SITUATION

SQL = Path(__file__).parent / "sql"
PERMISSION = "chat.view_unanswered"
MIN_PEOPLE = 3  # number of people who must have asked before anything is shown without consent
MAX_DOCUMENTS = 5  # documents that are shown for a group; by default, an answer has as many passages
MAX_FEEDBACK = 3  # feedback that is linked from a group
MAX_LOOKED_UP = 200  # number of newest questions of a group from which documents are counted
REASONS = {
    "refused": gettext_lazy("nothing found"),
    "unsure": gettext_lazy("the search was unsure"),
    "bad": gettext_lazy("marked bad"),
    "again": gettext_lazy("asked again"),
}


@dataclass(slots=True)
class QuestionEntry:
    """A question without a satisfactory answer."""

    message: UUID
    person: int | None  # None for guests and programs, because one person can be several of these
    at: datetime
    reasons: frozenset[str]  # members of REASONS, possibly with SITUATION
    shared: bool  # whether the person who asked agreed that content managers may read it
    closed: bool  # whether it may reveal content that the manager may not read
    digest: str
    shown: tuple[int, ...]  # documents that its answers cite
    text: str = ""  # loaded only for the groups on a page


@dataclass(slots=True)
class QuestionGroup:
    """Similar questions."""

    asked: list[QuestionEntry] = field(default_factory=list)

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
        """The description of each reason, with its count."""
        counted = self.counted
        return [(str(words), counted[reason]) for reason, words in REASONS.items() if counted[reason]]

    @property
    def counted(self) -> Counter[str]:
        """The number of questions for each of REASONS, and of those that describe a situation."""
        return Counter(reason for each in self.asked for reason in each.reasons)

    @property
    def may_be_answered(self) -> bool:
        """Whether documents may answer the group's questions, but with different words.

        At least half of the questions must describe a situation, and no answer may be marked bad.
        """
        return 2 * self.counted[SITUATION] >= self.times and not self.counted["bad"]

    @property
    def wordings(self) -> list[str]:
        """The wordings that may be shown, most frequent first."""
        used: dict[str, list[QuestionEntry]] = {}
        for each in self.asked:
            if not each.closed:
                used.setdefault(each.digest, []).append(each)
        shown = [same for same in used.values() if may_be_shown(same)]
        shown.sort(key=len, reverse=True)
        return [next((each for each in same if each.shared), same[0]).text for same in shown]

    @property
    def words(self) -> list[str]:
        """The content words that at least three people used, for a group whose wordings may not be shown."""
        return self._used_by(MIN_PEOPLE)

    @property
    def usual_words(self) -> list[str]:
        """The subject of the group: content words used by half of the people, and at least by three."""
        return self._used_by(max(MIN_PEOPLE, self.people / 2))

    def _used_by(self, enough: float) -> list[str]:
        """The content words that at least this many people used, each in its most frequent form.

        If fewer than three people used that form, the word is shown without its ending.
        """
        writers: dict[str, dict[str, list[tuple[int, str]]]] = {}  # by word and form: writer, spelling
        for each in self.asked:
            if not each.closed and each.person is not None:
                for word, form in written_words(each.text).items():
                    forms = writers.setdefault(word, {})
                    forms.setdefault(form.casefold(), []).append((each.person, form))
        found = []
        for word, forms in writers.items():
            people = {form: {person for person, _ in by} for form, by in forms.items()}
            if len(set().union(*people.values())) >= enough:
                usual = max(sorted(people), key=lambda form: len(people[form]))
                written = Counter(form for _, form in forms[usual]).most_common(1)[0][0]
                found.append(written if len(people[usual]) >= MIN_PEOPLE else word)
        return sorted(found, key=str.casefold)

    @property
    def is_shown(self) -> bool:
        """Whether enough people asked these questions, or somebody agreed to show theirs.

        Consent only counts for questions that are not closed. Works before the texts are loaded.
        """
        return self.people >= MIN_PEOPLE or any(each.shared and not each.closed for each in self.asked)


@dataclass(frozen=True)
class Unanswered:
    """The groups that may be shown, and the number of other questions.

    The most frequent group comes first; groups with `may_be_answered` come after all others.

    The questions of the groups have no texts before `read_texts`. `since` is the time of the oldest grouped
    question if not all questions are grouped.
    """

    groups: Sequence[QuestionGroup]
    others: int
    since: datetime | None = None

    @cached_property
    def by_key(self) -> dict[str, QuestionGroup]:
        return {group.key: group for group in self.groups}

    def group_of(self, key: str) -> QuestionGroup | None:
        """The group with this key, which may also be its key from before questions were added."""
        found = self.by_key.get(key)
        return found or next((g for g in self.groups if any(each.digest == key for each in g.asked)), None)


def unanswered(principal: Principal) -> Unanswered:
    """The unanswered questions that `principal` may see, and the number of the others."""
    since = timezone.now() - LISTED_FOR
    every = rows("unanswered", {"since": since}, SQL)
    cited = {number for row in every for number in row["cited"]}
    documents = Document.objects.visible_to(principal).filter(pk__in=cited)
    readable = set(documents.values_list("pk", flat=True))
    groups: dict[int, QuestionGroup] = {}
    for row in every:
        groups.setdefault(row["group_number"], QuestionGroup()).asked.append(
            QuestionEntry(
                message=row["message_id"],
                person=row["owner_id"] if row["is_person"] else None,
                at=row["asked_at"],
                reasons=frozenset(row["reasons"]),
                shared=row["shared"],
                closed=not readable.issuperset(row["cited"]),
                digest=row["digest"],
                shown=tuple(row["shown"]),
            )
        )
    shown = [group for group in groups.values() if group.is_shown]
    shown.sort(key=lambda group: (not group.may_be_answered, group.times, group.last), reverse=True)
    others = sum(group.times for group in groups.values() if not group.is_shown)
    older = UnansweredQuestion.objects.filter(group_number=None, asked_at__gte=since)
    return Unanswered(shown, others, every[-1]["asked_at"] if every and older.exists() else None)


def read_texts(groups: Iterable[QuestionGroup]) -> None:
    """Load the texts of the questions of these groups.

    The texts of closed questions are left out.
    """
    asked = {each.message: each for group in groups for each in group.asked if not each.closed}
    for key, text in Message.objects.filter(pk__in=asked).values_list("pk", "content"):
        asked[key].text = text


def judged_at() -> datetime | None:
    """When the worker last judged questions; None if it never has."""
    return CountedUntil.objects.filter(pk=PLACE).values_list("counted_at", flat=True).first()


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document cited by answers to a group's questions, and the number of these questions.

    `sure` says whether the document may be named even if questions with unsure searches are not counted.
    """

    id: int
    title: str
    times: int
    sure: bool


def documents_shown(principal: Principal, groups: Sequence[QuestionGroup]) -> list[list[ShownDocument]]:
    """For each group, the documents shown most often to the people who asked, except hidden ones.

    A document is hidden if `principal` may not read it, or if it was shown to fewer than three people, none
    of whom agreed to show the question.
    """
    open_ones = [[each for each in group.asked[:MAX_LOOKED_UP] if not each.closed] for group in groups]
    wanted = {document for asked in open_ones for each in asked for document in each.shown}
    documents = Document.objects.visible_to(principal).filter(pk__in=wanted)
    titles = {key: title or name for key, title, name in documents.values_list("pk", "title", "name")}
    shown = []
    for of_group in open_ones:
        askers: dict[int, list[QuestionEntry]] = {}
        for each in of_group:
            for document in titles.keys() & each.shown:
                askers.setdefault(document, []).append(each)
        counted = [
            ShownDocument(
                document,
                titles[document],
                len(to),
                may_be_shown([each for each in to if "unsure" not in each.reasons]),
            )
            for document, to in askers.items()
            if may_be_shown(to)
        ]
        shown.append(sorted(counted, key=lambda each: (-each.times, each.title))[:MAX_DOCUMENTS])
    return shown


def feedback_on(groups: Sequence[QuestionGroup]) -> list[list[UUID]]:
    """For each group, the newest answers rated bad whose feedback content managers may read.

    The person who asked must have agreed. Without this consent, feedback is not linked to a question, because
    the question's wording could reveal who gave the feedback.
    """
    asked = {each.message for group in groups for each in group.asked if each.shared and not each.closed}
    answers = dict(UnansweredQuestion.objects.filter(message__in=asked).values_list("message_id", "answers"))
    bad = Feedback.objects.filter(
        message__in=[answer for each in answers.values() for answer in each],
        rating=Feedback.Rating.BAD,
        shared=True,
    )
    given = set(bad.values_list("message_id", flat=True))
    return [
        [answer for each in group.asked for answer in answers.get(each.message, ()) if answer in given][
            :MAX_FEEDBACK
        ]
        for group in groups
    ]


def may_be_shown(asked: Sequence[QuestionEntry]) -> bool:
    """Whether something that these questions have in common may be shown.

    At least three people must have asked them, or one must have agreed.
    """
    return any(each.shared for each in asked) or len({each.person for each in asked} - {None}) >= MIN_PEOPLE


def dismiss(group: QuestionGroup, person: int, reason: str) -> None:
    """Remove the group's questions from the list, until the same words are asked again."""
    for digest in {each.digest for each in group.asked}:
        DismissedQuestion.objects.update_or_create(
            digest=digest,
            defaults={"reason": reason, "dismissed_by_id": person, "dismissed_at": timezone.now()},
        )
