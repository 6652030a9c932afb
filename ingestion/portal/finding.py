"""Finds words in one document like a browser's “Find”: parts of words match, inflected forms do not."""

from itertools import pairwise

from django.db.models import Q, QuerySet

from ingestion.models import Document, Passage

MAX_CHARACTERS, MAX_WORDS = 200, 10  # of a query; the rest is ignored
Piece = tuple[str, bool]  # a part of a text, and whether it is a match


def words_of(query: str) -> list[str]:
    """The distinct words of the query."""
    return list(dict.fromkeys(query[:MAX_CHARACTERS].replace("\0", " ").lower().split()))[:MAX_WORDS]


def passages_with(document: Document, words: list[str]) -> QuerySet[Passage]:
    """Passages with all the words in their text or heading, in the order of the document."""
    found = Passage.objects.filter(document=document)
    for word in words:
        found = found.filter(Q(content__icontains=word) | Q(heading__icontains=word))
    return found.order_by("position")


def marked(text: str, words: list[str]) -> list[Piece]:
    """The text in pieces; without marks if lower-casing changes its length."""
    lowered = text.lower()
    if not words or len(lowered) != len(text):
        return [(text, False)]
    inside = bytearray(len(text))
    for word in words:
        start = lowered.find(word)
        while start >= 0:
            inside[start : start + len(word)] = b"\1" * len(word)
            start = lowered.find(word, start + len(word))
    edges = [0, *(at for at in range(1, len(text)) if inside[at] != inside[at - 1]), len(text)]
    return [(text[start:end], bool(inside[start])) for start, end in pairwise(edges) if start < end]
