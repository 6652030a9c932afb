"""The sentences of each passage that answer best, to stand for it."""

from collections.abc import Sequence

from chat.sources import Caption
from ingestion.retrieval import FoundPassage
from ingestion.sentences import sentences_of_each, words_asked_for

SENTENCES = 2


def captions(query: str, passages: Sequence[FoundPassage]) -> list[tuple[Caption, ...]]:
    """Those of each passage; none for one that has no sentences, which then stands for itself."""
    return [
        tuple(Caption(sentence.text, tuple(words_asked_for(query, sentence.text))) for sentence in sentences)
        for sentences in sentences_of_each(query, passages, SENTENCES)
    ]
