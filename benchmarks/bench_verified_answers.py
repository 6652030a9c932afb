"""Measures how often a question gets the verified answer to another one, rightly or wrongly.

    PYTHONPATH=. python benchmarks/bench_verified_answers.py [folder] [--all]

Our own pairs are in benchmarks/verified_answers. The folder may contain `semantic.tsv` and `negational.tsv`
of BoolQ from the BECEL collection: questions with paraphrases, and questions with their negations. From
these, the benchmark derives similar pairs with different answers: a question and the same one with other
numbers, and a question and the paraphrase of another one. --all prints the pairs that were misjudged.
"""

import csv
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
django.setup()

from chat.verification.same_question import asks_the_same  # noqa: E402 (needs the settings)

OWN = Path(__file__).parent / "verified_answers"
CERTAINTY = 1.96  # number of standard deviations for an interval of 95 %
CROSSED = 300  # questions that are all compared with each other
Pair = tuple[str, str, str]  # kind, question, question


def main() -> None:
    shows = "--all" in sys.argv
    folders = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("--")]
    for name in ("pairs", "pairs_second", "pairs_third"):
        report(name, list(read_own(name)), shows)
    for folder in folders:
        report("BoolQ in BECEL", list(published(folder)), shows)


def read_own(name: str) -> Iterator[Pair]:
    for line in (OWN / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
        kind, one, other = line.split("\t")
        yield kind, one, other


def published(folder: Path) -> Iterator[Pair]:
    paraphrases = [
        (row["question"], row["question_paraphrase"])
        for row in rows(folder / "semantic.tsv")
        if row["question"].strip() != row["question_paraphrase"].strip()
    ]
    for question, paraphrase in paraphrases:
        yield "same", question, paraphrase
    for row in rows(folder / "negational.tsv"):
        yield "not", row["question"], row["question_neg"]
    for question, _ in paraphrases:
        changed = re.sub(r"\d+", lambda match: str(int(match[0]) + 1), question)
        if changed != question:
            yield "number", question, changed
    for place, (question, _) in enumerate(paraphrases[:CROSSED]):
        for other, (_, paraphrase) in enumerate(paraphrases[:CROSSED]):
            if place != other and question != paraphrases[other][0]:
                yield "other", question, paraphrase


def rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def report(name: str, pairs: list[Pair], shows: bool) -> None:
    begun = time.perf_counter()
    matched = [asks_the_same(one, other) for _, one, other in pairs]
    seconds = time.perf_counter() - begun
    print(f"{name}: {len(pairs):,} pairs in {seconds:.2f} s")
    for kind in dict.fromkeys(kind for kind, _, _ in pairs):
        found = [match for match, pair in zip(matched, pairs, strict=True) if pair[0] == kind]
        print(f"  {kind:8} matched {share(sum(found), len(found))}")
    given = [pair[0] == "same" for match, pair in zip(matched, pairs, strict=True) if match]
    print(f"  precision {share(sum(given), len(given))}")
    if shows:
        for match, (kind, one, other) in zip(matched, pairs, strict=True):
            if match != (kind == "same"):
                print(f"    {kind}: {one} | {other}")


def share(part: int, whole: int) -> str:
    """The share with its interval by Wilson's method."""
    if not whole:
        return "0 of 0"
    mean, square = part / whole, CERTAINTY**2
    middle = (mean + square / (2 * whole)) / (1 + square / whole)
    spread = math.sqrt(mean * (1 - mean) / whole + square / (4 * whole**2)) * CERTAINTY / (1 + square / whole)
    low, high = max(0.0, middle - spread), min(1.0, middle + spread)
    return f"{part} of {whole} = {mean:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
