"""How much of a statement is covered by words of similar meaning in a passage.

Each word of the statement is paired with the best word in two adjacent sentences and the headings: the same
word, a related word, a translation, or the word with the nearest vector (word embedding). The result shows
whether the passage is about the same subject, not whether it says the same: facts are compared elsewhere.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ingestion.embedding.word_vectors import word_vectors
from ingestion.search.translations import english_of, translations_of

from .relations import Relations
from .words import Kind, Token, stem

MAX_WORDS = 1_000  # distinct words of a passage that are compared
RELATED = 0.9  # minimum likeness of other forms, synonyms and parts of compounds
TRANSLATED = 0.8  # minimum likeness of translations


def content_words(tokens: Sequence[Token]) -> dict[str, str]:
    """The full forms of words and names by their stems, without numbers and units."""
    kinds = (Kind.WORD, Kind.NAME)
    return {
        token.value: token.whole for token in tokens if token.kind in kinds and token.whole and not token.unit
    }


class Likeness:
    """The words of a passage, and those that occur in each pair of adjacent sentences.

    `contexts` has the `context` of each sentence (see `cited_passages.Unit`), `around` the tokens of title,
    headings and label.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[Token]],
        contexts: Sequence[Collection[str]],
        around: Sequence[Token],
        relations: Relations,
    ) -> None:
        held = [content_words(tokens) for tokens in sentences]
        wholes: dict[str, str] = {}
        for words in (content_words(around), *held):
            wholes |= words
            if len(wholes) >= MAX_WORDS:
                break
        self._places = {value: place for place, value in enumerate(wholes)}
        windows = [
            {self._places[value] for value in (*words, *following, *context) if value in self._places}
            for words, following, context in zip(held, [*held, {}][1:], contexts, strict=True)
        ]
        windows = [window for window in windows if window]
        above = {self._places[value] for value in content_words(around)}
        self._columns = [place for window in windows for place in sorted(window | above)]
        self._starts = np.cumsum([0, *(len(window | above) for window in windows)])[:-1]
        self._wholes = wholes
        self._relations = relations
        self._vectors = word_vectors([_in_english(whole) for whole in wholes.values()])

    def coverage(self, words: Mapping[str, str], names: Collection[str]) -> float:
        """The mean likeness of these words to the best pair of sentences; 1 if there are no words.

        `words` has full forms by stem.
        """
        if not words:
            return 1.0
        if not self._columns:
            return 0.0
        asked = word_vectors([_in_english(whole) for whole in words.values()])
        likeness = np.clip(asked @ self._vectors.T, 0, 1)
        for row, (value, whole) in enumerate(words.items()):
            if value in self._places:
                likeness[row, self._places[value]] = 1.0
                continue
            related = self._relations.related(value, whole, is_name=value in names)
            translated = ((stem(each), TRANSLATED) for each in translations_of(whole))
            for other, least in ((related, RELATED), *translated):
                if (column := self._places.get(other)) is not None:
                    likeness[row, column] = max(likeness[row, column], least)
        best = np.maximum.reduceat(likeness[:, self._columns], self._starts, axis=1)
        return float(best.mean(axis=0).max())


def _in_english(word: str) -> str:
    """Translate a word, because only English words have vectors."""
    return english_of(word) or word
