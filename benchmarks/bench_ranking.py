"""Measure whether a local score of passages improves the order of the search.

python benchmarks/bench_ranking.py [folder of the collections]

To the score of each of the 30 best candidates of a search, adds a share of the score of its best sentence
(the question's words in and around it, its similarity to the question). Prints nDCG@10 for each share,
the difference from the search's own order, and its 95 % confidence interval.
"""

import random
from itertools import islice
from pathlib import Path

from collections_bench import datasets_folder, empty_database, fill, ndcg, read_collection

from chat.quoting.questions.question import Question
from chat.quoting.sentence_selection import best_sentences_per_passage
from chatsite.accounts.principal import Principal
from ingestion.search.retrieval import search

COLLECTIONS = (("scifact", "english", 1), ("xquad/en", "english", 4), ("xquad/de", "german", 4))
SHARES = (0.1, 0.25, 0.5, 1.0)
CANDIDATES = 30
SAMPLES = 1000


def main() -> None:
    folder = datasets_folder(__doc__ or "")
    print(f"{'collection':12}{'share':>7}{'nDCG@10':>9}{'change':>9}{'between':>18}")
    for name, language, step in COLLECTIONS:
        if (folder / name).is_dir():
            measure(folder, name, language, step)


def measure(folder: Path, name: str, language: str, step: int) -> None:
    collection = read_collection(folder, name, language)
    scores: dict[float, list[float]] = {share: [] for share in (0.0, *SHARES)}
    with empty_database() as principal:
        identifiers = fill(collection)
        for key, question in islice(collection.questions.items(), 0, None, step):
            found = candidates(principal, question)
            for share, values in scores.items():
                order = sorted(found, key=lambda item: -item[1] - share * item[2])
                ranking = [identifiers[document] for document, _, _ in order]
                values.append(ndcg(ranking, collection.relevant[key]))
    for share, values in scores.items():
        changes = [value - own for value, own in zip(values, scores[0.0], strict=True)]
        low, high = bounds(changes)
        mean = sum(values) / len(values)
        change = sum(changes) / len(changes)
        print(f"{name:12}{share:7.2f}{mean:9.4f}{change:+9.4f}  [{low:+.4f}, {high:+.4f}]", flush=True)


def candidates(principal: Principal, question: str) -> list[tuple[int, float, float]]:
    """Document, score of the search, and score of the best sentence."""
    passages = search(principal, question, top=CANDIDATES).passages
    best = best_sentences_per_passage(Question(question), passages, 1)
    return [
        (passage.document_id, passage.score, sentences[0].score if sentences else 0.0)
        for passage, sentences in zip(passages, best, strict=True)
    ]


def bounds(changes: list[float]) -> tuple[float, float]:
    """The confidence interval of the mean, computed by resampling the questions."""
    chance = random.Random(1)
    means = sorted(sum(chance.choices(changes, k=len(changes))) / len(changes) for _ in range(SAMPLES))
    return means[SAMPLES // 40], means[-SAMPLES // 40]


if __name__ == "__main__":
    main()
