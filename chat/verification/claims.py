"""Claims: statements of an answer, prepared for comparison with a source."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import cached_property

from .cited_passages import Unit, articles_of, said
from .terms.facts import abbreviations, language_of, parts_of, tokens
from .terms.lexicon import AFTER_NOUNS, BEFORE_NOUNS, GENERAL_NOUNS, LIGHT_WORDS
from .terms.likeness import content_words
from .terms.relations import Relations
from .terms.words import Kind, Token, measure

_JOINS = re.compile(r"[,;]\s|\b(?:and|or|und|oder|sowie|both|beide)\b", re.IGNORECASE)
CLAUSE = re.compile(
    r"[,;:]|\b(?:and|but|if|when|where|which|who|because|while|whereas|unless|und|aber|wenn|falls|weil|sofern|wobei)\b",
    re.IGNORECASE,
)
_BY = re.compile(r"\s+by\s+(?:(?:the|a|an|your|our|their|its|his|her)\s+)?", re.IGNORECASE)
_MARKED = re.compile(r"[\d_]")  # characters that ordinary nouns do not have
_WERDEN = re.compile(r"\b(?:wird|werden|wurde|wurden|worden)\b")
_VON = re.compile(r"\b(?:vom|von (?:der|dem|einer|einem)|durch (?:den|die|das))\s$")
_ENDS = ",.;:!?()"
_NO_NOUNS = ("ly", "ed", "ing")
# Kinds of evidence against a claim. A single contradiction is enough for the verdict “not_found”. A misplaced
# fact is in the source, but next to other words: it contradicts a nearly literal claim, but is only one sign
# against a paraphrase (see checks/credence.py). An unanswered fact is not in the source, but no other fact is
# in its place either, so the source may express it differently.
CONTRADICTION = 1.0
MISPLACED = 0.9
UNANSWERED = 0.8
# Shares of a statement's words that the source has. At MIN_SHARE or above, a missing number or name counts
# as replaced if another is in its place; below OTHER_SUBJECT, the source is about something else; in between,
# the source may use synonyms.
MIN_SHARE = 0.55
OTHER_SUBJECT = 0.3
LITERAL_SHARE = 0.85  # at this share or above, a difference is not a paraphrase
_WEIGHTS = {Kind.NUMBER: 1.5, Kind.NAME: 1.5, Kind.WORD: 1.0, Kind.POLAR: 0.3, Kind.NEGATION: 0.0}


@dataclass(frozen=True)
class Claim:
    """A statement with its tokens."""

    text: str
    tokens: tuple[Token, ...]
    names: frozenset[str]  # names that the source must contain
    language: str
    joins: bool = False  # whether it may combine several statements

    @property
    def german(self) -> bool:
        return self.language == "german"

    @cached_property
    def values(self) -> frozenset[str]:
        return frozenset(token.value for token in self.tokens if token.kind is not Kind.NEGATION)

    @cached_property
    def said(self) -> frozenset[tuple[str, bool]]:
        return said(self.tokens)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(self.content)

    @cached_property
    def content(self) -> list[str]:
        """The distinct words, most of which the source should contain."""
        kinds = (Kind.WORD, Kind.NAME)
        return list(
            dict.fromkeys(
                token.value for token in self.tokens if token.kind in kinds and token.whole not in LIGHT_WORDS
            )
        )

    @cached_property
    def spoken(self) -> dict[str, str]:
        """The full forms of the words whose likeness is measured, by stem."""
        words = content_words(self.tokens).items()
        return {value: whole for value, whole in words if whole not in LIGHT_WORDS}

    @cached_property
    def wholes(self) -> dict[str, str]:
        """The full form of each stem."""
        return {token.value: token.whole for token in self.tokens if token.whole}

    @cached_property
    def nouns(self) -> list[tuple[str, ...]]:
        """The head of each noun phrase: one word, or several candidates if it is ambiguous.

        A noun phrase follows an article or a preposition, or ends a clause. In German, all nouns are heads.
        """
        if self.german:
            names = (token for token in self.tokens if token.kind is Kind.NAME)
            return [(name.value,) for name in names if name.whole and name.whole not in GENERAL_NOUNS]
        nouns: list[tuple[str, ...]] = []
        start = 0
        for place, token in enumerate(self.tokens):
            if place and self.text[self.tokens[place - 1].end : token.start].strip(" -"):
                start = place
            is_last = place + 1 == len(self.tokens)
            following = len(self.text) if is_last else self.tokens[place + 1].start
            gap = self.text[token.end : following]
            if not is_last and self.tokens[place + 1].kind is Kind.POLAR and not gap.strip(" -"):
                gap = " of "  # “the hedge below two metres”: the noun phrase ends here, too
            if is_last or gap.strip(" -"):
                nouns += _head(self.text, self.tokens, start, place, gap)
        return nouns

    @cached_property
    def abbreviated(self) -> dict[str, frozenset[str]]:
        """Names of several words, by their initials in lower case: “oa” for Office of Acquisition."""
        return abbreviations(self.tokens, self.text)

    @cached_property
    def parts(self) -> list[list[Token]]:
        return parts_of(self.tokens, self.text)

    @cached_property
    def articles(self) -> dict[str, str]:
        return articles_of(self.tokens, self.text)

    @cached_property
    def agents(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each participle with its agent: the words after “by”, in German the noun after “vom” etc."""
        found: list[tuple[str, tuple[str, ...]]] = []
        words = [token.value for token in self.tokens if token.kind is Kind.WORD]
        if self.german and words and _WERDEN.search(self.text):
            found = [
                (words[-1], (token.value,))
                for token in self.tokens
                if token.kind is Kind.NAME and _VON.search(self.text, max(0, token.start - 12), token.start)
            ]
        for place, token in enumerate(self.tokens[:-1]):
            match = _BY.fullmatch(self.text, token.end, self.tokens[place + 1].start)
            if not match or not token.whole.endswith(("ed", "en", "t", "n", "d")):
                continue
            last = place + 1
            while last + 1 < len(self.tokens) and not self.text[
                self.tokens[last].end : self.tokens[last + 1].start
            ].strip(" -"):
                last += 1
            phrase = self.tokens[place + 1 : last + 1]
            is_phrase = all(each.kind in (Kind.WORD, Kind.NAME) and not each.unit for each in phrase)
            if is_phrase and any(each.whole not in GENERAL_NOUNS for each in phrase):
                found.append((token.value, tuple(each.value for each in phrase)))
        return found

    @cached_property
    def clauses(self) -> list[list[str]]:
        """The words of each clause with several words and no number; empty for a single clause."""
        clauses: list[list[Token]] = [[]]
        for place, token in enumerate(self.tokens):
            if place and CLAUSE.search(self.text, self.tokens[place - 1].end, token.start):
                clauses.append([])
            clauses[-1].append(token)
        words = [
            [
                token.value
                for token in clause
                if token.kind in (Kind.WORD, Kind.NAME) and token.whole not in LIGHT_WORDS
            ]
            for clause in clauses
            if not any(token.kind is Kind.NUMBER for token in clause)
        ]
        return [clause for clause in words if len(clause) > 1] if len(clauses) > 1 else []

    @cached_property
    def relations(self) -> Relations:
        return Relations(self.tokens)

    @cached_property
    def weights(self) -> dict[str, float]:
        return {token.value: _WEIGHTS[token.kind] for token in self.tokens}

    @cached_property
    def measures(self) -> dict[tuple[str, float], str]:
        """The value of each duration, by its `measure`, which is the same in other units of time."""
        return {found: token.value for token in self.tokens if token.unit and (found := measure(token))}

    def common(self, unit: Unit) -> frozenset[str]:
        """The values that claim and unit have in common; durations also match in other units of time."""
        common = self.values & unit.values
        if self.measures and unit.measures:
            common |= {value for each, value in self.measures.items() if each in unit.measures}
        return common

    def word_for(self, value: str, unit: Unit) -> str:
        """The word that the statement uses for a word of a unit; the word itself if there is none."""
        if value in self.values:
            return value
        whole = next((token.whole for token in unit.tokens if token.value == value), "")
        return self.relations.related(value, whole) or value

    @cached_property
    def numbers(self) -> list[int]:
        """Positions of numbers among the tokens."""
        return [place for place, token in enumerate(self.tokens) if token.kind is Kind.NUMBER]


def claim_of(text: str, known_names: frozenset[str]) -> Claim:
    found = tokens(text)
    language = language_of(text)
    names = {token.value for token in found if token.kind is Kind.NAME}
    if language == "german":
        names = {name for name in names if name.startswith(("month", "--", ".")) or _MARKED.search(name)}
    elif found and found[0].kind is Kind.WORD and text.lstrip(" *_>\"“'(")[:1].isupper():
        # The first word may also be a name, if a source uses it as a name or if another name follows.
        follows = len(found) > 1 and found[1].kind is Kind.NAME and found[1].start - found[0].end <= 1
        if found[0].value in known_names or (follows and not found[0].whole.endswith(_NO_NOUNS)):
            names.add(found[0].value)
    return Claim(text, tuple(found), frozenset(names), language, bool(_JOINS.search(text)))


def _head(text: str, found: Sequence[Token], start: int, last: int, gap: str) -> list[tuple[str, ...]]:
    """The head of the adjacent words from `start` to `last`.

    If the last word may be a verb (“hours at head office run from”), several words are candidates.
    """
    before = text[found[start - 1].end if start else 0 : found[start].start].casefold().split()
    after = gap.casefold().split()
    ended = not after or after[0][0] in _ENDS
    head = last if ended or after[0] in AFTER_NOUNS else last - 1
    is_phrase = bool(before) and before[-1] in BEFORE_NOUNS
    if head < start or not (is_phrase or (ended and last > start)):
        return []
    token = found[head]
    if token.kind not in (Kind.WORD, Kind.NAME) or not token.whole or token.unit:
        return []
    if head > start and any(character.isdigit() for character in found[head - 1].value):
        return []  # “a P2 fault”
    if token.whole in GENERAL_NOUNS or token.whole.endswith(_NO_NOUNS):
        return []
    # “The contract counts” ends with a verb.
    verb = head > start and token.whole.endswith("s") and not found[head - 1].whole.endswith("s")
    is_clear = ended and not (verb and is_phrase and head == start + 1)
    return [(token.value,) if is_clear else tuple(each.value for each in found[start : head + 1])]
