"""What speaks for and against a question having been answered, by its words alone. Pure."""

from chat.verification.lexicon import LIGHT_WORDS, STOP_WORDS
from chat.verification.same_question import forms_of, read
from ingestion.search.tokens import plain_words

# A message of these alone asks nothing.
SMALL_TALK = frozenset(
    """
    hi hello hey hallo moin servus good guten guter gute morning afternoon evening night day morgen
    tag abend nacht thanks thank thx danke dankeschön vielen dank many much so very sehr please
    bitte ok okay yes no ja nein bye goodbye tschüss ciao cheers great super prima cool nice perfect
    perfekt test testing you dir ihnen for the your für die deine ihre help hilfe how are is it
    going wie geht es well gut fine sorry welcome
    """.split()  # noqa: SIM905 (a list of words reads as one)
)


def is_small_talk(text: str) -> bool:
    """Whether a message greets, thanks or tries the site out, and asks nothing."""
    words = plain_words(text).split()
    return not words or SMALL_TALK.issuperset(words)


def speaks_of(said: str, question: str) -> bool:
    """Whether a text has every content word of a question, as a form or synonym, and its numbers."""
    words = plain_words(said).split()
    wanted = [word for word in read(question).content if word not in STOP_WORDS | LIGHT_WORDS]
    return bool(wanted) and all(_is_in(word, words) for word in wanted)


def _is_in(word: str, words: list[str]) -> bool:
    if forms := tuple(filter(None, forms_of(word))):
        return any(each.startswith(forms) for each in words)
    return not set(plain_words(word).split()).difference(words)
