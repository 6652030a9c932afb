"""The quality and time of search on public collections: nDCG@10, compared with stemmed BM25.

    python benchmarks/bench_retrieval.py [--only NAME …] [--sizes N …] [folder of the collections]

Prints for each collection, and with `--sizes` for parts of it, nDCG@10 of each mode of search and of BM25,
and the time of a search. Also prints how often the collection's own questions, and sixty questions about
other things, find nothing or only unsure results. Each text is one passage here, as for BM25.
`manage.py evaluate` splits texts into passages, as a site does, and then more questions find nothing.
EMBEDDING_MODEL_DIR is used if it is set.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import quantiles

import bm25s
from collections_bench import (
    MODEL_FOLDER,
    ROOT,
    Collection,
    empty_database,
    fill,
    ndcg,
    part_of,
    read_collection,
)
from django.db import connection
from django.test import override_settings

from chatsite.accounts.principal import Principal
from ingestion.evaluation.judging import Settings, refusals_of
from ingestion.evaluation.question_files import read_lines
from ingestion.search.ranking.fusion import Mode
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
OFF_TOPIC = ROOT / "ingestion" / "evaluation" / "off_topic.txt"
STEM = """
    SELECT coalesce((ts_lexize(%s, each.word))[1], each.word)
    FROM unnest(%s::text[]) WITH ORDINALITY AS each (word, number)
    ORDER BY each.number
"""


def main() -> None:
    options = read_options()
    chosen = [
        (name, language) for name, language in COLLECTIONS if name in (options.only or dict(COLLECTIONS))
    ]
    others = read_lines(OFF_TOPIC)
    print(
        f"{'collection':12}{'passages':>9}{'hybrid':>8}{'text':>8}{'vectors':>9}{'BM25':>8}{'lead':>9}"
        f"{'p50 ms':>8}{'p95 ms':>8}{'own: none':>11}{'unsure':>8}{'other: none':>13}{'unsure':>8}"
    )
    leads = []
    for name, language in chosen:
        if not (options.datasets / name).is_dir():
            continue
        collection = read_collection(options.datasets, name, language)
        for size in options.sizes:
            if size < len(collection.texts):
                measure(part_of(collection, options.datasets, size), others)
        lead = measure(collection, others)
        leads += [lead] if language == "english" else []
    if leads:
        print(f"mean lead over stemmed BM25, English: {sum(leads) / len(leads):+.4f}")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="?", type=Path, default=ROOT.parent / "shared" / "datasets")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure only these collections")
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[], metavar="N", help="also measure parts of N texts"
    )
    return parser.parse_args()


def measure(collection: Collection, others: Sequence[str]) -> float:
    """Print a line of figures; return the lead of the hybrid search over BM25."""
    with empty_database() as principal:
        identifiers = fill(collection)
        scores = {}
        for mode in MODES:
            scores[mode], times, empty, doubtful = judge(collection, identifiers, principal, mode)
            if mode == "hybrid":
                cuts, unanswered, unsure = quantiles(times, n=20), empty, doubtful
        refused = refusals_of(principal, others, Settings())
        bm25 = baseline(collection)
    asked = len(collection.questions)
    print(
        f"{collection.name:12}{len(collection.texts):9,}{scores['hybrid']:8.4f}{scores['text']:8.4f}"
        f"{scores['vectors']:9.4f}{bm25:8.4f}{scores['hybrid'] - bm25:+9.4f}{cuts[9]:8.1f}{cuts[18]:8.1f}"
        f"{unanswered / asked:11.1%}{unsure / asked:8.1%}"
        f"{refused.refused / refused.asked:13.1%}{refused.unsure / refused.asked:8.1%}",
        flush=True,
    )
    return scores["hybrid"] - bm25


def judge(
    collection: Collection, identifiers: dict[int, str], principal: Principal, mode: Mode
) -> tuple[float, list[float], int, int]:
    """Mean nDCG@10, milliseconds of each search, and how many questions get no result, or no sure one."""
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


def baseline(collection: Collection) -> float:
    """nDCG@10 of a reference library's BM25, with its own stop words and Snowball's stems."""
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
    """Stem each word with the named dictionary of PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute(STEM, [dictionary, list(words)])
        return [stem for (stem,) in cursor.fetchall()]


if __name__ == "__main__":
    with override_settings(EMBEDDING_MODEL_DIR=MODEL_FOLDER):
        main()
