"""Detects nouns of a statement that replace another noun of its source.

A passage about a tenant and a landlord has all words of “the fee is paid by the tenant”, and also those of
“the fee is paid by the landlord”. Therefore, the words of each clause of a statement are aligned with those
of the sentence that has most of them. Each noun is judged by its neighbours: the words next to the noun in
the statement should also be next to it in the source, without another noun in its place.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import cached_property

from chat.verification.cited_passages import Unit
from chat.verification.claims import Claim
from chat.verification.terms.lexicon import LIGHT_WORDS
from chat.verification.terms.words import Kind, Token, stem
from ingestion.search.translations import translations_of

NEIGHBOURS = 2  # words that are considered on each side of a noun
SLOT = 2  # words of the source next to an aligned neighbour; one of them may be the exchanged noun
NOUN_RADIUS = 6  # maximum distance, in words, between a noun and its nearest neighbour in the source
MIN_CLAUSE = 3  # tokens; a shorter clause is joined to an adjacent one
TOPIC = 3  # a noun in this many sentences is their topic, to which “it” may refer
MAX_PLACES = 6  # occurrences of a word in a sentence that are considered


def alignments(claim: Claim, chosen: Sequence[Unit], above: Collection[str]) -> list["Alignment"]:
    """Align each clause of a claim with the chosen sentence that has most of its words.

    Clauses that match a table row best are left out. `above` has the words of the title, headings and table
    headers.
    """
    clauses = [list(claim.tokens)]
    if len(chosen) > 1:
        clauses = []
        for part in claim.parts:
            if clauses and min(len(clauses[-1]), len(part)) < MIN_CLAUSE:
                clauses[-1] += part
            else:
                clauses.append(list(part))
    found = []
    for clause in clauses:
        own = [token for token in clause if token.kind is not Kind.NEGATION]
        values = {token.value for token in own}
        unit = max(chosen, key=lambda each: len(values & each.values))
        if unit.table < 0:
            found.append(Alignment(claim, own, unit, above))
    return found


@dataclass(frozen=True)
class Alignment:
    """The tokens of a clause, aligned with those of a sentence."""

    claim: Claim
    own: list[Token]
    unit: Unit
    above: Collection[str]

    @cached_property
    def aligned(self) -> list[str]:
        """For each token of `own`, its counterpart in the sentence; empty if there is none."""
        return [self._counterpart(token) for token in self.own]

    @cached_property
    def places(self) -> Mapping[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, token in enumerate(self.unit.tokens):
            found = places.setdefault(token.value, [])
            if len(found) < MAX_PLACES:
                found.append(place)
        return places

    @cached_property
    def nouns(self) -> list[int]:
        """The positions in `own` of the nouns that are unambiguous in `Claim.nouns`."""
        nouns = {phrase[0] for phrase in self.claim.nouns if len(phrase) == 1}
        return [place for place, token in enumerate(self.own) if token.value in nouns]

    def borrows(self, units: Sequence[Unit]) -> bool:
        """Whether a noun that the sentence lacks was borrowed from another sentence of `units`.

        A noun counts as borrowed if none of its neighbours is in a sentence that has the noun, or if the
        aligned sentence has another content word in its place.
        """
        for place in self.nouns:
            value = self.own[place].value
            if self.aligned[place] or value in self.above or self.own[place].whole in LIGHT_WORDS:
                continue
            holding = [unit for unit in units if value in unit.values]
            if not 0 < len(holding) < TOPIC:
                continue
            beside = [self.own[at].value for at in self._beside(place)]
            if not any(other in unit.values for unit in holding for other in beside):
                return True
            if self._is_slot(place, 1):
                return True
        return False

    def displaces(self) -> bool:
        """Whether the sentence has another content word in the place of one of the claim's nouns.

        This requires that the sentence also has the claim's noun, but far from the noun's neighbours.
        """
        for place in self.nouns:
            here = self.places.get(self.aligned[place], [])
            if not here:
                continue
            distances = [
                min(abs(one - other) for one in here for other in self.places[self.aligned[at]])
                for at in self._neighbours(place, NEIGHBOURS)
            ]
            if distances and min(distances) > NOUN_RADIUS and self._is_slot(place, NEIGHBOURS):
                return True
        return False

    def _counterpart(self, token: Token) -> str:
        if token.value in self.unit.values:
            return token.value
        if token.kind not in (Kind.WORD, Kind.NAME):
            return ""
        related = self.unit.relations.related(
            token.value, token.whole, is_name=token.value in self.claim.names
        )
        if related or not token.whole:
            return related
        translated = map(stem, translations_of(token.whole))
        return next((value for value in translated if value in self.unit.values), "")

    def _beside(self, place: int) -> list[int]:
        first, last = max(0, place - NEIGHBOURS), min(len(self.own), place + NEIGHBOURS + 1)
        return [at for at in range(first, last) if at != place]

    def _neighbours(self, place: int, reach: int) -> list[int]:
        """The nearest words before and after a noun, within `reach`, that the sentence also has."""
        before = range(place - 1, max(-1, place - 1 - reach), -1)
        after = range(place + 1, min(len(self.own), place + 1 + reach))
        found = []
        for side in (before, after):
            for at in side:
                value = self.aligned[at]
                if value in self.places and value != self.aligned[place]:
                    found.append(at)
                    break
        return found

    def _is_slot(self, place: int, reach: int) -> bool:
        """Whether a content word that the clause lacks takes this noun's place in the sentence."""
        said = frozenset(self.aligned)
        for at in self._neighbours(place, reach):
            for there in self.places[self.aligned[at]]:
                start = there + 1 if at < place else max(0, there - SLOT)
                for token in self.unit.tokens[start : start + SLOT if at < place else there]:
                    if (
                        token.kind in (Kind.WORD, Kind.NAME)
                        and token.value not in said
                        and token.whole
                        and not token.unit
                        and token.whole not in LIGHT_WORDS
                    ):
                        return True
        return False
