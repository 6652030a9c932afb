"""Search under rights in a large corpus: what it finds, how long it takes, and that it gives nothing else.

    python benchmarks/bench_rights.py [--passages 200000] [--queries 10000] [--rebuild] [datasets]

Eight people may read from a ten-thousandth to all of the documents. For each: recall@10 of the vector leg
against every vector compared under the same rights, for whole questions and for four words; its time as a
multiple of the same look-up in the index of vectors without rights, both in turns; a whole hybrid search of
four words in milliseconds. Then as many
searches as told by all of them, in every mode and narrowed, and how many of the passages found were not
theirs by a reckoning of its own. The corpus is made at the first run and stays in the data directory.
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("datasets", nargs="?", type=Path)
PARSER.add_argument("--passages", type=int, default=200_000)
PARSER.add_argument("--queries", type=int, default=10_000, help="of the search for rows outside the rights")
PARSER.add_argument("--rebuild", action="store_true", help="make the corpus anew")
OPTIONS = PARSER.parse_args()
os.environ["CHATSITE_TEST_DATABASE"] = f"benchmark_rights_{OPTIONS.passages}"

import rights_corpus as corpus  # noqa: E402
from site_ready import ROOT  # noqa: E402

# isort: split
import numpy as np  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from chatsite.accounts.models import User  # noqa: E402
from chatsite.accounts.principal import Principal  # noqa: E402
from chatsite.db.sql_files import statement  # noqa: E402
from chatsite.db.threads import reading_as  # noqa: E402
from ingestion.embedding import active_space, embedder  # noqa: E402
from ingestion.indexing.passages import vector_text  # noqa: E402
from ingestion.models import EmbeddingSpace, Passage  # noqa: E402
from ingestion.search import plans  # noqa: E402
from ingestion.search.retrieval import (  # noqa: E402
    SearchResult,
    search,
)

RECALLED = 60  # questions of the vector leg for each share
TIMED = 120  # hybrid searches for each share
COMPARED = 10
ROUNDING = 2e-4  # of similarities in half precision
EVERYTHING: dict[str, Any] = {
    "include_category": "",
    "exclude_category": "",
    "scoped": False,
    "documents": [],
    "to_person": False,
    "to_groups": False,
    "today": date.today(),
}
UNFILTERED = """
    SELECT vector.passage_id
    FROM ingestion_vector AS vector
    WHERE vector.space_id = %(space_id)s
    ORDER BY vector.vector::halfvec(%(dimensions)s) <=> %(vector)s::halfvec(%(dimensions)s)
    LIMIT %(pieces)s
"""
LEG = "SELECT nearest.passage_id FROM nearest"


@dataclass(frozen=True)
class Person:
    """Somebody, what they may read by a reckoning that shares nothing with search, and the plan they get."""

    share: float
    principal: Principal
    documents: frozenset[int]
    visible: int
    plan: plans.Plan


@dataclass(frozen=True)
class Vectors:
    """All vectors in memory, for the exact answer."""

    matrix: "np.ndarray[Any, np.dtype[np.float32]]"
    passages: "np.ndarray[Any, np.dtype[np.int64]]"
    documents: "np.ndarray[Any, np.dtype[np.int64]]"

    def best(self, vector: Any, visible: Any) -> dict[int, float]:
        """The best passages with their similarity, more than are compared."""
        scores = self.matrix[visible] @ vector
        order = np.argsort(-scores)[: 20 * COMPARED]
        best: dict[int, float] = {}
        for place in order:
            best.setdefault(int(self.passages[visible[place]]), float(scores[place]))
        return best


def main() -> None:
    with database():
        space = active_space()
        people = [person(share, space) for share in corpus.SHARES]
        questions = four_words(max(RECALLED, TIMED))
        whole = whole_questions(RECALLED)
        vectors = all_vectors(space)
        for question in questions:  # pages and words into memory
            ask(people[-1], question)
        columns = (
            f"{'plan':6}{'questions':>10}{'words':>8}{'leg ms':>8}{'ratio':>7}{'p50 ms':>8}{'p95 ms':>8}"
        )
        print(f"{'sees':>8}{'passages':>10}  {columns}", flush=True)
        for somebody in people:
            report(somebody, space, vectors, questions, whole)
        print(f"rows outside the rights: {foreign_rows(people, OPTIONS.queries)}")


@contextmanager
def database() -> Iterator[None]:
    """The corpus's own database, which stays."""
    connection.creation.create_test_db(
        verbosity=0, autoclobber=True, serialize=False, keepdb=not OPTIONS.rebuild
    )
    if not corpus.is_built():
        if Passage.objects.exists():
            PARSER.error("The corpus was not built to its end: make it anew with --rebuild.")
        corpus.build(datasets(), OPTIONS.passages // corpus.PASSAGES_EACH)
    try:
        yield
    finally:
        connection.close()


def person(share: float, space: EmbeddingSpace) -> Person:
    user = User.objects.get(username=corpus.reader_name(share))
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT DISTINCT document.id FROM accounts_user_groups AS membership
            JOIN ingestion_accessentry AS entry ON entry.group_id = membership.group_id
            JOIN ingestion_document AS document ON document.access_list_id = entry.access_list_id
            WHERE membership.user_id = %s
            """,
            [user.pk],
        )
        documents = frozenset(row[0] for row in cursor.fetchall())
    visible = len(documents) * corpus.PASSAGES_EACH
    plan = plans.Survey(visible, OPTIONS.passages, {}).plan(space.dimensions)
    return Person(share, Principal(user.pk, "command"), documents, visible, plan)


def four_words(count: int, seed: int = 4) -> list[str]:
    """Questions of four words of one sentence, in its order, without the commonest little words."""
    chance = random.Random(seed)
    passages = Passage.objects.order_by("pk").values_list("content", flat=True)
    first = Passage.objects.order_by("pk").values_list("pk", flat=True)[0]
    wanted = [first + chance.randrange(OPTIONS.passages) for _ in range(2 * count)]
    questions = []
    for content in passages.filter(pk__in=wanted):
        words = [word for word in content.split(". ")[0].split() if word.isalpha() and len(word) > 3]
        if len(words) >= 4:
            questions.append(" ".join(words[place] for place in sorted(chance.sample(range(len(words)), 4))))
    return questions[:count]


def all_vectors(space: EmbeddingSpace) -> Vectors:
    query = (
        "COPY (SELECT passage_id, document_id, halfvec_send(vector) FROM ingestion_vector"
        " WHERE space_id = %s) TO STDOUT (FORMAT BINARY)"
    )
    numbers: list[tuple[int, int]] = []
    halves = bytearray()
    with connection.cursor() as cursor, cursor.copy(query, [space.pk]) as copy:
        copy.set_types(["int8", "int8", "bytea"])
        for passage, document, vector in copy.rows():
            numbers.append((passage, document))
            halves += vector[4:]  # after the number of dimensions
    matrix = np.frombuffer(halves, dtype=">f2").reshape(len(numbers), space.dimensions).astype(np.float32)
    passages, documents = np.asarray(numbers).T
    return Vectors(matrix, passages, documents)


def whole_questions(count: int) -> list[str]:
    """The claims that come with the collection that the corpus is made of."""
    collection = corpus.read_collection(datasets(), "scifact", "english")
    return list(collection.questions.values())[:count]


def datasets() -> Path:
    return OPTIONS.datasets or ROOT.parent / "shared" / "datasets"


def report(
    somebody: Person,
    space: EmbeddingSpace,
    vectors: Vectors,
    questions: Sequence[str],
    whole: Sequence[str],
) -> None:
    asked, _, _ = vector_leg(somebody, space, vectors, whole)
    recall, leg, ratio = vector_leg(somebody, space, vectors, questions[:RECALLED])
    times = [milliseconds(partial(ask, somebody, question)) for question in questions[:TIMED]]
    cuts = quantiles(times, n=20)
    print(
        f"{somebody.share:8.2%}{somebody.visible:10,}  {somebody.plan:6}{asked:10.3f}{recall:8.3f}"
        f"{leg:8.2f}{ratio:7.2f}{cuts[9]:8.1f}{cuts[18]:8.1f}",
        flush=True,
    )


def ask(somebody: Person, question: str, **options: Any) -> SearchResult:
    with reading_as(somebody.principal.user_id):
        return search(somebody.principal, question, **options)


def vector_leg(
    somebody: Person, space: EmbeddingSpace, vectors: Vectors, questions: Sequence[str]
) -> tuple[float, float, float]:
    """Recall@10, milliseconds, and these as a multiple of the same look-up without rights, in turns."""
    visible = np.flatnonzero(np.isin(vectors.documents, list(somebody.documents)))
    recalls, own, unfiltered = [], [], []
    for vector in embedder().embed(questions):
        parameters = leg_parameters(somebody, space, vector_text(vector))
        with reading_as(somebody.principal.user_id), transaction.atomic():
            plans.prepare()
            found: list[int] = []
            unfiltered.append(milliseconds(partial(run, UNFILTERED, parameters, [])))
            own.append(milliseconds(partial(run, leg_statement(), parameters, found)))
        best = vectors.best(vector, visible)
        scores = sorted(best.values(), reverse=True)[:COMPARED]
        right = sum(best.get(passage, -1) >= scores[-1] - ROUNDING for passage in found[:COMPARED])
        recalls.append(right / len(scores))
    return sum(recalls) / len(recalls), median(own), median(own) / median(unfiltered)


def run(text: str, parameters: dict[str, Any], found: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        found.extend(row[0] for row in cursor.fetchall())


def leg_statement() -> str:
    """The vector leg of the search, without what follows it."""
    leg, found, _ = statement("search").partition(",\n\nmet AS MATERIALIZED")
    assert found, "the statement has another order now"
    return f"{leg} {LEG}"


def leg_parameters(somebody: Person, space: EmbeddingSpace, vector: str) -> dict[str, Any]:
    return EVERYTHING | {
        "user_id": somebody.principal.user_id,
        "plan": somebody.plan,
        "words": [],
        "otherwise": [],
        "groups": [],
        "members": [],
        "common": [],
        "max_common": 0,
        "mean_length": 0.0,
        "visible": float(somebody.visible),
        "every": OPTIONS.passages,
        "with_nearest": True,
        "vector": vector,
        "space_id": space.pk,
        "dimensions": space.dimensions,
        "depth": plans.DEPTH,
        "pieces": plans.Survey(somebody.visible, OPTIONS.passages, {}).pieces(somebody.plan),
    }


def milliseconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def foreign_rows(people: Sequence[Person], queries: int) -> str:
    """How many of the passages that many searches found are of documents that the searcher may not read."""
    chance = random.Random(6)
    questions = four_words(500, seed=5)
    found = foreign = 0
    for number in range(queries):
        somebody = people[number % len(people)]
        result = ask(
            somebody,
            chance.choice(questions),
            mode=chance.choice(("hybrid", "hybrid", "text", "vectors")),
            top=20,
            include_category=chance.choice(("", "", "category-1")),
            to_groups=chance.random() < 0.2,
        )
        found += len(result.passages)
        foreign += sum(passage.document_id not in somebody.documents for passage in result.passages)
    return f"{foreign} of {found:,} passages, in {queries:,} searches"


if __name__ == "__main__":
    main()
