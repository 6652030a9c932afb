"""What the benchmarks of retrieval share: a database of their own, the collections, and the judge."""

from site_ready import ROOT  # first: the models below need Django to be ready

# isort: split
import argparse
import csv
import json
import math
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connection, transaction

from chatsite.accounts.models import User
from chatsite.accounts.principals import Principal
from ingestion.indexing import NewPassage
from ingestion.models import AccessEntry, AccessList, Document
from ingestion.replacing import prepare, write_passages


@dataclass(frozen=True)
class Collection:
    """Texts, questions, and for each question the texts that answer it."""

    name: str
    language: str
    texts: dict[str, tuple[str, str]]  # id: title, text
    questions: dict[str, str]
    relevant: dict[str, dict[str, float]]


def datasets_folder(description: str) -> Path:
    """The folder of the collections, from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("datasets", nargs="?", type=Path, default=ROOT.parent / "shared" / "datasets")
    return Path(parser.parse_args().datasets)


def read_collection(folder: Path, name: str, language: str) -> Collection:
    """A collection in the layout of BEIR: corpus.jsonl, queries.jsonl, qrels/test.tsv."""
    texts = {row["_id"]: (row["title"], row["text"]) for row in _json_lines(folder / name / "corpus.jsonl")}
    questions = {row["_id"]: row["text"] for row in _json_lines(folder / name / "queries.jsonl")}
    relevant: dict[str, dict[str, float]] = {}
    with (folder / name / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    return Collection(name, language, texts, {key: questions[key] for key in relevant}, relevant)


def _json_lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@contextmanager
def empty_database() -> Iterator[Principal]:
    """A fresh database for the time of a benchmark, and someone who may read what is put there."""
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        reader = User.objects.create_user("reader")
        yield Principal(reader.pk, "command")
    finally:
        connection.close()
        connection.creation.destroy_test_db(os.environ["CHATSITE_TEST_DATABASE"], verbosity=0)


def fill(collection: Collection) -> dict[int, str]:
    """Write every text as a document of one passage; gives the collection's id of each document."""
    everyone, _ = AccessList.objects.get_or_create(digest="benchmark")
    AccessEntry.objects.get_or_create(access_list=everyone, user=None, group=None)
    identifiers = {}
    with transaction.atomic():
        for identifier, (title, text) in collection.texts.items():
            document = Document.objects.create(
                public_id=uuid.uuid4(),
                access_list=everyone,
                name=f"{identifier}.txt",
                title=title,
                category=collection.name,
                language=collection.language,
                media_type="text/plain",
                size=len(text),
                version=1,
                status=Document.Status.READY,
            )
            passage = NewPassage("", None, "", text)
            write_passages(document, [passage], prepare(document, [passage], title))
            identifiers[document.pk] = identifier
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return identifiers


def ndcg(ranking: Sequence[str], relevant: dict[str, float], depth: int = 10) -> float:
    """Normalised discounted cumulative gain of one ranking."""
    gain = sum(relevant.get(key, 0.0) / math.log2(place + 2) for place, key in enumerate(ranking[:depth]))
    ideal = sorted(relevant.values(), reverse=True)[:depth]
    return gain / sum(value / math.log2(place + 2) for place, value in enumerate(ideal))
