"""Questions with the places that should be found: JSON lines, or a folder in BEIR's layout.

    {"question": "How many days of leave?", "truth": "27 [handbook.pdf#page=3] and more [leave.md]"}

`truth` is a text with citations in brackets, or a list of citations with or without brackets.
"""

import csv
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEED = 20_260_102
CITATION = re.compile(r"\[([^\[\]]+)\]")


class Malformed(Exception):
    """The questions cannot be parsed; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `truth` has a grade above 0 for each relevant citation."""

    place: str  # in the file: "line 3", "query 17"
    text: str
    truth: dict[str, float]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The texts of a folder, as a mapping from id to (title, text)."""

    texts: dict[str, tuple[str, str]]


@dataclass(slots=True)
class Questions:
    """The questions, the number of questions without a truth, and the folder's texts, if any."""

    asked: list[Question] = field(default_factory=list)
    without_truth: int = 0
    corpus: Corpus | None = None


def read_questions(path: Path) -> Questions:
    """Read a file or a folder. Raises Malformed."""
    try:
        found = _read_folder(path) if path.is_dir() else _read_file(path)
    except FileNotFoundError as error:
        raise Malformed(f"There is no file {error.filename}.") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"{path}: the text is not UTF-8.") from error
    except OSError as error:
        raise Malformed(f"{error.filename} cannot be opened: {error.strerror}.") from error
    if not found.asked:
        raise Malformed(f"{path}: no question says what should be found.")
    return found


def read_lines(path: Path) -> list[str]:
    """The questions from the non-empty lines of a text. Raises Malformed."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError as error:
        raise Malformed(f"There is no file {error.filename}.") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"{path}: the text is not UTF-8.") from error


def subset(questions: Questions, size: int) -> Questions:
    """A sample of `size` texts and the questions about them, drawn with a fixed seed.

    Questions are added while their relevant texts fill at most half of the sample; other texts fill the rest.
    Questions whose relevant texts do not fit are left out.
    """
    assert questions.corpus is not None
    texts = questions.corpus.texts
    chance = random.Random(SEED)  # noqa: S311 (a sample, no secret)
    asked, kept = [], dict[str, None]()
    for question in chance.sample(questions.asked, len(questions.asked)):
        wanted = dict.fromkeys(key for key in question.truth if key in texts)
        if wanted and len(kept | wanted) <= max(size // 2, 1):
            kept |= wanted
            asked.append(question)
    for key in chance.sample(list(texts), len(texts)):
        if len(kept) >= size:
            break
        kept.setdefault(key)
    return Questions(
        asked, questions.without_truth, Corpus({key: texts[key] for key in texts if key in kept})
    )


def _read_file(path: Path) -> Questions:
    found = Questions()
    for place, row in _rows(path):
        text = row.get("question")
        if not isinstance(text, str) or not text.strip():
            raise Malformed(f"{path}, {place}: “question” must be a string.")
        value = row.get("truth")
        if value is None:
            citations = []
        elif isinstance(value, str):
            citations = CITATION.findall(value)
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            citations = [match for item in value for match in CITATION.findall(item) or [item]]
        else:
            raise Malformed(
                f"{path}, {place}: “truth” must be a string with citations in brackets, or a list of them."
            )
        truth = {citation.strip(): 1.0 for citation in citations if citation.strip()}
        if truth:
            found.asked.append(Question(place, text, truth))
        else:
            found.without_truth += 1
    return found


def _read_folder(folder: Path) -> Questions:
    """Read queries.jsonl, qrels/test.tsv (otherwise qrels/*.tsv) and corpus.jsonl, if present."""
    queries, corpus = folder / "queries.jsonl", folder / "corpus.jsonl"
    texts = {
        _text(row, "_id", queries, place): _text(row, "text", queries, place) for place, row in _rows(queries)
    }
    truths: dict[str, dict[str, float]] = {}
    for query, document, grade in _judgements(folder, texts):
        if grade > 0:
            truths.setdefault(query, {})[document] = grade
        else:
            truths.setdefault(query, {})
    found = Questions([Question(f"query {key}", texts[key], truth) for key, truth in truths.items() if truth])
    found.without_truth = len(truths) - len(found.asked)
    if corpus.exists():
        found.corpus = Corpus(
            {
                _text(row, "_id", corpus, place): (
                    str(row.get("title") or ""),
                    _text(row, "text", corpus, place),
                )
                for place, row in _rows(corpus)
            }
        )
    return found


def _judgements(folder: Path, known: dict[str, str]) -> Iterator[tuple[str, str, float]]:
    test = folder / "qrels" / "test.tsv"
    paths = [test] if test.exists() else sorted((folder / "qrels").glob("*.tsv"))
    if not paths:
        raise Malformed(f"{folder / 'qrels'} has no file of judgements (test.tsv).")
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file, delimiter="\t"), 1):
                if not row or (number == 1 and row[-1] == "score"):
                    continue
                place = f"{path}, line {number}"
                try:
                    query, document, grade = row[0], row[-2], float(row[-1])
                except (IndexError, ValueError):
                    raise Malformed(
                        f"{place}: a line has a query, a document and a number, separated by tabs."
                    ) from None
                if query not in known:
                    raise Malformed(f"{place}: queries.jsonl has no query “{query}”.")
                yield query, document, grade


def _text(row: dict[str, Any], name: str, path: Path, place: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise Malformed(f"{path}, {place}: “{name}” must be a string.")
    return value


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of each line that is not empty."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise Malformed(f"{path}, line {number}: this is not a line of JSON.") from None
            if not isinstance(row, dict):
                raise Malformed(f"{path}, line {number}: a line must be an object, in braces.")
            yield f"line {number}", row
