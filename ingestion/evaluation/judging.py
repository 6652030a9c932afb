"""Runs searches with a person's rights and scores the results."""

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import PurePath
from typing import Any, get_args

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from chatsite.accounts.principal import Principal
from ingestion.evaluation.bm25 import Bm25, Place
from ingestion.evaluation.question_files import Question
from ingestion.evaluation.ranking_metrics import Ranking, ndcg, recall, reciprocal_rank
from ingestion.models import Document, DocumentQuerySet
from ingestion.search.labels import cleaned_label
from ingestion.search.name_resolution import resolve
from ingestion.search.ranking.fusion import Mode
from ingestion.search.retrieval import MAX_PASSAGES, search

DEPTHS = (3, 5, 10)
METRICS = {"recall": recall, "MRR": reciprocal_rank, "nDCG": ndcg}
COLUMNS = [(name, depth) for name in METRICS for depth in DEPTHS]
NDCG_10 = COLUMNS.index(("nDCG", 10))  # the column by which two settings are compared


class UnknownSetting(Exception):
    """An unknown setting of search, or an invalid value; the text says which are allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings to compare: arguments of ingestion.search.retrieval.search."""

    mode: Mode = "hybrid"
    top: int = 10
    minimum_score: float = 0.0
    include_category: str = ""
    exclude_category: str = ""

    @classmethod
    def of(cls, text: str) -> "Settings":
        """Parse "mode=text,top=5". Raises UnknownSetting."""
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = part.partition("=")
            if name not in (known := [field.name for field in fields(cls)]):
                raise UnknownSetting(f"There is no setting “{name}”. The settings are {', '.join(known)}.")
            values[name] = _value(name, value)
        return cls(**values)

    def __str__(self) -> str:
        """The settings that differ from the defaults; never empty."""
        plain = Settings()
        changed = [f"{name}={value}" for name, value in asdict(self).items() if value != getattr(plain, name)]
        return ", ".join(changed) or f"mode={self.mode}"


@dataclass(frozen=True, slots=True)
class CitationTarget:
    """What a citation refers to for one reader: a document and a place in it (empty: anywhere)."""

    document_id: int
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """The result of one question under one setting.

    `scores` are in the order of COLUMNS, `labels` are those of the results, and `sure` is search's own
    judgement of them.
    """

    question: Question
    scores: tuple[float, ...]
    labels: tuple[str, ...]
    sure: bool = True

    @property
    def missed(self) -> bool:
        return not self.scores[NDCG_10]


# Returns the target of a citation, or a message that says why it has none.
Resolver = Callable[[str], CitationTarget | str]


def resolver_for(principal: Principal, name: str) -> Resolver:
    """A function that resolves citations with the rights of `principal`.

    File extensions are optional. Messages call the reader `name`.
    """

    def resolved(citation: str) -> CitationTarget | str:
        source, _, anchor = citation.partition("#")
        document = resolve(principal, source)
        if document is None:
            readable = _named(source).visible_to(principal)
            found = [each for each in readable[:10] if PurePath(each.name).stem == source]
            document = found[0] if len(found) == 1 else None
        if document:
            return CitationTarget(document.pk, cleaned_label(anchor))
        named = _named(source.rpartition("/")[2])
        if named.visible_to(principal).count() > 1:
            return "several documents have this name"
        return f"{name} may not read it" if named.exists() else "there is no such document"

    return resolved


def _named(name: str) -> DocumentQuerySet:
    """All documents with this file name; `name` may lack the extension."""
    name = name.replace("\0", "")
    return Document.objects.filter(Q(name=name) | Q(name__startswith=f"{name}."))


@dataclass(frozen=True, slots=True)
class Task:
    """A question with the grades of the relevant places that one reader may open."""

    question: Question
    grades: dict[CitationTarget, float]


@dataclass(frozen=True, slots=True)
class Problem:
    """A citation without a target, and the reason."""

    place: str
    citation: str
    why: str


def resolve_truths(questions: Iterable[Question], resolver: Resolver) -> tuple[list[Task], list[Problem]]:
    """A task for each question with a target, and a problem for each citation without one."""
    known = functools.cache(resolver)
    tasks, problems = [], []
    for question in questions:
        grades: dict[CitationTarget, float] = {}
        for citation, grade in question.truth.items():
            meaning = known(citation)
            if isinstance(meaning, str):
                problems.append(Problem(question.place, citation, meaning))
            else:
                grades[meaning] = max(grade, grades.get(meaning, 0.0))
        if grades:
            tasks.append(Task(question, grades))
    return tasks, problems


def judge(principal: Principal, tasks: Iterable[Task], settings: Settings) -> Iterator[QuestionScore]:
    """Run a search for each question with the rights of `principal`, and score the results."""
    for task in tasks:
        found = search(principal, task.question.text, **asdict(settings))
        places = [Place(passage.document_id, passage.label.partition("#")[2]) for passage in found.passages]
        labels = tuple(passage.label for passage in found.passages)
        yield QuestionScore(task.question, _scores(places, task.grades), labels, found.sure)


def judge_baseline(principal: Principal, tasks: Iterable[Task]) -> Iterator[QuestionScore]:
    """Score the results of stemmed BM25 for the same questions, over everything that the reader may read."""
    index = Bm25(principal)
    for task in tasks:
        places = [
            Place(place.document_id, cleaned_label(place.anchor))
            for place in index.best(task.question.text, max(DEPTHS))
        ]
        labels = tuple(f"{place.document_id}#{place.anchor}" for place in places)
        yield QuestionScore(task.question, _scores(places, task.grades), labels)


def _scores(places: Sequence[Place], grades: dict[CitationTarget, float]) -> tuple[float, ...]:
    keys = ranking(places, grades)
    return tuple(METRICS[name](keys, grades, depth) for name, depth in COLUMNS)


def ranking(found: Sequence[Place], wanted: Container[CitationTarget]) -> Ranking:
    """The target that each passage matches; None if it matches no wanted target.

    A passage matches its exact place if that is wanted, otherwise its document.
    """
    keys = []
    for place in found:
        exact = CitationTarget(place.document_id, place.anchor)
        whole = CitationTarget(place.document_id)
        keys.append(exact if exact in wanted else whole if whole in wanted else None)
    return keys


@dataclass(frozen=True, slots=True)
class Refusals:
    """The numbers of questions: all, without results, and with only unsure results."""

    asked: int
    refused: int
    unsure: int

    @classmethod
    def of(cls, found: Iterable[tuple[bool, bool]]) -> "Refusals":
        """Count pairs of (whether something was found, whether search was sure of it)."""
        pairs = list(found)
        refused = sum(not something for something, _ in pairs)
        return cls(len(pairs), refused, sum(something and not sure for something, sure in pairs))


def refusals_of(principal: Principal, questions: Iterable[str], settings: Settings) -> Refusals:
    """Run searches for questions that no document answers, and count the refusals."""
    results = (search(principal, question, **asdict(settings)) for question in questions)
    return Refusals.of((bool(result.passages), result.sure) for result in results)


def table(judged: Sequence[QuestionScore]) -> NDArray[np.float64]:
    """One row for each question, one column for each of COLUMNS."""
    return np.array([item.scores for item in judged])


def _value(name: str, value: str) -> Any:
    if name == "mode":
        if value not in get_args(Mode):
            raise UnknownSetting(f"mode must be one of {', '.join(get_args(Mode))}.")
        return value
    if name in ("include_category", "exclude_category"):
        return value
    try:
        number = int(value) if name == "top" else float(value)
    except ValueError:
        raise UnknownSetting(f"{name} must be a number.") from None
    if name == "top" and not 1 <= number <= MAX_PASSAGES:
        raise UnknownSetting(f"top must be from 1 to {MAX_PASSAGES}.")
    if name == "minimum_score" and not 0 <= number <= 1:
        raise UnknownSetting("minimum_score must be from 0 to 1.")
    return number
