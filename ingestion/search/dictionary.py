"""Translations from a large German–English dictionary, if one is configured.

The dictionary (CHATSITE_DICTIONARY) is a text file in the format of Ding, such as that of Debian's package
trans-de-en. Each line is an entry: German before “ :: ”, English after it. Both sides have the same number of
forms, separated by “ | ”, and a form has one or more phrases of the same meaning, separated by “;”:

    Fundsache {f}; Fundgegenstand {m} | Fundsachen {pl} :: lost property | lost properties

Such a file has some 25 MB, which no process keeps in memory. :func:`compile_dictionary` writes it once to an
SQLite file in the data directory, where a word is found in some 10 µs.
"""

import fcntl
import functools
import itertools
import logging
import math
import os
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from django.conf import settings

from .stems import english_stem, german_stem
from .tokens import plain_words

logger = logging.getLogger(__name__)

FORMAT = 1  # version of the compiled format; a file with another version is compiled again
NAME = "dictionary.sqlite"
MAX_PHRASE = 3  # words in a translation
MAX_TRANSLATIONS = 6  # translations of a word
MAX_LINE = 20_000  # characters
SUBJECT_WEIGHT = 0.5  # weight of a meaning that belongs to a subject, such as [mus.]
FORM_WEIGHT = 0.5  # weight of further forms in an entry: plurals, participles and examples

# Remarks: gender, subject, region, explanation, abbreviation.
_REMARK = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\([^()]*\)|/[^/]*/|<[^<>]*>")
_SUBJECT = re.compile(r"\[[a-zü]+\.\]")
_UNUSUAL = re.compile(r"\[(?:slang|vulg\.|obs\.|archaic|humor\.|pej\.|obsolet|veraltet)\]")
_PLACEHOLDER = re.compile(r"(?i)\b(?:jdn|jdm|jds|jd|etw|sth|sb's|sb|sich|oneself|to|a|an|the)\b\.?")


class Dictionary:
    """A compiled dictionary. Raises sqlite3.Error if the file is not an SQLite database."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(
            f"file:{path}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )
        self._lock = threading.Lock()
        self._find("")

    def english_of(self, word: str) -> tuple[str, ...]:
        """The English phrases for a German word in any form, most common first."""
        return self._find(f"de {word}") or self._find(f"de~ {german_stem(word)}")

    def german_of(self, word: str) -> tuple[str, ...]:
        """The German phrases for an English word in any form, most common first."""
        return self._find(f"en {word}") or self._find(f"en~ {english_stem(word)}")

    def _find(self, form: str) -> tuple[str, ...]:
        with self._lock:
            row = self._database.execute("SELECT phrases FROM translation WHERE form = ?", (form,)).fetchone()
        return tuple(row[0].split("\n")) if row else ()


def dictionary() -> Dictionary | None:
    """The dictionary of this site.

    None if it has none, or if `prepare_dictionary` has not compiled it.
    """
    return _opened(settings.DICTIONARY, str(settings.DATA_DIR / NAME)) if settings.DICTIONARY else None


@functools.lru_cache(maxsize=4)
def _opened(source: str, compiled: str) -> Dictionary | None:
    try:
        if _stored_fingerprint(Path(compiled)) == _fingerprint(Path(source)):
            return Dictionary(Path(compiled))
    except (OSError, sqlite3.Error) as error:
        logger.warning("The dictionary %s cannot be used: %s", source, error)
    return None


def prepare_dictionary() -> bool:
    """Compile this site's dictionary if it is new or was replaced.

    Returns whether it was compiled. If the file cannot be read or has another format, this is logged, and the
    site works without a dictionary.
    """
    if not settings.DICTIONARY:
        return False
    source, target = Path(settings.DICTIONARY), settings.DATA_DIR / NAME
    try:
        with target.with_suffix(".lock").open("a") as lock:
            os.fchmod(lock.fileno(), 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _stored_fingerprint(target) == _fingerprint(source):
                return False
            words = compile_dictionary(source, target)
    except (OSError, ValueError, sqlite3.Error) as error:
        logger.warning("The dictionary %s cannot be read: %s", source, error)
        return False
    _opened.cache_clear()
    logger.info("Dictionary %s: %d words", source, words)
    return True


def compile_dictionary(source: Path, target: Path) -> int:
    """Compile `source` into the SQLite file `target`; return the number of words.

    Raises OSError, sqlite3.Error, or ValueError if no line is an entry or the text is not UTF-8.
    """
    fingerprint = _fingerprint(source)
    unfinished = target.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    used: Counter[str] = Counter()
    with closing(sqlite3.connect(unfinished)) as database:
        database.executescript(
            """
            PRAGMA journal_mode = OFF;
            PRAGMA synchronous = OFF;
            CREATE TABLE pair (form TEXT, phrase TEXT, weight REAL);
            CREATE TABLE translation (form TEXT PRIMARY KEY, phrases TEXT NOT NULL) WITHOUT ROWID;
            CREATE TABLE fingerprint (text TEXT NOT NULL);
            """
        )
        with source.open(encoding="utf-8") as lines:
            database.executemany("INSERT INTO pair VALUES (?, ?, ?)", _pairs(lines, used))
        if not used:
            raise ValueError("no line has the format of Ding: German :: English")

        def weight(pair: tuple[str, float]) -> float:
            """The weight of a translation, which grows with the frequency of its rarest word."""
            return pair[1] * math.log1p(min(used[word] for word in pair[0].split()))

        found = database.execute("SELECT form, phrase, sum(weight) FROM pair GROUP BY form, phrase")
        words = 0
        for form, pairs in itertools.groupby(found, key=lambda row: row[0]):
            best = sorted((row[1:] for row in pairs), key=weight, reverse=True)[:MAX_TRANSLATIONS]
            database.execute(
                "INSERT INTO translation VALUES (?, ?)", (form, "\n".join(phrase for phrase, _ in best))
            )
            words += "~" not in form
        database.execute("DROP TABLE pair")
        database.execute("INSERT INTO fingerprint VALUES (?)", (fingerprint,))
        database.commit()
        database.execute("VACUUM")
    unfinished.replace(target)
    return words


def _pairs(lines: Iterable[str], used: Counter[str]) -> Iterator[tuple[str, str, float]]:
    """Triples of a form of a word, a phrase in the other language, and the pair's weight.

    The form begins with its language, “de ” or “en ”; a stem begins with “de~ ” or “en~ ”. Counts in
    `used` how often each word occurs in phrases.
    """
    stem_of_german = functools.lru_cache(maxsize=50_000)(german_stem)
    stem_of_english = functools.lru_cache(maxsize=50_000)(english_stem)
    for line in lines:
        german, separator, english = line[:MAX_LINE].partition(" :: ")
        if not separator or line.startswith("#"):
            continue
        weight = SUBJECT_WEIGHT if _SUBJECT.search(german) else 1.0
        columns = zip(german.split(" | "), english.split(" | "), strict=False)
        for place, forms in enumerate(columns):
            german_phrases, english_phrases = map(_phrases, forms)
            form_weight = weight * FORM_WEIGHT if place else weight
            for phrase in (*german_phrases, *english_phrases):
                used.update(phrase.split())
            for german_phrase, english_phrase in itertools.product(german_phrases, english_phrases):
                if " " not in german_phrase:
                    yield f"de {german_phrase}", english_phrase, form_weight
                    yield f"de~ {stem_of_german(german_phrase)}", english_phrase, form_weight
                if " " not in english_phrase:
                    yield f"en {english_phrase}", german_phrase, form_weight
                    yield f"en~ {stem_of_english(english_phrase)}", german_phrase, form_weight


def _phrases(form: str) -> list[str]:
    """The phrases of a form as plain words.

    Remarks, placeholders such as “etw.”, long phrases, and unusual ones such as slang are left out.
    """
    usual = (part for part in form.split(";") if not _UNUSUAL.search(part))
    phrases = (plain_words(_PLACEHOLDER.sub(" ", _REMARK.sub(" ", part))) for part in usual)
    return [phrase for phrase in phrases if phrase and phrase.count(" ") < MAX_PHRASE]


def _fingerprint(source: Path) -> str:
    """A text that changes with the dictionary's file and the compiled format. Raises OSError."""
    status = source.stat()
    return f"{FORMAT} {source} {status.st_size} {status.st_mtime_ns}"


def _stored_fingerprint(compiled: Path) -> str:
    """The fingerprint in a compiled file; empty if there is no readable one."""
    try:
        with closing(sqlite3.connect(f"file:{compiled}?mode=ro", uri=True)) as database:
            return str(database.execute("SELECT text FROM fingerprint").fetchone()[0])
    except sqlite3.Error:
        return ""
