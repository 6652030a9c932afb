"""How well search finds, and how long it takes: nDCG@10 on public collections, beside stemmed BM25.

python benchmarks/bench_retrieval.py [folder of the collections]
"""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import quantiles

import bm25s
from collections_bench import Collection, datasets_folder, empty_database, fill, ndcg, read_collection
from django.db import connection

from chatsite.accounts.principal import Principal
from ingestion.search.fusion import Mode
from ingestion.search.retrieval import search
from ingestion.search.tokens import search_text

COLLECTIONS = (
    ("scifact", "english"),
    ("cisi", "english"),
    ("cacm", "english"),
    ("xquad/en", "english"),
    ("xquad/de", "german"),
    ("xquad/zh", "simple"),
)
MODES: tuple[Mode, ...] = ("hybrid", "text", "vectors")
STEM = """
    SELECT coalesce((ts_lexize(%s, each.word))[1], each.word)
    FROM unnest(%s::text[]) WITH ORDINALITY AS each (word, number)
    ORDER BY each.number
"""


def main() -> None:
    folder = datasets_folder(__doc__ or "")
    print(
        f"{'collection':12}{'hybrid':>8}{'text':>8}{'vectors':>9}{'BM25':>8}{'lead':>9}"
        f"{'p50 ms':>8}{'p95 ms':>8}{'none':>6}{'unsure':>8}"
    )
    leads = [measure(folder, name, language) for name, language in COLLECTIONS if (folder / name).is_dir()]
    english = [lead for lead, (_, language) in zip(leads, COLLECTIONS, strict=False) if language == "english"]
    print(f"mean lead over stemmed BM25, English: {sum(english) / len(english):+.4f}")


def measure(folder: Path, name: str, language: str) -> float:
    """Print a line of figures; gives by how much the hybrid search is ahead of the yardstick."""
    collection = read_collection(folder, name, language)
    with empty_database() as principal:
        identifiers = fill(collection)
        scores = {}
        for mode in MODES:
            scores[mode], times, empty, doubtful = judge(collection, identifiers, principal, mode)
            if mode == "hybrid":
                cuts, unanswered, unsure = quantiles(times, n=20), empty, doubtful
        bm25 = yardstick(collection)
    print(
        f"{name:12}{scores['hybrid']:8.4f}{scores['text']:8.4f}{scores['vectors']:9.4f}"
        f"{bm25:8.4f}{scores['hybrid'] - bm25:+9.4f}{cuts[9]:8.1f}{cuts[18]:8.1f}{unanswered:6}{unsure:8}",
        flush=True,
    )
    return scores["hybrid"] - bm25


def judge(
    collection: Collection, identifiers: dict[int, str], principal: Principal, mode: Mode
) -> tuple[float, list[float], int, int]:
    """Mean nDCG@10, milliseconds of each search, and how many questions got nothing, or nothing sure."""
    scores, times, empty, unsure = [], [], 0, 0
    for key, question in collection.questions.items():
        started = time.perf_counter()
        found = search(principal, question, mode=mode, top=10)
        times.append((time.perf_counter() - started) * 1000)
        empty += not found.passages
        unsure += bool(found.passages) and not found.sure
        ranking = [identifiers[passage.document_id] for passage in found.passages]
        scores.append(ndcg(ranking, collection.relevant[key]))
    return sum(scores) / len(scores), times, empty, unsure


def yardstick(collection: Collection) -> float:
    """BM25 of a reference library, on the same words, with its own stop words, stemmed by Snowball."""
    stopwords = {"english": "en", "german": "de"}.get(collection.language, [])
    keys = list(collection.texts)
    texts = [search_text(f"{title} {text}") for title, text in collection.texts.values()]
    questions = [search_text(text, stored=False) for text in collection.questions.values()]
    pattern = r"(?u)\b\w+\b"
    index = bm25s.BM25()
    stemmer = partial(stemmed, f"{collection.language}_stem" if stopwords else "simple")
    words = bm25s.tokenize(texts, stopwords, pattern, stemmer=stemmer, show_progress=False)
    index.index(words, show_progress=False)
    tokens = bm25s.tokenize(questions, stopwords, pattern, stemmer=stemmer, show_progress=False)
    places, _ = index.retrieve(tokens, k=10, show_progress=False)
    scores = [
        ndcg([keys[place] for place in row], collection.relevant[key])
        for key, row in zip(collection.questions, places, strict=True)
    ]
    return sum(scores) / len(scores)


def stemmed(dictionary: str, words: Sequence[str]) -> list[str]:
    """Each word by one of PostgreSQL's dictionaries."""
    with connection.cursor() as cursor:
        cursor.execute(STEM, [dictionary, list(words)])
        return [stem for (stem,) in cursor.fetchall()]


if __name__ == "__main__":
    main()
