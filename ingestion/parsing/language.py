"""Detects the language of a text.

Languages have the names of their Snowball stemmers; so do PostgreSQL's text search configurations.
"""

import re
from functools import cache
from pathlib import Path

UNKNOWN = "simple"
TAGS = {  # BCP 47 tags by the language names in common_words.txt, without brackets
    "albanian": "sq",
    "arabic": "ar",
    "armenian": "hy",
    "basque": "eu",
    "bulgarian": "bg",
    "catalan": "ca",
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "estonian": "et",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "greek": "el",
    "hebrew": "he",
    "hindi": "hi",
    "hungarian": "hu",
    "indonesian": "id",
    "irish": "ga",
    "italian": "it",
    "latvian": "lv",
    "lithuanian": "lt",
    "nepali": "ne",
    "norwegian": "no",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "serbian": "sr",
    "slovak": "sk",
    "slovenian": "sl",
    "spanish": "es",
    "swedish": "sv",
    "tamil": "ta",
    "turkish": "tr",
    "ukrainian": "uk",
    "urdu": "ur",
    "vietnamese": "vi",
    "yiddish": "yi",
}
SAMPLE_CHARACTERS = 60_000
MIN_WORDS = 2  # minimum number of distinct common words, of any language
MIN_IN_SHORT, MIN_IN_TABLES = 3, 5  # the minimum for a short text, and for a table
# A text is short if its first SHORT_CHARACTERS characters have fewer than SHORT_WORDS words.
SHORT_WORDS, SHORT_CHARACTERS = 8, 400
CELL = re.compile(r"(?<=[:;])\s")  # the space after a column name or a value of a row
# A table has more than TABULAR_PIECES pieces (see CELL), of fewer than TABULAR_CHARACTERS on average.
TABULAR_PIECES, TABULAR_CHARACTERS = 6, 25
MIN_SHARE = 0.05  # minimum share of common words, of any language, among all words
LEAD = 1.15  # minimum ratio of the votes for the first language to those for the second
WORDS = Path(__file__).with_name("common_words.txt")
# A word consists of letters and combining marks. `\w` does not match the latter, such as Indic vowel signs.
WORD = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff])+")


def language_of(text: str) -> str:
    """The language of the text; "simple" if it is unclear or has no stemmer.

    Repeated pieces count once, because a table repeats the names of its columns in each row. A short text or
    a table must contain more common words than other texts.
    """
    pieces = [piece for line in text[:SAMPLE_CHARACTERS].splitlines() for piece in CELL.split(line)]
    distinct = dict.fromkeys(pieces)
    tabular = len(pieces) > TABULAR_PIECES and sum(map(len, pieces)) < len(pieces) * TABULAR_CHARACTERS
    short = len(WORD.findall(text[:SHORT_CHARACTERS])) < SHORT_WORDS
    min_words = MIN_IN_TABLES if tabular else MIN_IN_SHORT if short else MIN_WORDS
    language = detect_language("\n".join(distinct), min_words)
    return UNKNOWN if language.startswith("(") else language


def language_tag(text: str) -> str:
    """The language of the text as a BCP 47 tag, even if it has no stemmer; empty if unclear."""
    return TAGS.get(detect_language(text).strip("()"), "")


def detect_language(text: str, min_words: int = MIN_WORDS) -> str:
    """The language whose common words are most frequent; "simple" if it is unclear.

    The name of a language without a stemmer is in brackets. A word of n languages gives each of them 1/n of a
    vote.
    """
    votes: dict[str, float] = {}
    known: set[str] = set()
    hits = total = 0
    languages_of = _languages_by_word()
    for match in WORD.finditer(text[:SAMPLE_CHARACTERS].lower()):
        languages = languages_of.get(match.group(), ())
        total += 1
        hits += bool(languages)
        if languages:
            known.add(match.group())
        for language in languages:
            votes[language] = votes.get(language, 0) + 1 / len(languages)
    if len(known) < min_words or hits < total * MIN_SHARE:
        return UNKNOWN
    best, *others = sorted(votes, key=lambda language: votes[language], reverse=True)
    unsure = others and votes[best] < votes[others[0]] * LEAD
    return UNKNOWN if unsure else best


@cache
def common_words(language: str) -> frozenset[str]:
    """The most frequent function words of a language."""
    return frozenset(word for word, languages in _languages_by_word().items() if language in languages)


@cache
def _languages_by_word() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in WORDS.read_text("utf-8").splitlines():
        language, colon, words = line.partition(": ")
        if colon and not line.startswith("#"):
            for word in set(words.split()):
                found.setdefault(word, []).append(language)
    return found
