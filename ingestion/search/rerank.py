"""Compares the words of texts with those of a question, by meaning and by position.

Each word of the question is matched with the most similar word of the text: itself, or one with a similar
vector. Adjacent words of the question should be close together in the text, too.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ingestion.embedding.word_vectors import word_vectors

from .tokens import (
    has_unspaced_script,
    units,
)

WINDOW = 8  # words within which a pair counts as close together
MAX_TEXT_UNITS = 1_000  # of one text
MAX_QUERY_UNITS = 32  # of a question
MAX_CACHED_TEXTS = 500  # some six kilobytes each: a site's questions find the same passages again
# Number of assumed further texts without the word. The compared texts alone would make the words of the
# question's subject look common, because most of them are about it.
OTHERS = 500
SYNONYM = 0.8  # similarity of a word of documents to the everyday word that it stands for
LENGTH = 0.1  # a text twice as long is more likely by this amount to have a similar word

Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RerankScores:
    """For each text, from 0 to about 1: how well its words match the question's, and how well adjacent words
    match close together.

    `closest` is how well the words of the best text match.
    """

    words: Numbers
    neighbours: Numbers
    closest: float = 0.0


def rerank_scores(
    asked: Sequence[str], texts: Sequence[str], everyday: Mapping[str, Sequence[str]] | None = None
) -> RerankScores:
    """Score the texts for the words `asked` (units, in the order of the question).

    `everyday` maps some of them to the words that documents use instead.
    """
    asked = asked[:MAX_QUERY_UNITS]
    cut = [_units_of_passage(text) for text in texts]
    if not asked or not texts:
        return RerankScores(np.zeros(len(texts), np.float32), np.zeros(len(texts), np.float32))
    # Empty positions between two texts separate them by WINDOW, so that all are compared at once.
    starts = np.cumsum([0, *(len(text) + WINDOW for text in cut)])[:-1]
    alike = _alike(asked, cut, everyday or {})
    best = np.maximum.reduceat(alike, starts, axis=1)
    # Words of the question weigh more if fewer of the texts have them.
    found = (best >= 0.999).sum(axis=1)
    rarity = (len(texts) + OTHERS - found + 0.5) / (found + 0.5)
    weights: Numbers = np.log(1 + rarity).astype(np.float32)
    lengths = np.array([max(1, len(text)) for text in cut])
    matched = weights @ best / weights.sum()
    words = matched * (lengths / lengths.mean()) ** -LENGTH
    neighbours = np.zeros(len(texts), np.float32)
    if len(asked) > 1:
        # The best match of two adjacent words of the question within WINDOW words of the text.
        near = alike.copy()
        for step in range(1, WINDOW):
            np.maximum(near[:, :-step], alike[:, step:], out=near[:, :-step])
        pairs = np.maximum.reduceat(near[1:] * near[:-1], starts, axis=1)
        worth = weights[1:] + weights[:-1]
        neighbours = worth @ pairs / worth.sum()
    return RerankScores(words, neighbours, float(matched.max()))


@functools.lru_cache(maxsize=MAX_CACHED_TEXTS)
def _units_of_passage(text: str) -> Sequence[str]:
    return units(text)[:MAX_TEXT_UNITS]


def _alike(
    asked: Sequence[str], texts: Sequence[Sequence[str]], everyday: Mapping[str, Sequence[str]]
) -> Numbers:
    """Similarity (0 to 1) of each query word to each word of all texts, padded by WINDOW columns."""
    known = list(dict.fromkeys(chain.from_iterable(texts)))
    places = dict(zip(known, range(len(known)), strict=True))
    numbers: list[int] = []
    for text in texts:
        numbers += map(places.__getitem__, text)
        numbers += [-1] * WINDOW
    table = np.zeros((len(asked), len(known) + 1), np.float32)  # the last column is the empty position
    table[:, :-1] = np.clip(word_vectors(asked) @ word_vectors(known).T, 0, 1) if known else 0
    for row, unit in enumerate(asked):
        if has_unspaced_script(unit):  # a single character means too little for similarity
            table[row] = 0
        if unit in places:
            table[row, places[unit]] = 1
    alike = table[:, numbers]
    for phrase, others in everyday.items():
        rows = [row for row, unit in enumerate(asked) if unit in phrase.split()]
        for other in others if rows else ():
            _raise(alike, rows, [places.get(unit, -2) for unit in other.split()], np.array(numbers))
    return alike


def _raise(alike: Numbers, rows: Sequence[int], phrase: Sequence[int], numbers: NDArray[np.int64]) -> None:
    """Give the words of a phrase, where a text has all of them in order, the similarity SYNONYM."""
    starts = np.flatnonzero(numbers == phrase[0])
    for step, number in enumerate(phrase[1:], 1):
        starts = starts[starts + step < len(numbers)]
        starts = starts[numbers[starts + step] == number]
    for row in rows:
        for step in range(len(phrase)):
            alike[row, starts + step] = np.maximum(alike[row, starts + step], SYNONYM)
