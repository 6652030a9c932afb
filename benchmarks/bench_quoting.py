"""How often the two quoted sentences answer, without a language model.

    python benchmarks/bench_quoting.py [folder of the collections]

XQuAD here has no answers, only the passage of each: counted are 300 questions whose quotations come from the
right passage. The sample documents have answers: counted are the questions whose quotations contain them.
"""

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from collections_bench import ROOT, datasets_folder, empty_database, fill, read_collection

# isort: split
from django.core.management import call_command

from chatsite.accounts.principals import Principal
from ingestion.retrieval import FoundPassage, search
from ingestion.sentences import Sentence, best_sentences

QUESTIONS = 300
SAMPLES = ROOT / "ingestion" / "samples"


def main() -> None:
    folder = datasets_folder(__doc__ or "")
    if (folder / "xquad" / "en").is_dir():
        xquad(folder)
    samples()


def xquad(folder: Path) -> None:
    collection = read_collection(folder, "xquad/en", "english")
    step = len(collection.questions) // QUESTIONS
    right = [0, 0]
    with empty_database() as principal:
        identifiers = fill(collection)
        for key, question in islice(collection.questions.items(), 0, QUESTIONS * step, step):
            passages, quoted = quote(principal, question)
            sources = [identifiers[passages[sentence.passage].document_id] for sentence in quoted]
            right[0] += any(source in collection.relevant[key] for source in sources[:1])
            right[1] += any(source in collection.relevant[key] for source in sources)
    report("xquad/en, from the right passage", right, QUESTIONS)


def samples() -> None:
    lines = (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [row for row in map(json.loads, lines) if row.get("answer") and row["reader"] == "everyone"]
    right = [0, 0]
    reached = 0
    with empty_database() as principal:
        call_command("ingest", str(SAMPLES / "everyone"), everyone=True, verbosity=0)
        for row in questions:
            passages, quoted = quote(principal, row["question"])
            wanted = plain(row["answer"])
            reached += any(wanted in plain(passage.content) for passage in passages)
            right[0] += any(wanted in plain(sentence.text) for sentence in quoted[:1])
            right[1] += any(wanted in plain(sentence.text) for sentence in quoted)
    report("samples, holding the answer", right, len(questions))
    print(f"{'samples, answer among the 5 passages':40}{reached / len(questions):8.1%}")


def quote(principal: Principal, question: str) -> tuple[Sequence[FoundPassage], list[Sentence]]:
    passages = search(principal, question).passages
    return passages, best_sentences(question, passages)


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", text.lower()).split())


def report(name: str, right: Sequence[int], total: int) -> None:
    print(
        f"{name:40}{right[0] / total:8.1%} first {right[1] / total:8.1%} two sentences ({total} questions)",
        flush=True,
    )


if __name__ == "__main__":
    main()
