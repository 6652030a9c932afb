"""How often the two sentences that are quoted without a language model answer the question.

    python benchmarks/bench_quoting.py [folder of the collections]

The XQuAD collection names only the passage of each answer, so the benchmark counts how many of 300 questions
get quotations from the right passage. If xquad/en/answers.json exists (question id: list of
spellings of the answer), the benchmark also counts quotations that contain one. The answers to the questions
about the sample documents are known: the benchmark counts the questions whose quotations contain the answer's
numbers, or most of its words if it has no number.
"""

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from collections_bench import ROOT, datasets_folder, empty_database, fill, read_collection

# isort: split
from django.core.management import call_command

from chat.quoting.questions.question import Question
from chat.quoting.sentence_selection import Sentence, best_sentences
from chatsite.accounts.principal import Principal
from ingestion.search.retrieval import (
    FoundPassage,
    search,
)

QUESTIONS = 300
SAMPLES = ROOT / "ingestion" / "samples"


def main() -> None:
    folder = datasets_folder(__doc__ or "")
    if (folder / "xquad" / "en").is_dir():
        xquad(folder)
    samples()


def xquad(folder: Path) -> None:
    collection = read_collection(folder, "xquad/en", "english")
    step = max(1, len(collection.questions) // QUESTIONS)
    right, contained = [0, 0], [0, 0]
    answers = read_answers(folder)
    with empty_database() as principal:
        identifiers = fill(collection)
        for key, question in islice(collection.questions.items(), 0, QUESTIONS * step, step):
            passages, quoted = quote(principal, question)
            sources = [identifiers[passages[sentence.passage].document_id] for sentence in quoted]
            right[0] += any(source in collection.relevant[key] for source in sources[:1])
            right[1] += any(source in collection.relevant[key] for source in sources)
            texts = [one_line(sentence.text) for sentence in quoted]
            wanted = [one_line(answer) for answer in answers.get(key, ())]
            contained[0] += any(answer in text for answer in wanted for text in texts[:1])
            contained[1] += any(answer in text for answer in wanted for text in texts)
    report("xquad/en, from the right passage", right, QUESTIONS)
    if answers:
        report("xquad/en, contains the answer (85%)", contained, QUESTIONS)


def read_answers(folder: Path) -> dict[str, list[str]]:
    """{id of a question: its answers}, if there is such a file."""
    path = folder / "xquad" / "en" / "answers.json"
    answers: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return answers


def one_line(text: str) -> str:
    return " ".join(text.split())


def samples() -> None:
    lines = (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [row for row in map(json.loads, lines) if row.get("answer") and row["reader"] == "everyone"]
    place, answer, reached = [0, 0], [0, 0], [0, 0]
    with empty_database() as principal:
        call_command("ingest", str(SAMPLES / "everyone"), everyone=True, verbosity=0)
        for row in questions:
            passages, quoted = quote(principal, row["question"])
            wanted = answer_words(row["answer"])
            labels = [f"[{passages[sentence.passage].label}]" in row["truth"] for sentence in quoted]
            place[0] += any(labels[:1])
            place[1] += any(labels)
            answer[0] += holds(wanted, quoted[0].text if quoted else "")
            answer[1] += holds(wanted, " ".join(sentence.text for sentence in quoted))
            reached[0] += any(f"[{passage.label}]" in row["truth"] for passage in passages[:1])
            reached[1] += any(f"[{passage.label}]" in row["truth"] for passage in passages)
    total = len(questions)
    report("samples, quoted from the right place", place, total)
    report("samples, quotation holds the answer", answer, total)
    report("samples, passages of the right place", reached, total, of="five passages")


def answer_words(answer: str) -> set[str]:
    """The numbers of an answer; if it has none, its longer words."""
    words = plain(answer).split()
    return {word for word in words if word.isdigit()} or {word[:6] for word in words if len(word) > 3}


def holds(wanted: set[str], text: str) -> bool:
    """Whether `text` contains all numbers of the answer or, if it has none, two thirds of its words."""
    words = plain(text).split()
    found = wanted & ({*words} | {word[:6] for word in words})
    return len(found) == len(wanted) or (
        not any(map(str.isdigit, wanted)) and 3 * len(found) >= 2 * len(wanted)
    )


def quote(principal: Principal, question: str) -> tuple[Sequence[FoundPassage], list[Sentence]]:
    found = search(principal, question)
    return found.passages, best_sentences(Question(question, synonyms=found.synonyms), found.passages)


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", text.lower()).split())


def report(name: str, right: Sequence[int], total: int, of: str = "two sentences") -> None:
    print(
        f"{name:40}{right[0] / total:8.1%} first {right[1] / total:8.1%} {of} ({total} questions)",
        flush=True,
    )


if __name__ == "__main__":
    main()
