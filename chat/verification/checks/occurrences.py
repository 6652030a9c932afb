"""Judges from the context of a source's number whether it counts the same thing as in a claim."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from chat.verification.cited_passages import Unit
from chat.verification.claims import Claim
from chat.verification.terms.lexicon import POLES
from chat.verification.terms.quantities import is_of_a_name, is_one_of, orders, same_kind, same_number
from chat.verification.terms.words import Kind, Token

TOKEN_RADIUS = 4  # greatest distance, in tokens, between related tokens
CLEARLY_MORE = 2  # a sentence with another number is better if it has this many more of the claim's words
MIN_HEADER = 4  # words; a shorter header does not show which of two columns a claim names
# Shares of the words of a header with two columns of numbers: the words for the first column end at
# FIRST_HALF, and those for the second begin at SECOND_HALF.
FIRST_HALF, SECOND_HALF = 0.55, 0.67
MAX_TOKENS = 2_000  # more than any unit has
RANGE_TOKENS = 2  # tokens from one number of a range to the other
OPENING = POLES["opens"][0]


@dataclass(frozen=True)
class Occurrence:
    """A number of a source that equals a number of the claim, and may count the same thing."""

    claim: Claim
    own: Sequence[Token]  # all numbers of the claim
    units: Sequence[Unit]  # the units of the source
    unit: Unit
    at: int  # the position of the number in `unit`

    def is_meant(self, beside: set[str], rivals: Sequence[Unit]) -> bool:
        """Whether the number counts the same thing as in the claim.

        `beside` has the words next to the number in the claim; `rivals` are units with a number of the same
        kind that the claim lacks.
        """
        claim, unit, own = self.claim, self.unit, self.own
        in_column = self._is_in_column()
        if in_column is not None:
            return in_column
        if len(own) > 2 and all(each.value in unit.values for each in own):
            return True
        said = [each.value for each in own if not orders(claim.text, each)]
        if len(said) > 1 and sorted(said) == sorted(each.value for each in unit.number_tokens):
            return True
        if unit.table < 0 and self._has_range():
            return True
        if self._other_row_holds_more():
            return False
        here = claim.said & unit.said
        for rival in rivals:
            there = claim.said & rival.said
            if here < there and len(there) >= len(here) + CLEARLY_MORE:
                return False
        nearer = unit.table < 0 and self._other_is_nearer(beside)  # in a table row, distance has no meaning
        likely = [rival for rival in rivals if len(claim.said & rival.said) >= len(here)]
        return not (nearer or belongs_elsewhere(beside, unit, likely))

    def _is_in_column(self) -> bool | None:
        """Whether the number is in the column that the claim names (“Class A”); None if unclear."""
        unit, at = self.unit, self.at
        if unit.cells:
            return False if self._is_in_another_cell() else None
        cells = [
            place
            for place, token in enumerate(unit.tokens)
            if (token.kind is Kind.NUMBER and same_kind(token, unit.tokens[at]))
            or (unit.table >= 0 and token.kind is Kind.NEGATION)
        ]
        own = [value for value in self.claim.values if value.startswith("letter ")]
        for found in (unit.tokens, unit.columns):
            letters = columns_of(found)
            if len(letters) < 2 or all(each.isdisjoint(own) for each in letters):
                continue
            number = cells.index(at)
            # A row that continues on the next line has the first columns, and may lack the last ones.
            is_cut = found is unit.columns and unit.numbers < len(letters)
            if len(letters) == len(cells) or is_cut:
                return not letters[number].isdisjoint(own)
        if all(any(same_number(each, unit.tokens[cell]) for each in self.own) for cell in cells):
            return None  # the claim has the numbers of all columns
        if len(cells) == 2 and unit.table >= 0 and self._named_column() == 1 - cells.index(at):
            return False
        return None

    def _has_range(self) -> bool:
        """Whether the number belongs to a range that the claim also contains: “between 10 and 15:30”."""
        number, unit = self.unit.tokens[self.at], self.unit
        for one, other in pairwise(self.own):
            if self.claim.tokens.index(other) - self.claim.tokens.index(one) > RANGE_TOKENS:
                continue
            for first, second in pairwise(unit.number_tokens):
                if number in (first, second) and (first.value, second.value) == (one.value, other.value):
                    return True
        return False

    def _is_in_another_cell(self) -> bool:
        """Whether the claim names more of another cell's label, and lacks that cell's number."""
        claim, unit, at = self.claim, self.unit, self.at
        own = next((cell for cell in unit.cells if cell.start <= at < cell.end), None)
        if own is None:
            return False
        here = own.label & claim.values
        return any(
            here < cell.label & claim.values
            for cell in unit.cells
            if any(
                token.kind is Kind.NUMBER
                and same_kind(token, unit.tokens[at])
                and not any(same_number(each, token) for each in self.own)
                for token in unit.tokens[cell.start : cell.end]
            )
        )

    def _named_column(self) -> int:
        """Which of two columns (0 or 1) the claim names with words of the header; -1 if unclear."""
        claim, unit = self.claim, self.unit
        words = [token.value for token in unit.columns]
        if len(words) < MIN_HEADER:
            return -1
        named = {
            (
                0
                if place <= FIRST_HALF * (len(words) - 1)
                else 1
                if place >= SECOND_HALF * (len(words) - 1)
                else -1
            )
            for place, value in enumerate(words)
            if place and value in claim.values and words.count(value) == 1 and value not in unit.values
        }
        named.discard(-1)
        return named.pop() if len(named) == 1 else -1

    def _other_row_holds_more(self) -> bool:
        """Whether another row of the table has all the claim's words that this row has, and more."""
        claim, unit, number = self.claim, self.unit, self.unit.tokens[self.at]
        if unit.table < 0:
            return False
        rows = [each for each in self.units if (each.rank, each.table) == (unit.rank, unit.table)]
        common = frozenset.intersection(*(row.values for row in rows)) | unit.context | {number.value}
        here = (claim.values & unit.values) - common
        # Ignore a row with another number of the claim, because the claim describes that row too.
        others = {each.value for each in self.own if each.unit and each.unit == number.unit} - unit.values
        return any(
            here < (claim.values & row.values) - common
            and number.value not in row.values
            and others.isdisjoint(row.values)
            for row in rows
        )

    def _other_is_nearer(self, beside: set[str]) -> bool:
        """Whether most words in `beside` are closer to another number of the same kind in the unit."""
        unit, at = self.unit, self.at
        others = [
            position
            for position, token in enumerate(unit.tokens)
            if token.kind is Kind.NUMBER
            and position  # the first token may be the number of a section or of an item
            and same_kind(token, unit.tokens[at])
            and not is_one_of(token, self.own)
            and not is_of_a_name(unit.tokens, position)
            and not (
                abs(position - at) <= 2 and token.unit == unit.tokens[at].unit == "date"
            )  # the same date
        ]
        if not others:
            return False
        nearest: dict[str, int] = {}
        for position, token in enumerate(unit.tokens):
            if token.value in beside:
                # A number after a comma or another mark does not belong to the words before it.
                near = [
                    abs(position - each) for each in others if each < position or not unit.tokens[each].opens
                ]
                votes = min(near, default=MAX_TOKENS) - abs(position - at)
                nearest[token.value] = max(votes, nearest.get(token.value, votes))
        return sum((vote < 0) - (vote > 0) for vote in nearest.values()) > 0


def columns_of(found: Sequence[Token]) -> list[set[str]]:
    """The sets of letters that name columns; “Class A and B, Class C” names two columns."""
    columns: list[set[str]] = []
    last = -2
    for place, token in enumerate(found):
        if token.value.startswith("letter "):
            if place == last + 1 and not token.opens:
                columns[-1].add(token.value)
            else:
                columns.append({token.value})
            last = place
    return columns


def belongs_elsewhere(beside: set[str], unit: Unit, others: Iterable[Unit]) -> bool:
    """Whether another unit has all words of `beside` that this unit has, and more."""
    here = beside & unit.words
    return any(here < (beside & other.words) for other in others if other is not unit)


def beside_of(found: Sequence[Token], at: int) -> set[str]:
    """The nearby words that may describe a token: up to two before and two after it."""
    before = [token.value for token in found[max(0, at - TOKEN_RADIUS) : at] if _is_topic(token)]
    after = [token.value for token in found[at + 1 : at + 1 + TOKEN_RADIUS] if _is_topic(token)]
    return {*before[-2:], *after[:2]}


def _is_topic(token: Token) -> bool:
    if token.kind is Kind.POLAR:
        return POLES[token.value][0] == OPENING
    return token.kind in (Kind.WORD, Kind.NAME) and not token.unit and not token.value.startswith("month")
