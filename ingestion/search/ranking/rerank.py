"""Compares the words of texts with those of a question, by meaning and by position.

Each word of the question is matched with the most similar word of the text, which is the same word or one
with a similar vector. Words that are adjacent in the question should be close together in the text, too.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingestion.embedding.word_vectors import (
    generation,
    numbered_vectors,
    word_numbers,
    word_vectors,
)
from ingestion.search.tokens import has_unspaced_script, units

WINDOW = 8  # a pair of words counts as close together within this many words
MAX_TEXT_UNITS = 1_000  # words that are compared in a text
MAX_QUERY_UNITS = 32  # words that are compared in a question
MAX_CACHED_TEXTS = 500  # about six kilobytes each; cached because different questions find the same passages
# A word's frequency is computed as if there were this many additional texts without it. Most of the compared
# texts are about the subject of the question, so its words would otherwise seem common.
OTHERS = 500
SYNONYM = 0.8  # similarity of an everyday word to the word that documents use for it
LENGTH = 0.1  # exponent by which similarities grow by chance with the length of a text

Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RerankScores:
    """How well texts match the words of a question, from 0 to about 1.

    For each text, `words` says how well its words match, and `neighbours` how well adjacent words of the
    question match words that are close together in the text. `closest` says how well the words of the best
    text match, `first` those of the first text.
    """

    words: Numbers
    neighbours: Numbers
    closest: float = 0.0
    first: float = 0.0


def rerank_scores(
    asked: Sequence[str], texts: Sequence[str], everyday: Mapping[str, Sequence[str]] | None = None
) -> RerankScores:
    """Score the texts for the words `asked` (units, in the order of the question).

    `everyday` maps some of them to the words that documents use instead.
    """
    asked = asked[:MAX_QUERY_UNITS]
    if not asked or not texts:
        return RerankScores(np.zeros(len(texts), np.float32), np.zeros(len(texts), np.float32))
    while (compared := _alike(asked, texts, everyday or {})) is None:
        pass  # the words were renumbered meanwhile, so compare again
    alike, sizes = compared
    starts = np.cumsum([0, *sizes])[:-1]
    best = np.maximum.reduceat(alike, starts, axis=1)
    # Words of the question weigh more if fewer of the texts have them.
    found = (best >= 0.999).sum(axis=1)
    rarity = (len(texts) + OTHERS - found + 0.5) / (found + 0.5)
    weights: Numbers = np.log(1 + rarity).astype(np.float32)
    lengths = np.maximum(1, np.array(sizes) - WINDOW)
    matched = weights @ best / weights.sum()
    words = matched * (lengths / lengths.mean()) ** -LENGTH
    neighbours = np.zeros(len(texts), np.float32)
    if len(asked) > 1:
        # For two adjacent words of the question: their best match within WINDOW words of the text.
        near = alike.copy()
        for step in range(1, WINDOW):
            np.maximum(near[:, :-step], alike[:, step:], out=near[:, :-step])
        pairs = np.maximum.reduceat(near[1:] * near[:-1], starts, axis=1)
        worth = weights[1:] + weights[:-1]
        neighbours = worth @ pairs / worth.sum()
    return RerankScores(words, neighbours, float(matched.max()), float(matched[0]))


@functools.lru_cache(maxsize=MAX_CACHED_TEXTS)
def _numbers_of_passage(text: str, of_generation: int) -> NDArray[np.int32]:
    """The numbers of the text's words, then WINDOW empty positions, which separate it from the next text."""
    return np.append(word_numbers(units(text)[:MAX_TEXT_UNITS]), np.zeros(WINDOW, np.int32))


def _alike(
    asked: Sequence[str], texts: Sequence[str], everyday: Mapping[str, Sequence[str]]
) -> tuple[Numbers, list[int]] | None:
    """The similarity (0 to 1) of each query word to each position of the joined texts, and the lengths.

    The length of each text includes the WINDOW empty positions at its end. None if the words were renumbered
    meanwhile, which happens once per tens of thousands of new words.
    """
    current = generation()
    passages = [_numbers_of_passage(text, current) for text in texts]
    numbers = np.concatenate(passages)
    known, positions = distinct(numbers)
    vectors = numbered_vectors(known, current)
    if vectors is None:
        return None
    # With the larger matrix as the left operand, the product takes half the time.
    table = np.ascontiguousarray(np.clip(vectors @ word_vectors(asked).T, 0, 1).T)
    own = word_numbers(asked)
    phrases = [
        (rows, word_numbers(other.split()))
        for phrase, others in everyday.items()
        if (rows := [row for row, unit in enumerate(asked) if unit in phrase.split()])
        for other in others
    ]
    if generation() != current:
        return None
    for row, unit in enumerate(asked):
        if has_unspaced_script(unit):  # a single character means too little, so only the same one counts
            table[row] = 0
        table[row, known == own[row]] = 1
    alike = table.take(positions, axis=1)
    for rows, phrase in phrases:
        _raise(alike, rows, phrase, numbers)
    return alike, [len(passage) for passage in passages]


def distinct(numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct numbers in order, and the index of each number among them.

    Unlike `np.unique`, this does not need to sort, because the numbers are small.
    """
    places = np.zeros(int(numbers.max()) + 1, np.int32)
    places[numbers] = 1
    known = np.flatnonzero(places).astype(np.int32)
    places[known] = np.arange(len(known), dtype=np.int32)
    return known, places[numbers]


def _raise(
    alike: Numbers, rows: Sequence[int], phrase: NDArray[np.int32], numbers: NDArray[np.int32]
) -> None:
    """Where `phrase` occurs, set its words' similarity with the words `rows` to at least SYNONYM."""
    starts = np.flatnonzero(numbers == phrase[0])
    for step, number in enumerate(phrase[1:], 1):
        starts = starts[starts + step < len(numbers)]
        starts = starts[numbers[starts + step] == number]
    for row in rows:
        for step in range(len(phrase)):
            alike[row, starts + step] = np.maximum(alike[row, starts + step], SYNONYM)
