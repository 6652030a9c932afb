"""Compares the numbers of a statement with those of a source, and what they count."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .cited_passages import Unit
from .claims import CONTRADICTION, LEAST_SHARE, LITERAL_SHARE, MISPLACED, OTHER_SUBJECT, UNANSWERED, Claim
from .clock import CLOCK, same_time
from .lexicon import DIMENSIONS, POLES
from .words import Kind, Token, measure

NEAR = 4  # tokens: the greatest distance between related ones
CLEARLY_MORE = 2  # words by which a sentence with another number must match more of a statement
LEAST_HEADER = 4  # words of a header with two columns of numbers
FIRST_HALF, SECOND_HALF = 0.55, 0.67  # of a header: positions of the words of two columns
MAX_TOKENS = 2_000  # more than a unit has between two of its words
HALF = ("half", "halb", "halbe", "halben", "hälf")
PERIODS = {
    ("3", "month"): ("quarterly", "quarter", "vierteljährlich", "quartalsweise", "quartal"),
    ("6", "month"): ("half-yearly", "semiannual", "halbjährlich", "halbjahr"),
    ("2", "week"): ("fortnight", "fortnightly", "biweekly", "zweiwöchentlich", "vierzehntägig"),
}
OPENING = POLES["opens"][0]
MAX_BEFORE = 16  # characters before a number that are read
NEARLY = 1.15  # times a share that is said to be exceeded
RANGE_TOKENS = 2  # from one number of a range to the other
MAX_RANGE_GAP = 5  # characters between them: “3 to 5”
RATE_TOKENS = 2  # from a number to the time that it is of
MAX_NUMBERS = 60  # of a statement that are compared
MAX_HOLDING = 10  # occurrences of a number that are examined

DAY = 86_400.0  # seconds
YEAR_DAYS = (365, 364)  # a year, and 52 weeks of it
_COMPARED = re.compile(
    r"\b(?:more|fewer|less|extra|additional|older|younger|longer|shorter|later|earlier|higher|lower"
    r"|mehr|weniger|zusätzlich\w{0,2}|älter|jünger|länger|kürzer|später|früher|höher|niedriger)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(r"first|firstly|erst|zuerst|erstens", re.IGNORECASE)
_OTHERS = ("other", "others", "remaining", "anderen", "übrigen", "restlichen")
_BEYOND = {
    "most": ("more", "exceed", "exceeds", "exceeding", "longer", "mehr", "länger"),
    "maximum": ("more", "exceed", "exceeds", "exceeding", "longer"),
    "höchstens": ("mehr", "länger"),
    "least": ("less", "fewer", "shorter"),
    "minimum": ("less", "fewer", "shorter"),
    "mindestens": ("weniger", "kürzer"),
}


def number_evidence(
    claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit], around: frozenset[str], share: float
) -> float:
    """Evidence that a number is not in the source, or not in a chosen unit nearest to the words around it.

    The units have `share` of the other words.
    """
    # More than that get no assurance, which would take seconds.
    found = 0.0 if len(claim.numbers) <= MAX_NUMBERS else MISPLACED
    places = claim.numbers if not found else []
    own = [claim.tokens[place] for place in places]
    for number, place in zip(own, places, strict=True):
        holding = [
            (unit, at)
            for unit in chosen
            for at, token in enumerate(unit.tokens)
            if token.kind is Kind.NUMBER and same_number(number, token)
        ]
        if holding and _has_other_rate(claim, place, holding):
            found = CONTRADICTION if share >= LEAST_SHARE else MISPLACED
            continue
        if holding and _has_other_unit(number, own, chosen[0], holding):
            found = max(found, MISPLACED)
            continue
        if _ORDERS.fullmatch(claim.text, number.start, number.end) and not number.unit:
            continue  # “first” orders statements
        if not holding:
            if not _is_put_otherwise(claim, place, own, chosen, around):
                found = max(found, _missing(claim, place, own, chosen, units, share))
            continue
        beside = beside_of(claim.tokens, place) - around
        rivals = [
            unit
            for unit in units
            if any(same_kind(token, number) and not _is_one_of(token, own) for token in unit.number_tokens)
        ]
        if not any(
            _Occurrence(claim, own, units, unit, at).is_meant(beside, rivals)
            for unit, at in holding[:MAX_HOLDING]
        ) and not (_COMPARED.search(claim.text) and _is_derived(number, own, chosen)):
            found = MISPLACED
        elif (
            not claim.joins
            and all(unit is not chosen[0] for unit, _ in holding)
            and any(
                same_kind(token, number) and not _is_one_of(token, own) for token in chosen[0].number_tokens
            )
        ):
            found = max(found, UNANSWERED)  # the best sentence has another number in its place
    return found


@dataclass(frozen=True)
class _Occurrence:
    """A number of a source that may be one of the claim's."""

    claim: Claim
    own: Sequence[Token]  # the numbers of the claim
    units: Sequence[Unit]  # of the source
    unit: Unit
    at: int  # the place of the number in `unit`

    def is_meant(self, beside: set[str], rivals: Sequence[Unit]) -> bool:
        """Whether it counts what the claim says; `rivals` have another number of its kind."""
        claim, unit, own = self.claim, self.unit, self.own
        in_column = self._is_in_column()
        if in_column is not None:
            return in_column
        if len(own) > 2 and all(each.value in unit.values for each in own):
            return True
        said = [each.value for each in own if not _ORDERS.fullmatch(claim.text, each.start, each.end)]
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
        nearer = unit.table < 0 and self._other_is_nearer(beside)  # all cells belong to the first one
        likely = [rival for rival in rivals if len(claim.said & rival.said) >= len(here)]
        return not (nearer or belongs_elsewhere(beside, unit, likely))

    def _is_in_column(self) -> bool | None:
        """Whether it is in the column that the statement names: “ten on Class A, five on Class B”."""
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
            # A row of several lines begins with the first column, and lacks the last ones.
            is_cut = found is unit.columns and unit.numbers < len(letters)
            if len(letters) == len(cells) or is_cut:
                return not letters[number].isdisjoint(own)
        if all(any(same_number(each, unit.tokens[cell]) for each in self.own) for cell in cells):
            return None  # the statement has both
        if len(cells) == 2 and unit.table >= 0 and self._named_column() == 1 - cells.index(at):
            return False
        return None

    def _has_range(self) -> bool:
        """Whether it is one of two that follow each other, here and in the claim (“between 10 and 15:30”)."""
        number, unit = self.unit.tokens[self.at], self.unit
        for one, other in pairwise(self.own):
            if self.claim.tokens.index(other) - self.claim.tokens.index(one) > RANGE_TOKENS:
                continue
            for first, second in pairwise(unit.number_tokens):
                if number in (first, second) and (first.value, second.value) == (one.value, other.value):
                    return True
        return False

    def _is_in_another_cell(self) -> bool:
        """Whether the statement has the label of another cell of a row that contains its labels."""
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
        """Which of two columns the statement names by words of the header; -1 if unclear."""
        claim, unit = self.claim, self.unit
        words = [token.value for token in unit.columns]
        if len(words) < LEAST_HEADER:
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
        """Whether another row of the table matches everything that this one matches, and more."""
        claim, unit, number = self.claim, self.unit, self.unit.tokens[self.at]
        if unit.table < 0:
            return False
        rows = [each for each in self.units if (each.rank, each.table) == (unit.rank, unit.table)]
        common = frozenset.intersection(*(row.values for row in rows)) | unit.context | {number.value}
        here = (claim.values & unit.values) - common
        # A row that the statement also describes.
        others = {each.value for each in self.own if each.unit and each.unit == number.unit} - unit.values
        return any(
            here < (claim.values & row.values) - common
            and number.value not in row.values
            and others.isdisjoint(row.values)
            for row in rows
        )

    def _other_is_nearer(self, beside: set[str]) -> bool:
        """Whether most of the adjacent words are nearer to another number of its kind in the unit."""
        unit, at = self.unit, self.at
        others = [
            position
            for position, token in enumerate(unit.tokens)
            if token.kind is Kind.NUMBER
            and position  # the first one of a unit may be that of a section or of an item
            and same_kind(token, unit.tokens[at])
            and not _is_one_of(token, self.own)
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
                # Words before a number at the start of a clause do not belong to it.
                near = [
                    abs(position - each) for each in others if each < position or not unit.tokens[each].opens
                ]
                votes = min(near, default=MAX_TOKENS) - abs(position - at)
                nearest[token.value] = max(votes, nearest.get(token.value, votes))
        return sum((vote < 0) - (vote > 0) for vote in nearest.values()) > 0


def is_of_a_name(found: Sequence[Token], at: int) -> bool:
    """Whether a number is part of a name: “Office 2007”, “Absatz 2”."""
    before, number = found[at - 1], found[at]
    return (
        before.kind is Kind.NAME
        and not before.value.startswith("month")
        and not number.unit
        and number.start - before.end == 1
    )


def _is_put_otherwise(
    claim: Claim, place: int, own: Sequence[Token], chosen: Sequence[Unit], around: frozenset[str]
) -> bool:
    """Whether the units or the headings (`around`) imply a number that no unit has."""
    number = claim.tokens[place]
    words = {token.whole for unit in chosen for token in unit.tokens}
    is_word = not claim.text[number.start].isdigit()
    if is_word and number.value == "1" and not number.unit:
        return True
    if is_word and _is_single(number, chosen):
        return True
    if _is_of_the_others(claim, number, own):
        return True
    if (number.value, number.unit) == ("50", "%") and any(
        token.value in HALF for unit in chosen for token in unit.tokens
    ):
        return True
    return (
        not words.isdisjoint(PERIODS.get((number.value, number.unit), ()))
        or (number.value in around and not number.unit)
        or _is_exceeded(claim, place, chosen)
        or (bool(_COMPARED.search(claim.text)) and _is_derived(number, own, chosen))
    )


def _missing(
    claim: Claim,
    place: int,
    own: Sequence[Token],
    chosen: Sequence[Unit],
    units: Sequence[Unit],
    share: float,
) -> float:
    """Evidence that a number which the chosen units lack is wrong.

    If they say the rest, and have no other number in its place, it may be written otherwise. In other words
    only a number beside the same words is in its place.
    """
    number = claim.tokens[place]
    if number.value == "0" or any(  # “below zero” is “negative”
        same_number(number, token) for unit in units for token in unit.number_tokens
    ):
        return MISPLACED
    if share < OTHER_SUBJECT:
        return CONTRADICTION
    if share < LEAST_SHARE or any(_lies_between(number, unit) for unit in chosen):
        return UNANSWERED
    places = {(unit.rank, unit.place + step) for unit in chosen for step in (-1, 0, 1)}
    beside = beside_of(claim.tokens, place)
    is_rivalled = any(
        same_kind(token, number)
        and (token.unit or not number.unit)
        and not _is_one_of(token, own)
        and (share >= LITERAL_SHARE or not beside.isdisjoint(beside_of(unit.tokens, at)))
        for unit in units
        if (unit.rank, unit.place) in places
        for at, token in enumerate(unit.tokens)
        if token.kind is Kind.NUMBER
    )
    return CONTRADICTION if is_rivalled else UNANSWERED


def _lies_between(number: Token, unit: Unit) -> bool:
    """Whether a number is in a range of the unit: four years in “3 to 5 years”."""
    value = _amount(number)
    if value is None:
        return False
    for one, other in pairwise(unit.tokens):
        if one.kind is other.kind is Kind.NUMBER and one.end + MAX_RANGE_GAP >= other.start:
            low, high = _amount(one), _amount(other)
            if low is None or high is None or not min(low, high) < value < max(low, high):
                continue
            if not other.unit or same_kind(other, number):
                return True
    return False


def _is_of_the_others(claim: Claim, number: Token, own: Sequence[Token]) -> bool:
    """Whether a number follows from the statement: of four the “other three”, “between two days”."""
    before = claim.text[max(0, number.start - MAX_BEFORE) : number.start].casefold().split()
    if before and before[-1] in ("between", "zwischen"):
        return number.value == "2"
    if number.unit or not before:
        return False
    amounts = [_amount(each) for each in own]
    return before[-1] in _OTHERS and (_amount(number) or 0.0) + 1 in amounts


def _is_exceeded(claim: Claim, place: int, chosen: Sequence[Unit]) -> bool:
    """Whether the statement says “more than” a share, and the source has a slightly higher one."""
    number = claim.tokens[place]
    value = _amount(number)
    before = claim.tokens[place - 1] if place else None
    if number.unit != "%" or value is None or before is None or before.value not in ("more", "over", "mehr"):
        return False
    return any(
        token.kind is Kind.NUMBER and token.unit == "%" and value < (_amount(token) or 0.0) <= NEARLY * value
        for unit in chosen
        for token in unit.tokens
    )


def same_number(one: Token, other: Token) -> bool:
    if CLOCK in (DIMENSIONS.get(one.unit), DIMENSIONS.get(other.unit)):
        return same_time(one, other)
    if one.value == other.value:
        if not one.unit and _is_day_in_digits(other):
            return False
        return (
            not (one.unit and other.unit)
            or one.unit == other.unit
            or {one.unit, other.unit} <= {"date", "day"}
        )
    if not (one.unit and other.unit):
        return False
    first, second = measure(one), measure(other)
    if not first or not second:
        return False
    return first == second or _is_about_the_same(first, second) or _is_about_the_same(second, first)


def _is_about_the_same(months: tuple[str, float], time: tuple[str, float]) -> bool:
    """Whether a number of months is that of days: 30 for each, 365 for twelve."""
    days = time[1] / DAY
    return (months[0], time[0]) == ("month", "second") and (
        days == 30 * months[1] or any(days * 12 == each * months[1] for each in YEAR_DAYS)
    )


def _is_day_in_digits(number: Token) -> bool:
    """The day of a date such as 2024-04-24."""
    return number.unit == "date" and len(number.value) <= 2 < number.end - number.start - 2


def _has_other_rate(claim: Claim, place: int, holding: Sequence[tuple[Unit, int]]) -> bool:
    """Whether it says “per week” of a number that the source has “per month”."""
    rate = _rate(claim.tokens, place)
    rates = {_rate(unit.tokens, at) for unit, at in holding}
    return bool(rate) and "" not in rates and rate not in rates


def _has_other_unit(
    number: Token, own: Sequence[Token], first: Unit, holding: Sequence[tuple[Unit, int]]
) -> bool:
    """Whether the source counts something else by the same number: “five days” for “ten days or five times”.

    Or the best sentence has it with another unit of the kind: “three years” for “three months”.
    """
    if number.unit in ("", "person"):
        return False
    if all(unit is not first for unit, _ in holding):
        return any(
            token.value == number.value and token.unit and same_kind(token, number)
            for token in first.number_tokens
        )
    return all(
        not unit.tokens[at].unit
        and not _begins_range(unit, at)
        and any(token.unit == number.unit and not _is_one_of(token, own) for token in unit.number_tokens)
        for unit, at in holding
    )


def _begins_range(unit: Unit, at: int) -> bool:
    """Whether a number is the first one of “three to five days”."""
    following = unit.tokens[at + 1 : at + 2]
    return bool(following) and (
        following[0].kind is Kind.NUMBER and not unit.text[unit.tokens[at].end : following[0].start].isspace()
    )


def _rate(found: Sequence[Token], place: int) -> str:
    """The time that a number is of, by the words after it: “$200 a month”, “two days per week”."""
    for at in range(place + 1, min(place + 1 + RATE_TOKENS, len(found))):
        token = found[at]
        if token.opens or token.kind is Kind.NUMBER:
            break
        if DIMENSIONS.get(token.unit) == "time" and token.unit != found[place].unit:
            return token.unit
    return ""


def _is_derived(number: Token, own: Sequence[Token], chosen: Sequence[Unit]) -> bool:
    """Whether a number is the difference of one that the statement has and another: “three more, 30 in all”.

    What is above 100 per cent is “more”.
    """
    value = _amount(number)
    there = [
        each
        for unit in chosen
        for token in unit.tokens
        if token.kind is Kind.NUMBER and (each := _amount(token)) is not None
    ]
    if value is None:
        return False
    if number.unit == "%" and 100 + value in there:
        return True
    said = {each for token in own if token is not number and (each := _amount(token)) is not None}
    return any(abs(one - other) == value for one in said for other in there if one in there)


def _amount(number: Token) -> float | None:
    try:
        return float(number.value)
    except ValueError:  # a time of day
        return None


def _is_single(number: Token, chosen: Sequence[Unit]) -> bool:
    """Whether a unit of measure without a number says as much: “in blocks of a week”, seven days."""
    wanted = measure(number)
    return any(
        token.kind is Kind.WORD
        and token.unit
        and (
            measure(token._replace(kind=Kind.NUMBER, value="1")) == wanted
            if wanted
            else (number.value, number.unit) == ("1", token.unit)
        )
        and not (at and unit.tokens[at - 1].unit == token.unit)
        for unit in chosen
        for at, token in enumerate(unit.tokens)
    )


def columns_of(found: Sequence[Token]) -> list[set[str]]:
    """The letters that name columns; “Class A and B, Class C” are two columns."""
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
    """Whether a unit with another such fact has all the adjacent words that this one has, and more."""
    here = beside & unit.words
    return any(here < (beside & other.words) for other in others if other is not unit)


def _is_one_of(token: Token, own: Sequence[Token]) -> bool:
    """Whether it is among the numbers of the statement; an article does not count as a number."""
    return bool(token.whole) or any(token.value == each.value or same_number(each, token) for each in own)


def same_kind(one: Token, other: Token) -> bool:
    return DIMENSIONS.get(one.unit, one.unit) == DIMENSIONS.get(other.unit, other.unit)


def beside_of(found: Sequence[Token], at: int) -> set[str]:
    """The words next to a token that describe it."""
    before = [token.value for token in found[max(0, at - NEAR) : at] if _is_topic(token)]
    after = [token.value for token in found[at + 1 : at + 1 + NEAR] if _is_topic(token)]
    return {*before[-2:], *after[:2]}


def _is_topic(token: Token) -> bool:
    if token.kind is Kind.POLAR:
        return POLES[token.value][0] == OPENING
    return token.kind in (Kind.WORD, Kind.NAME) and not token.unit and not token.value.startswith("month")


def exceeds_bound(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether it says “more than” a maximum, or “less than” a minimum."""
    if any(token.kind is Kind.NEGATION for token in claim.tokens):
        return False  # “less than 15 minutes do not count”
    bounds = {(token, number) for unit in chosen for token, number in _bounds(unit.tokens)}
    said = set(_bounds(claim.tokens))
    return any(
        (most, number) in bounds
        and not any((other, number) in said for other in _BEYOND)
        and not any((each, number) in bounds for each in beyond)
        for most, beyond in _BEYOND.items()
        for each, number in said
        if each in beyond
    )


def _bounds(found: Sequence[Token]) -> Iterable[tuple[str, str]]:
    """The words that bound a number, with that number."""
    for place, token in enumerate(found):
        if token.kind is Kind.POLAR:
            number = next((each for each in found[place + 1 : place + 3] if each.kind is Kind.NUMBER), None)
            if number is not None:
                yield token.value, number.value
