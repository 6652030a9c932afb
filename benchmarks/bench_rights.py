"""Recall and time of searches with rights in a large corpus, and whether they find forbidden passages.

    python benchmarks/bench_rights.py [--passages 200000] [--texts FOLDER] [--characters 330]
        [--queries 10000] [--times-only] [--rebuild] [datasets]

Eight people may read from a ten-thousandth to all of the documents. For each of them, prints the elapsed time
and the CPU time in milliseconds of a hybrid search for four words and for a whole question. Without
--times-only, it also prints recall@10 of the vector leg against a comparison with every vector under the same
rights, its time as a multiple of the same look-up without rights (the two are measured alternately), and
recall@10 of the words against a search that scores every passage with any of them. After the times, it prints
PostgreSQL's use of memory and disk. Then the eight people make --queries searches, in every mode and with
filters; an independent computation counts passages that they may not read. The last figure is the cost of
adding a document to a corpus of this size. The first run builds the corpus, which is kept in the data
directory.
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
from unittest import mock

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("datasets", nargs="?", type=Path)
PARSER.add_argument("--passages", type=int, default=200_000)
PARSER.add_argument("--texts", type=Path, help="folder of Markdown and reStructuredText files for the corpus")
PARSER.add_argument("--characters", type=int, default=330, help="minimum length of a passage")
PARSER.add_argument(
    "--queries",
    type=int,
    default=10_000,
    help="number of searches whose passages are checked against the rights",
)
PARSER.add_argument("--times-only", action="store_true", help="print only times, and use of memory and disk")
PARSER.add_argument("--rebuild", action="store_true", help="rebuild the corpus")
OPTIONS = PARSER.parse_args()
os.environ["CHATSITE_TEST_DATABASE"] = f"benchmark_rights_{OPTIONS.passages}"

import rights_corpus as corpus  # noqa: E402
from server_usage import Usage, processor_milliseconds  # noqa: E402
from site_ready import ROOT  # noqa: E402

# isort: split
import numpy as np  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from chatsite.accounts.models import User  # noqa: E402
from chatsite.accounts.principal import Principal  # noqa: E402
from chatsite.db.sql_files import statement  # noqa: E402
from chatsite.db.threads import reading_as  # noqa: E402
from ingestion.embedding import active_space, embedder  # noqa: E402
from ingestion.indexing.passages import NewPassage, vector_text  # noqa: E402
from ingestion.indexing.replacing import prepare, write_passages  # noqa: E402
from ingestion.models import Document, EmbeddingSpace, Passage  # noqa: E402
from ingestion.search.ranking import plans  # noqa: E402
from ingestion.search.retrieval import (  # noqa: E402
    NO_WORDS,
    SearchResult,
    search,
)

RECALLED = 60  # searches of the vector leg for each person and kind of question
WORDED = 30  # searches by words for each person
TIMED = 120  # hybrid searches for each person and kind of question
WARMING = 20  # searches before the measurement, for each person and kind of question
ADDED = 100  # passages of the added document
NO_LIMIT = 10.0**15
COMPARED = 10
ROUNDING = 2e-4  # tolerance of similarities in half precision
EVERYTHING: dict[str, Any] = {
    "include_category": "",
    "exclude_category": "",
    "scoped": False,
    "excluding": False,
    "excluded": [],
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
    """A person, the documents that they may read (computed independently of search), and their plan."""

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
        """The best passages with their similarity; more of them than recall@10 needs."""
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
        questions, whole = four_words(TIMED), whole_questions(TIMED)
        for somebody in people:  # so that pages and words are in memory
            for question in [*questions[:WARMING], *whole[:WARMING]]:
                ask(somebody, question)
        print("Milliseconds of one hybrid search; CPU time is that of Python and PostgreSQL")
        print(
            f"{'sees':>8}{'passages':>10}  {'plan':8}{'':10}{'p50':>8}{'p95':>8}{'cpu p50':>9}{'cpu p95':>9}"
        )
        for somebody in people:
            for kind, asked in (("words", questions), ("questions", whole)):
                report_times(somebody, kind, asked)
        usage()
        if OPTIONS.times_only:
            return
        vectors = all_vectors(space)
        print("Recall@10 of vectors and words against everything that may be read; vector leg, milliseconds")
        print(
            f"{'sees':>8}  {'questions':>10}{'words':>8}{'leg ms':>8}{'ratio':>7}{'text leg':>10}", flush=True
        )
        for somebody in people:
            report_recall(somebody, space, vectors, questions, whole)
        print(f"rows outside the rights: {foreign_rows(people, OPTIONS.queries)}")
        add_document(whole)


@contextmanager
def database() -> Iterator[None]:
    """The separate database of the corpus, which is kept."""
    connection.creation.create_test_db(
        verbosity=0, autoclobber=True, serialize=False, keepdb=not OPTIONS.rebuild
    )
    if not corpus.is_built():
        if Passage.objects.exists() and not corpus.is_filled():
            PARSER.error("The corpus is incomplete: make it again with --rebuild.")
        documents = OPTIONS.passages // corpus.PASSAGES_EACH
        corpus.build(datasets(), OPTIONS.texts, documents, OPTIONS.characters)
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
    """Questions of four words of a sentence, in their order there, without short words."""
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
            halves += vector[4:]  # after the header, which contains the number of dimensions
    matrix = np.frombuffer(halves, dtype=">f2").reshape(len(numbers), space.dimensions).astype(np.float32)
    passages, documents = np.asarray(numbers).T
    return Vectors(matrix, passages, documents)


def whole_questions(count: int) -> list[str]:
    """The claims of the collection from which the corpus is made."""
    collection = corpus.read_collection(datasets(), "scifact", "english")
    return list(collection.questions.values())[:count]


def datasets() -> Path:
    return OPTIONS.datasets or ROOT.parent / "shared" / "datasets"


def report_times(somebody: Person, kind: str, questions: Sequence[str]) -> None:
    times, taken = [], []
    for question in questions[:TIMED]:
        before = processor_milliseconds(connection)
        times.append(milliseconds(partial(ask, somebody, question)))
        taken.append(processor_milliseconds(connection) - before)
    cuts, of_processor = quantiles(times, n=20), quantiles(taken, n=20)
    print(
        f"{somebody.share:8.2%}{somebody.visible:10,}  {somebody.plan:8}{kind:10}"
        f"{cuts[9]:8.1f}{cuts[18]:8.1f}{of_processor[9]:9.1f}{of_processor[18]:9.1f}",
        flush=True,
    )


def report_recall(
    somebody: Person,
    space: EmbeddingSpace,
    vectors: Vectors,
    questions: Sequence[str],
    whole: Sequence[str],
) -> None:
    asked, _, _ = vector_leg(somebody, space, vectors, whole[:RECALLED])
    recall, leg, ratio = vector_leg(somebody, space, vectors, questions[:RECALLED])
    worded = word_leg(somebody, questions[:WORDED])
    print(
        f"{somebody.share:8.2%}  {asked:10.3f}{recall:8.3f}{leg:8.2f}{ratio:7.2f}{worded:10.3f}",
        flush=True,
    )


def word_leg(somebody: Person, questions: Sequence[str]) -> float:
    """Recall@10 of the words, against a search that scores every readable passage with any of them.

    Texts are compared instead of passages, because a search returns only the first of equal ones.
    """
    recalls = []
    for question in questions:
        found = {each.content for each in ask(somebody, question, mode="text", top=COMPARED).passages}
        with mock.patch.multiple(plans, MAX_FETCHED=NO_LIMIT, MAX_SCORED=NO_LIMIT):
            exact = {each.content for each in ask(somebody, question, mode="text", top=COMPARED).passages}
        if exact:
            recalls.append(len(found & exact) / len(exact))
    return sum(recalls) / len(recalls) if recalls else float("nan")


def ask(somebody: Person, question: str, **options: Any) -> SearchResult:
    with reading_as(somebody.principal.user_id):
        return search(somebody.principal, question, **options)


def vector_leg(
    somebody: Person, space: EmbeddingSpace, vectors: Vectors, questions: Sequence[str]
) -> tuple[float, float, float]:
    """Recall@10, milliseconds, and their ratio to the same look-up without rights, measured alternately."""
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
    """The vector leg of the search alone."""
    leg, found, _ = statement("search").partition(",\n\nmet AS MATERIALIZED")
    assert found, "the statement has another order now"
    return f"{leg} {LEG}"


def leg_parameters(somebody: Person, space: EmbeddingSpace, vector: str) -> dict[str, Any]:
    return plans.with_words(EVERYTHING | NO_WORDS) | {
        "user_id": somebody.principal.user_id,
        "plan": somebody.plan,
        "groups": [],
        "members": [],
        "common": [],
        "max_common": 0,
        "by_documents": False,
        "readable_share": 1.0,
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


def usage() -> None:
    """Print PostgreSQL's current use of memory and disk."""
    now = Usage()
    now.look()
    print(f"memory of PostgreSQL: {now.shared:.0f} MB shared, {now.private:.0f} MB private")
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT relation.relname, pg_relation_size(relation.oid) / 1048576
            FROM pg_class AS relation
            WHERE relation.relname LIKE 'ingestion%' AND relation.relkind = 'r'
            OR relation.oid IN (
                SELECT indexrelid FROM pg_index WHERE indrelid::regclass::text LIKE 'ingestion%'
            )
            ORDER BY 2 DESC
            LIMIT 8
            """
        )
        print("disk, MB:", ", ".join(f"{name} {size:,}" for name, size in cursor.fetchall()), flush=True)


def add_document(sentences: Sequence[str]) -> None:
    """Print the cost of adding a document with new passages, and delete the document."""
    reader = User.objects.get(username=corpus.reader_name(corpus.SHARES[-1]))
    access_list = Document.objects.latest("pk").access_list
    document = Document.objects.create(
        owner=reader, access_list=access_list, name="added.txt", title="Added", language="english", size=0
    )
    passages = [
        NewPassage("", None, "", f"{start}. {sentences[start % len(sentences)]} {sentences[-1]}")
        for start in range(ADDED)
    ]
    before, started = processor_milliseconds(connection), time.perf_counter()
    prepared = prepare(document, passages, "Added")
    with transaction.atomic():
        write_passages(document, passages, prepared)
    seconds = time.perf_counter() - started
    taken = (processor_milliseconds(connection) - before) / 1000
    print(
        f"a document of {ADDED} passages ({len(prepared.digests)} vectors) added: {seconds:.2f} s,"
        f" {taken:.2f} s of CPU time, {ADDED / taken:.0f} passages per CPU second"
    )
    document.delete()


def milliseconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def foreign_rows(people: Sequence[Person], queries: int) -> str:
    """How many passages searches found although the person may not read them, as text."""
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
