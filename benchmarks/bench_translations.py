"""German questions about English passages, and the reverse: with the list of words, and with a dictionary.

    python benchmarks/bench_translations.py [--every 4] [--dictionary FILE] [folder of the collections]

The questions and passages of xquad are translations of each other. Prints nDCG@10, the shares of questions
with the right passage first, among the first five, and without a result, the median and 95th percentile of
the time of a search, and the results of off-topic questions.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from collections_bench import ROOT, empty_database, fill, ndcg, read_collection
from django.test import override_settings

from ingestion.evaluation.judging import Settings, refusals_of
from ingestion.evaluation.question_files import read_lines
from ingestion.search.dictionary import NAME, compile_dictionary
from ingestion.search.retrieval import search
from ingestion.search.translations import language_of, translations_of_form

LANGUAGES = {"de": "german", "en": "english"}
OFF_TOPIC = ROOT / "ingestion" / "evaluation" / "off_topic.txt"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="?", type=Path, default=ROOT.parent / "shared" / "datasets")
    parser.add_argument("--every", type=int, default=4, help="Ask only every Nth question.")
    parser.add_argument("--dictionary", type=Path, default=Path("/usr/share/trans/de-en"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = {"list of words": ""}
        if options.dictionary.is_file():
            started = time.process_time()
            words = compile_dictionary(options.dictionary, Path(folder) / NAME)
            print(f"{words:,} words compiled with {time.process_time() - started:.0f} s of CPU time")
            sources["dictionary"] = str(options.dictionary)
        for asked, held in (("de", "en"), ("en", "de")):
            for name, source in sources.items():
                translations_of_form.cache_clear()
                with override_settings(DICTIONARY=source, DATA_DIR=Path(folder), EMBEDDING_MODEL_DIR=""):
                    measure(options.datasets, asked, held, name, options.every)


def measure(datasets: Path, asked: str, held: str, name: str, every: int) -> None:
    questions = read_collection(datasets, f"xquad/{asked}", LANGUAGES[asked]).questions
    collection = read_collection(datasets, f"xquad/{held}", LANGUAGES[held])
    others = [line for line in read_lines(OFF_TOPIC) if language_of(line) == LANGUAGES[asked]]
    scores, times, first, five, nothing = [], [], 0, 0, 0
    with empty_database() as principal:
        identifiers = fill(collection)
        for key in list(questions)[::every]:
            started = time.perf_counter()
            found = search(principal, questions[key], top=10).passages
            times.append((time.perf_counter() - started) * 1000)
            ranking = [identifiers[passage.document_id] for passage in found]
            relevant = collection.relevant[key]
            scores.append(ndcg(ranking, relevant))
            first += bool({*ranking[:1]} & {*relevant})
            five += bool({*ranking[:5]} & {*relevant})
            nothing += not ranking
        refused = refusals_of(principal, others, Settings())
    number = len(scores)
    print(
        f"{asked} questions, {held} passages, {name}: {number} questions, nDCG@10 {sum(scores) / number:.3f};"
        f" right passage first {first / number:.1%}, among five {five / number:.1%},"
        f" nothing {nothing / number:.1%};"
        f" p50 {median(times):.0f} ms, p95 {quantiles(times, n=20)[18]:.0f} ms;"
        f" of {refused.asked} about other things {refused.refused} find nothing,"
        f" {refused.unsure} nothing sure",
        flush=True,
    )


if __name__ == "__main__":
    main()
