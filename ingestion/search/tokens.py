"""Words for full-text search: lower case, no punctuation, bigrams for scripts without spaces.

Passages and questions are processed by the same functions, so that equal words are always written in the same
way, whatever the database's locale. PostgreSQL only stems words, drops stop words and counts.
"""

import re
import unicodedata

from chatsite.normal_form import normal_form
from chatsite.superscripts import without_note_marks

NORMAL_MARGIN = 1_000  # characters of a normal form that are used beyond twice the length of the text
SEARCH_TEXT_LIMIT = 100_000  # characters; PostgreSQL refuses a tsvector of more than a megabyte

# Thai, Lao, Burmese and Khmer; kana, bopomofo and hangul; Chinese characters, including those beyond 16 bits.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# Between Chinese characters or kana, white space (also a line break) does not end a word, but markup does.
_SPACE_WITHIN = re.compile(
    r"(?<=[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])\s+(?=[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])"
)
_LETTER_AFTER_DOT = re.compile(r"\.\w\b")  # a fast test for a rare case
_ABBREVIATION = re.compile(r"\b[^\W\d_](?:\.[^\W\d_])+\b")


class _Separators(dict[int, str]):
    """A translation table from punctuation, symbols and control characters to a space; filled on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = " " if unicodedata.category(character)[0] in "PSZC" else character
        return self[code]


_separators = _Separators()


def normal_limit(text: str) -> int:
    """How many characters of a text's normal form are used. One character can become eighteen (ﷺ)."""
    return 2 * len(text) + NORMAL_MARGIN


def plain_words(text: str) -> str:
    """The words of `text` in lower case, separated by single spaces, without marks of footnotes.

    Combining characters stay in their words.
    """
    text = without_note_marks(text[:SEARCH_TEXT_LIMIT])
    folded = normal_form("NFKC", text)[: normal_limit(text)].lower()
    return " ".join(folded.translate(_separators).split())


def search_text(text: str, *, stored: bool = True) -> str:
    """The text for PostgreSQL to parse: words of `text`, and bigrams for scripts without spaces.

    A stored text also gets bigrams across spaces, abbreviations without dots, and single characters, for
    questions of one character.
    """

    def cut(match: re.Match[str]) -> str:
        run = match.group()
        pairs = [run[start : start + 2] for start in range(len(run) - 1)]
        singles = list(run) if stored or len(run) == 1 else []
        return f" {' '.join(pairs + singles)} "

    if stored:
        text = _with_abbreviations(_SPACE_WITHIN.sub("", text))
    return " ".join(_UNSPACED.sub(cut, plain_words(text)).split())[:SEARCH_TEXT_LIMIT]


def units(text: str) -> list[str]:
    """The words of `text` in order; in scripts without spaces, its characters."""
    words = plain_words(_with_abbreviations(text))
    return _UNSPACED.sub(lambda match: f" {' '.join(match.group())} ", words).split()


def abbreviations(text: str) -> list[str]:
    """Abbreviations with dots (U.N.) as words without dots, in lower case."""
    if not _LETTER_AFTER_DOT.search(text):
        return []
    return [match[0].replace(".", "").lower() for match in _ABBREVIATION.finditer(text)]


def _with_abbreviations(text: str) -> str:
    """`text` with each abbreviation repeated without dots: “U.N.” becomes “UN U.N.”."""
    if not _LETTER_AFTER_DOT.search(text):
        return text
    return _ABBREVIATION.sub(lambda match: f"{match[0].replace('.', '')} {match[0]}", text)


def has_unspaced_script(text: str) -> bool:
    """Whether `text` contains Chinese, Japanese, Korean, Thai or a similar script."""
    return _UNSPACED.search(text) is not None
