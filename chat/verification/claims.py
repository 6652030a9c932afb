"""A statement of an answer with what can be compared of it."""

import re
from dataclasses import dataclass
from functools import cached_property

from .facts import Kind, Token, is_german, tokens
from .lexicon import LIGHT_WORDS
from .passages import said

_JOINS = re.compile(r"[,;]|\b(?:and|or|und|oder|sowie|both|beide)\b", re.IGNORECASE)
_WEIGHTS = {Kind.NUMBER: 1.5, Kind.NAME: 1.5, Kind.WORD: 1.0, Kind.POLAR: 0.3, Kind.NEGATION: 0.0}


@dataclass(frozen=True)
class Claim:
    """A statement with its tokens."""

    tokens: tuple[Token, ...]
    names: frozenset[str]  # values that must not be missing
    german: bool
    joins: bool = False  # whether it may say several things

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
        """The words whose share counts, each once."""
        kinds = (Kind.WORD, Kind.NAME)
        return list(
            dict.fromkeys(
                token.value for token in self.tokens if token.kind in kinds and token.whole not in LIGHT_WORDS
            )
        )

    @cached_property
    def weights(self) -> dict[str, float]:
        return {token.value: _WEIGHTS[token.kind] for token in self.tokens}

    @cached_property
    def numbers(self) -> list[int]:
        """Their places among the tokens."""
        return [place for place, token in enumerate(self.tokens) if token.kind is Kind.NUMBER]


def claim_of(text: str, known_names: frozenset[str]) -> Claim:
    found = tokens(text)
    german = is_german(text)
    names = {token.value for token in found if token.kind is Kind.NAME}
    if german:
        names = {name for name in names if name.startswith("month") or any(c.isdigit() for c in name)}
    elif found and found[0].kind is Kind.WORD and text.lstrip(" *_>\"“'(")[:1].isupper():
        # The first word may be a name too: where a source writes it as one, or another name follows it.
        follows = len(found) > 1 and found[1].kind is Kind.NAME and found[1].start - found[0].end <= 1
        if found[0].value in known_names or follows:
            names.add(found[0].value)
    return Claim(tuple(found), frozenset(names), german, bool(_JOINS.search(text)))
