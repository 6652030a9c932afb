"""Glossary words to add to a search, and terms to explain in a text.

Entries are queried for each search and each page, with the reader's rights, so that a change takes effect at
once in all processes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import cached_property

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.search.office_words import documents_words, may_begin
from ingestion.search.tokens import plain_words, search_text
from ingestion.search.translations import HOMOGRAPHS, is_german

from .models import MAX_WORDS_OF_A_NAME, HouseWord, names_of

MAX_ASKED = 200  # words of a question that are looked up
MAX_ADDED = 12  # words added to a question for its terms
MAX_EVERYDAY = 8  # everyday words of a question to which words of documents are added
MAX_EXPLAINED = 20  # terms explained in one answer
MAX_TERMS = 2_000  # limit of entries that one query returns; for a page, these are terms with a meaning
MAX_READ = 20_000  # characters of an answer that are searched for terms


@dataclass(frozen=True, slots=True)
class Expansion:
    """Words to search for in addition to those of a question.

    These are other names of its terms, and the words that documents use for its everyday words.
    """

    terms: Sequence[str] = ()
    everyday: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reasons: Mapping[str, Sequence[str]] | None = None  # {word of the question: what it added}

    def __str__(self) -> str:
        """The reasons as text, for “How it was found”."""
        found = (self.reasons or {}).items()
        return "; ".join(f"{asked}: {', '.join(words)}" for asked, words in found if words)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A name in an answer, its term, and the meaning."""

    name: str
    term: str
    text: str


class Lookup:
    """Finds additional words to search for, in the built-in list and the reader's entries.

    The caller executes the statement `known_words` with `parameters`, and passes its rows to `expansion`.
    """

    def __init__(self, principal: Principal, question: str) -> None:
        self._asked = plain_words(question).split()[:MAX_ASKED]
        self._from = [list(_from(self._asked, start)) for start in range(len(self._asked))]
        # English everyday words that are function words in a German question, such as “die”.
        self._articles = HOMOGRAPHS if is_german(question) else frozenset[str]()
        self._phrases = {phrase for phrases in self._from for phrase in phrases}
        self.parameters = _parameters(principal, sorted(self._phrases))

    def expansion(self, known: Sequence[Mapping[str, Any]]) -> Expansion:
        """The words to add, from the rows of the statement and the built-in list."""
        asked = self._asked
        terms: dict[str, dict[str, None]] = {}
        own: dict[str, dict[str, None]] = {}
        for row in known:
            is_term = row["kind"] == HouseWord.Kind.TERM
            names = (names_of(row["term"]) if is_term else []) + names_of(row["synonyms"])
            words = dict.fromkeys(word for name in names for word in search_text(name, stored=False).split())
            for key in self._phrases.intersection(row["keys"]):
                if is_term:
                    terms.setdefault(key, {}).update(words)
                else:
                    own.setdefault(key, {}).update(dict.fromkeys(plain_words(name) for name in names))
        of_terms: dict[str, None] = {}
        everyday: dict[str, tuple[str, ...]] = {}
        reasons: dict[str, list[str]] = {}
        start = 0
        while start < len(asked):
            is_everyday = may_begin(asked[start])
            for phrase in self._from[start]:  # longer phrases first: “day off” before “off”
                if phrase in own:
                    in_place = tuple(own[phrase])
                else:
                    is_word = is_everyday and phrase not in self._articles
                    in_place = documents_words(phrase) if is_word else ()
                if phrase not in terms and phrase not in own and not in_place:
                    continue
                new = [word for word in terms.get(phrase, ()) if word not in asked and word not in of_terms]
                new = new[: MAX_ADDED - len(of_terms)]
                of_terms.update(dict.fromkeys(new))
                others = tuple(each for each in in_place if not {*each.split()}.issubset(asked))
                if others and others not in everyday.values() and len(everyday) < MAX_EVERYDAY:
                    everyday[phrase] = others
                    new += others
                reasons.setdefault(phrase, []).extend(new)
                start += phrase.count(" ")
                break
            start += 1
        return Expansion(tuple(of_terms), everyday, reasons)


class Glossary:
    """The terms with a meaning that a reader may see, queried once per page, on first use."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    @cached_property
    def _known(self) -> Mapping[str, tuple[int, str, str]]:
        known: dict[str, tuple[int, str, str]] = {}
        for word in rows("known_words", _parameters(self._principal)):
            for key in word["keys"]:
                known.setdefault(key, (word["id"], word["term"], word["meaning"]))
        return known

    def explain(self, text: str) -> list[Meaning]:
        """The terms in a text, each once, in order."""
        if not text or not self._known:
            return []
        words = plain_words(text[:MAX_READ]).split()
        found: dict[int, Meaning] = {}
        start = 0
        while start < len(words) and len(found) < MAX_EXPLAINED:
            for phrase in _from(words, start):
                if phrase in self._known:
                    number, term, meaning = self._known[phrase]
                    found.setdefault(number, Meaning(phrase, term, meaning))
                    start += phrase.count(" ")
                    break
            start += 1
        return list(found.values())


def _parameters(principal: Principal, phrases: Sequence[str] | None = None) -> dict[str, Any]:
    """The parameters of the statement `known_words`, which finds entries that a reader may see.

    It finds entries with one of `phrases` as a name; if `phrases` is None, terms with a meaning.
    """
    return {"user_id": principal.user_id, "phrases": phrases, "most": MAX_TERMS}


def _from(words: Sequence[str], start: int) -> Iterator[str]:
    """The phrases that begin at a word, longest first."""
    for length in range(min(MAX_WORDS_OF_A_NAME, len(words) - start), 0, -1):
        yield " ".join(words[start : start + length])
