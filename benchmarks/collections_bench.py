"""Shared code of the retrieval benchmarks: the collections, and a separate database for them."""

from site_ready import MODEL_FOLDER, ROOT  # imported first, because the models below need a configured Django

# isort: split
import argparse
from dataclasses import dataclass
from pathlib import Path

from ingestion.evaluation import throwaway
from ingestion.evaluation.question_files import Questions, read_questions, subset
from ingestion.evaluation.ranking_metrics import ndcg
from ingestion.evaluation.throwaway import empty_database

__all__ = [
    "MODEL_FOLDER",
    "ROOT",
    "Collection",
    "datasets_folder",
    "empty_database",
    "fill",
    "ndcg",
    "part_of",
    "read_collection",
]


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
    return _collection(read_questions(folder / name), name, language)


def part_of(collection: Collection, folder: Path, size: int) -> Collection:
    """A part of a collection: `size` of its texts, and the questions that these texts answer."""
    part = subset(read_questions(folder / collection.name), size)
    return _collection(part, collection.name, collection.language)


def _collection(found: Questions, name: str, language: str) -> Collection:
    assert found.corpus, f"{name} has no corpus.jsonl"
    asked = {question.place.removeprefix("query "): question for question in found.asked}
    questions = {key: question.text for key, question in asked.items()}
    relevant = {key: question.truth for key, question in asked.items()}
    return Collection(name, language, found.corpus.texts, questions, relevant)


def fill(collection: Collection) -> dict[int, str]:
    """Write every text as a document of one passage; return {document: id in the collection}."""
    numbers = throwaway.fill(
        collection.texts, language=collection.language, category=collection.name, whole=True
    )
    return {number: identifier for identifier, number in numbers.items()}
