"""Asking the questions of search, under somebody's rights, and judging what it finds."""

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import PurePath
from typing import Any, get_args

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from chatsite.accounts.principal import Principal
from ingestion.evaluation.metrics import Ranking, ndcg, recall, reciprocal_rank
from ingestion.evaluation.question_files import Question
from ingestion.models import Document, DocumentQuerySet
from ingestion.search.fusion import Mode
from ingestion.search.labels import cleaned_label
from ingestion.search.retrieval import (
    MAX_PASSAGES,
    FoundPassage,
    resolve,
    search,
)

DEPTHS = (3, 5, 10)
METRICS = {"recall": recall, "MRR": reciprocal_rank, "nDCG": ndcg}
COLUMNS = [(name, depth) for name in METRICS for depth in DEPTHS]
NDCG_10 = COLUMNS.index(("nDCG", 10))  # what a question is called better or worse by


class UnknownSetting(Exception):
    """A setting that search does not have; the text says which there are."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What may be tried out: arguments of ingestion.search.retrieval.search."""

    mode: Mode = "hybrid"
    top: int = 10
    minimum_score: float = 0.0
    include_category: str = ""
    exclude_category: str = ""

    @classmethod
    def of(cls, text: str) -> "Settings":
        """From "mode=text,top=5". Raises UnknownSetting."""
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = part.partition("=")
            if name not in (known := [field.name for field in fields(cls)]):
                raise UnknownSetting(f"There is no setting “{name}”: {', '.join(known)}.")
            values[name] = _value(name, value)
        return cls(**values)

    def __str__(self) -> str:
        """What differs from the default; never empty."""
        plain = Settings()
        changed = [f"{name}={value}" for name, value in asdict(self).items() if value != getattr(plain, name)]
        return ", ".join(changed) or f"mode={self.mode}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a citation means to one reader: a document, and the place in it (empty: anywhere)."""

    document_id: int
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """One question under one setting: the figures in the order of COLUMNS, and the labels found."""

    question: Question
    scores: tuple[float, ...]
    labels: tuple[str, ...]

    @property
    def missed(self) -> bool:
        return not self.scores[NDCG_10]


# What a citation stands for, or in words why it stands for nothing.
Resolver = Callable[[str], Wanted | str]


def resolver_for(principal: Principal, name: str) -> Resolver:
    """Resolves citations as the reader (called `name`) would; an ending of a file name may be missing."""

    def resolved(citation: str) -> Wanted | str:
        source, _, anchor = citation.partition("#")
        document = resolve(principal, source) or _by_stem(principal, source)
        if document:
            return Wanted(document.pk, cleaned_label(anchor))
        named = _named(source.rpartition("/")[2])
        if named.visible_to(principal).count() > 1:
            return "several documents have this name"
        return f"{name} may not read it" if named.exists() else "there is no such document"

    return resolved


def _named(name: str) -> DocumentQuerySet:
    """All documents of that file name, with or without its ending."""
    name = name.replace("\0", "")
    return Document.objects.filter(Q(name=name) | Q(name__startswith=f"{name}."))


def _by_stem(principal: Principal, stem: str) -> Document | None:
    readable = _named(stem).visible_to(principal)
    found = [document for document in readable[:10] if PurePath(document.name).stem == stem]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class Task:
    """A question whose truth is resolved for one reader: the grade of each place that should be found."""

    question: Question
    grades: dict[Wanted, float]


@dataclass(frozen=True, slots=True)
class Problem:
    """A citation that stands for nothing, and why."""

    place: str
    citation: str
    why: str


def resolve_truths(questions: Iterable[Question], resolver: Resolver) -> tuple[list[Task], list[Problem]]:
    """The questions that can be judged, without citations that stand for nothing, and what was left out."""
    known = functools.cache(resolver)
    tasks, problems = [], []
    for question in questions:
        grades: dict[Wanted, float] = {}
        for citation, grade in question.truth.items():
            meaning = known(citation)
            if isinstance(meaning, str):
                problems.append(Problem(question.place, citation, meaning))
            else:
                grades[meaning] = max(grade, grades.get(meaning, 0.0))
        if grades:
            tasks.append(Task(question, grades))
    return tasks, problems


def judge(principal: Principal, tasks: Iterable[Task], settings: Settings) -> Iterator[Judged]:
    """Search for one question after the other, with the rights of `principal` and nobody else's."""
    for task in tasks:
        found = search(principal, task.question.text, **asdict(settings)).passages
        keys = ranking(found, task.grades)
        scores = tuple(METRICS[name](keys, task.grades, depth) for name, depth in COLUMNS)
        yield Judged(task.question, scores, tuple(passage.label for passage in found))


def ranking(found: Sequence[FoundPassage], wanted: Container[Wanted]) -> Ranking:
    """What each passage fulfils: the wish for its very place before the one for its whole document."""
    keys = []
    for passage in found:
        exact = Wanted(passage.document_id, passage.label.partition("#")[2])
        whole = Wanted(passage.document_id)
        keys.append(exact if exact in wanted else whole if whole in wanted else None)
    return keys


def table(judged: Sequence[Judged]) -> NDArray[np.float64]:
    """One row for each question, one column for each of COLUMNS."""
    return np.array([item.scores for item in judged])


def _value(name: str, value: str) -> Any:
    if name == "mode":
        if value not in get_args(Mode):
            raise UnknownSetting(f"mode is one of {', '.join(get_args(Mode))}.")
        return value
    if name in ("include_category", "exclude_category"):
        return value
    try:
        number = int(value) if name == "top" else float(value)
    except ValueError:
        raise UnknownSetting(f"{name} is a number.") from None
    if name == "top" and not 1 <= number <= MAX_PASSAGES:
        raise UnknownSetting(f"top is from 1 to {MAX_PASSAGES}.")
    if name == "minimum_score" and not 0 <= number <= 1:
        raise UnknownSetting("minimum_score is from 0 to 1.")
    return number
