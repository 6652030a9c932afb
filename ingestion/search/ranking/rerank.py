"""Compares the words of texts with those of a question, by meaning and by position.

Each word of the question is matched with the most similar word of the text: itself, or one with a similar
vector. Adjacent words of the question should be close together in the text, too.
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

    `closest` is how well the words of the text match that matches best, `first` how well those of the first.
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
        pass  # the numbers of the words have changed meanwhile
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
        # The best match of two adjacent words of the question within WINDOW words of the text.
        near = alike.copy()
        for step in range(1, WINDOW):
            np.maximum(near[:, :-step], alike[:, step:], out=near[:, :-step])
        pairs = np.maximum.reduceat(near[1:] * near[:-1], starts, axis=1)
        worth = weights[1:] + weights[:-1]
        neighbours = worth @ pairs / worth.sum()
    return RerankScores(words, neighbours, float(matched.max()), float(matched[0]))


@functools.lru_cache(maxsize=MAX_CACHED_TEXTS)
def _numbers_of_passage(text: str, of_generation: int) -> NDArray[np.int32]:
    """The numbers of its words, followed by WINDOW empty positions that separate it from the next text."""
    return np.append(word_numbers(units(text)[:MAX_TEXT_UNITS]), np.zeros(WINDOW, np.int32))


def _alike(
    asked: Sequence[str], texts: Sequence[str], everyday: Mapping[str, Sequence[str]]
) -> tuple[Numbers, list[int]] | None:
    """Similarity (0 to 1) of each query word to each position of all texts, and the positions of each text.

    None if words were renumbered meanwhile, which happens once in tens of thousands of words.
    """
    current = generation()
    passages = [_numbers_of_passage(text, current) for text in texts]
    numbers = np.concatenate(passages)
    known, positions = distinct(numbers)
    vectors = numbered_vectors(known, current)
    if vectors is None:
        return None
    # The many rows first: that product takes half the time.
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
        if has_unspaced_script(unit):  # a single character means too little for similarity
            table[row] = 0
        table[row, known == own[row]] = 1
    alike = table.take(positions, axis=1)
    for rows, phrase in phrases:
        _raise(alike, rows, phrase, numbers)
    return alike, [len(passage) for passage in passages]


def distinct(numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct numbers in order, and the index of each number among them.

    As `np.unique`, but without sorting, since the numbers of words are small.
    """
    places = np.zeros(int(numbers.max()) + 1, np.int32)
    places[numbers] = 1
    known = np.flatnonzero(places).astype(np.int32)
    places[known] = np.arange(len(known), dtype=np.int32)
    return known, places[numbers]


def _raise(
    alike: Numbers, rows: Sequence[int], phrase: NDArray[np.int32], numbers: NDArray[np.int32]
) -> None:
    """Set the similarity of a phrase's words to SYNONYM in the texts that contain the phrase."""
    starts = np.flatnonzero(numbers == phrase[0])
    for step, number in enumerate(phrase[1:], 1):
        starts = starts[starts + step < len(numbers)]
        starts = starts[numbers[starts + step] == number]
    for row in rows:
        for step in range(len(phrase)):
            alike[row, starts + step] = np.maximum(alike[row, starts + step], SYNONYM)
