"""How well search finds, and how long it takes: nDCG@10 through the product's own code on public collections.

python benchmarks/bench_retrieval.py [folder of the collections]
"""

import time
from pathlib import Path
from statistics import quantiles

import bm25s
from collections_bench import Collection, datasets_folder, empty_database, fill, ndcg, read_collection

from chatsite.accounts.principal import Principal
from ingestion.search.fusion import Mode
from ingestion.search.retrieval import search
from ingestion.search.tokens import search_text

COLLECTIONS = (
    ("scifact", "english"),
    ("xquad/en", "english"),
    ("xquad/de", "german"),
    ("xquad/zh", "simple"),
)
MODES: tuple[Mode, ...] = ("hybrid", "text", "vectors")
TARGETS = {"scifact": 0.71, "xquad/en": 0.98, "xquad/de": 0.94, "xquad/zh": 0.97}


def main() -> None:
    folder = datasets_folder(__doc__ or "")
    print(
        f"{'collection':12}{'target':>8}{'hybrid':>8}{'text':>8}{'vectors':>9}{'BM25':>8}"
        f"{'p50 ms':>8}{'p95 ms':>8}{'none':>6}"
    )
    for name, language in COLLECTIONS:
        if (folder / name).is_dir():
            measure(folder, name, language)


def measure(folder: Path, name: str, language: str) -> None:
    collection = read_collection(folder, name, language)
    with empty_database() as principal:
        identifiers = fill(collection)
        scores = {}
        for mode in MODES:
            scores[mode], times, empty = judge(collection, identifiers, principal, mode)
            if mode == "hybrid":
                cuts, unanswered = quantiles(times, n=20), empty
    print(
        f"{name:12}{TARGETS[name]:8.2f}{scores['hybrid']:8.4f}{scores['text']:8.4f}{scores['vectors']:9.4f}"
        f"{yardstick(collection):8.4f}{cuts[9]:8.1f}{cuts[18]:8.1f}{unanswered:6}",
        flush=True,
    )


def judge(
    collection: Collection, identifiers: dict[int, str], principal: Principal, mode: Mode
) -> tuple[float, list[float], int]:
    """Mean nDCG@10, milliseconds of each search, and how many questions got nothing at all."""
    scores, times, empty = [], [], 0
    for key, question in collection.questions.items():
        started = time.perf_counter()
        found = search(principal, question, mode=mode, top=10)
        times.append((time.perf_counter() - started) * 1000)
        empty += not found.passages
        ranking = [identifiers[passage.document_id] for passage in found.passages]
        scores.append(ndcg(ranking, collection.relevant[key]))
    return sum(scores) / len(scores), times, empty


def yardstick(collection: Collection) -> float:
    """BM25 of a reference library, on the same words, with its own stop words and no stemming."""
    stopwords = {"english": "en", "german": "de"}.get(collection.language, [])
    keys = list(collection.texts)
    texts = [search_text(f"{title} {text}") for title, text in collection.texts.values()]
    questions = [search_text(text, stored=False) for text in collection.questions.values()]
    pattern = r"(?u)\b\w+\b"
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords, pattern, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(questions, stopwords, pattern, show_progress=False)
    places, _ = index.retrieve(tokens, k=10, show_progress=False)
    scores = [
        ndcg([keys[place] for place in row], collection.relevant[key])
        for key, row in zip(collection.questions, places, strict=True)
    ]
    return sum(scores) / len(scores)


if __name__ == "__main__":
    main()
