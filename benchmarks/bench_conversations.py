"""Whether follow-ups and everyday words find the right place, without a language model.

    python benchmarks/bench_conversations.py [folder of the collections]

The files in `questions/` were written without knowledge of the code and the word list that they test. A
conversation has two or three questions, of which the last depends on the ones before. A conversation counts
if the place that answers the last question is among the first five passages. EMBEDDING_MODEL_DIR is used if
it is set.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collections_bench import MODEL_FOLDER, datasets_folder, empty_database, fill, read_collection

# isort: split
from bench_quoting import SAMPLES
from django.core.management import call_command
from django.test import override_settings

from chat.quoting.quoting_model import QuotingModel
from chat.requests import EarlierMessage
from chatsite.accounts.principal import Principal
from ingestion.search.retrieval import search

QUESTIONS = Path(__file__).with_name("questions")
FIRST = 5  # a question counts if the right passage is among this many
CONVERSATIONS = ("conversations_first", "conversations_second")
EVERYDAY = ("everyday_words", "everyday_words_second", "everyday_words_third")

Row = dict[str, Any]


def main() -> None:
    folder = datasets_folder(__doc__ or "")
    conversations = {name: read(name) for name in CONVERSATIONS}
    places: dict[str, list[tuple[Row, int]]] = {name: [] for name in (*CONVERSATIONS, *EVERYDAY)}
    with empty_database() as principal:
        call_command("ingest", str(SAMPLES / "everyone"), everyone=True, verbosity=0)
        for name, rows in conversations.items():
            places[name] += [(row, followed(principal, row)) for row in rows if row["about"] == "samples"]
        for name in EVERYDAY:
            for row in read(name):  # the questions of all languages are about the same English documents
                language = f", {row['language']}" if "language" in row else ""
                places.setdefault(f"{name}{language}", []).append((row, asked(principal, row)))
    collection = read_collection(folder, "xquad/en", "english")
    with empty_database() as principal:
        names = {str(number): key for number, key in fill(collection).items()}
        for name, rows in conversations.items():
            places[name] += [
                (row, followed(principal, row, names)) for row in rows if row["about"] == collection.name
            ]
    for name, found in places.items():
        report(name, found)


def read(name: str) -> list[Row]:
    return [json.loads(line) for line in (QUESTIONS / f"{name}.jsonl").read_text("utf-8").splitlines()]


def followed(principal: Principal, row: Row, names: dict[str, str] | None = None) -> int:
    """The rank of the right passage for the last question; 0 if it is not among the first passages."""
    *before, last = row["turns"]
    earlier = [
        EarlierMessage(role, text)
        for question in before
        for role, text in (("user", question), ("assistant", "…"))
    ]
    query = asyncio.run(QuotingModel().search_query(last, earlier))
    return place_of(row["places"], labels(principal, query.text, query.context, names))


def asked(principal: Principal, row: Row) -> int:
    return place_of(row["places"], labels(principal, row["question"]))


def labels(
    principal: Principal, query: str, context: str = "", names: dict[str, str] | None = None
) -> list[str]:
    found = search(principal, query, context=context, top=FIRST).passages
    if names is None:
        return [passage.label for passage in found]
    return [names[str(passage.document_id)] for passage in found]


def place_of(wanted: Sequence[str], found: Sequence[str]) -> int:
    """The best rank of the wanted places, or 0; a file name means all places in the file."""
    for place, label in enumerate(found, 1):
        if label in wanted or label.partition("#")[0] in wanted:
            return place
    return 0


def report(name: str, found: Sequence[tuple[Row, int]]) -> None:
    first, among = sum(place == 1 for _, place in found), sum(place > 0 for _, place in found)
    print(f"{name:24}{first:3} first, {among:3} among {FIRST}, of {len(found)}", flush=True)
    for row, place in found:
        if not place:
            print(f"    missed: {' / '.join(row.get('turns') or [row['question']])}", flush=True)


if __name__ == "__main__":
    with override_settings(EMBEDDING_MODEL_DIR=MODEL_FOLDER):
        main()
