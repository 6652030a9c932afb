"""Detects embedding models that understand English but not German."""

import functools

from .embedder import EmbeddingError
from .selection import embedder, is_built_in, is_from_folder

# German sentences and their translations, without words that look alike in both languages.
_PAIRS = (
    ("Wie viele freie Tage habe ich im Jahr?", "How much leave do I get annually?"),
    ("Der Hund schläft unter dem Baum.", "The dog is asleep below a tree."),
    ("Die Rechnung muss bezahlt werden.", "Someone has to pay this invoice."),
    ("Es regnet seit gestern Abend.", "Rain has been falling since last night."),
)
# By how much the mean similarity of a sentence to its translation must exceed its similarity to the other
# sentences, as a share of the greatest possible difference.
MARGIN = 0.5


def is_english_only(name: str, dimensions: int) -> bool:
    """Whether the model does not understand German.

    The built-in model does not; models from a folder are tested. Models on a server, and models that fail,
    are assumed to understand it.
    """
    if not is_from_folder(name):
        return is_built_in(name)
    try:
        return not _understands_german(name, dimensions)
    except EmbeddingError:
        return False


@functools.lru_cache(maxsize=4)
def _understands_german(name: str, dimensions: int) -> bool:
    german, english = (embedder(name, dimensions).embed(texts) for texts in zip(*_PAIRS, strict=True))
    likeness = german @ english.T
    translated = float(likeness.diagonal().mean())
    others = float((likeness.sum() - likeness.trace()) / (likeness.size - len(likeness)))
    return translated - others > MARGIN * (1 - others)
