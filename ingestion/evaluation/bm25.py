"""BM25 over stemmed words: the baseline for search.

It searches the same passages as the site's search, under the same rights, with the stems and stop words of
the site's index. It does not use the site's ranking: this module computes scores with Lucene's idf.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.search.stems import LANGUAGES, stems_by_language
from ingestion.search.tokens import search_text

K1 = 1.5
B = 0.75
NAME = "stemmed BM25"

Postings = tuple[NDArray[np.int64], NDArray[np.float64]]  # passage numbers, and the word's score in each


@dataclass(frozen=True, slots=True)
class Place:
    """A passage's document, and its anchor in that document."""

    document_id: int
    anchor: str


class Bm25:
    """An in-memory index of all passages of unexpired documents that a person may read."""

    def __init__(self, principal: Principal) -> None:
        passages = rows("readable_words", {"user_id": principal.user_id, "today": timezone.localdate()})
        self._places = [Place(row["document_id"], row["anchor"]) for row in passages]
        self._languages = sorted({row["language"] for row in passages})
        lengths = np.array([sum(row["times"]) for row in passages], dtype=np.float64)
        norms = K1 * (1 - B + B * lengths / max(lengths.mean(), 1)) if passages else lengths
        found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for number, row in enumerate(passages):
            for lexeme, times in zip(row["lexemes"], row["times"], strict=True):
                found[row["language"], lexeme].append((number, times))
        self._postings = {word: self._scored(places, norms) for word, places in found.items()}

    def best(self, question: str, count: int) -> list[Place]:
        """The best places, ordered by their best passage; each has a word of the question."""
        scores = np.zeros(len(self._places))
        for row in self._lexemes(question):
            if postings := self._postings.get((row["language"], row["lexeme"])):
                scores[postings[0]] += row["times"] * postings[1]
        order = np.argsort(-scores, kind="stable")
        found = dict.fromkeys(self._places[number] for number in order if scores[number] > 0)
        return list(found)[:count]

    def _lexemes(self, question: str) -> list[dict[str, Any]]:
        """The question's words as each language stems them."""
        words = search_text(question, stored=False)
        others = [language for language in self._languages if language not in LANGUAGES]
        found = rows("question_lexemes", {"text": words, "languages": others})
        for language in set(self._languages) & set(LANGUAGES):
            stems = Counter(filter(None, stems_by_language(words.split())[language]))
            found += [{"language": language, "lexeme": stem, "times": times} for stem, times in stems.items()]
        return found

    def _scored(self, places: list[tuple[int, int]], norms: NDArray[np.float64]) -> Postings:
        numbers = np.array([number for number, _ in places])
        times = np.array([times for _, times in places], dtype=np.float64)
        idf = math.log(1 + (len(norms) - len(places) + 0.5) / (len(places) + 0.5))
        return numbers, idf * times * (K1 + 1) / (times + norms[numbers])
