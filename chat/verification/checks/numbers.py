"""Compares the numbers of a statement with those of a source, and what they count."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from chat.verification.cited_passages import Unit
from chat.verification.claims import (
    CONTRADICTION,
    LITERAL_SHARE,
    MIN_SHARE,
    MISPLACED,
    OTHER_SUBJECT,
    UNANSWERED,
    Claim,
)
from chat.verification.terms.facts import BEYOND_VERBS
from chat.verification.terms.lexicon import DENIABLE, DIMENSIONS, POLES, REFUSALS
from chat.verification.terms.quantities import amount, is_one_of, orders, same_kind, same_number
from chat.verification.terms.words import Kind, Token, measure

from .occurrences import Occurrence, beside_of

HALF = ("half", "halb", "halbe", "halben", "hälf")
PERIODS = {
    ("3", "month"): ("quarterly", "quarter", "vierteljährlich", "quartalsweise", "quartal"),
    ("6", "month"): ("half-yearly", "semiannual", "halbjährlich", "halbjahr"),
    ("2", "week"): ("fortnight", "fortnightly", "biweekly", "zweiwöchentlich", "vierzehntägig"),
}
MAX_BEFORE = 16  # characters that are examined before a number
NEARLY = 1.15  # the source of “more than 10 %” may have a number up to this many times as large
MAX_RANGE_GAP = 5  # characters between the numbers of a range: “3 to 5”
RATE_TOKENS = 2  # tokens after a number that may be the unit of time of a rate: “a month”
MAX_NUMBERS = 60  # a claim with more numbers is not confirmed
MAX_HOLDING = 10  # occurrences of a number that are examined

_COMPARED = re.compile(
    r"\b(?:more|fewer|less|extra|additional|older|younger|longer|shorter|later|earlier|higher|lower"
    r"|mehr|weniger|zusätzlich\w{0,2}|älter|jünger|länger|kürzer|später|früher|höher|niedriger)\b",
    re.IGNORECASE,
)
_OTHERS = ("other", "others", "remaining", "anderen", "übrigen", "restlichen")
_BEYOND = {
    "most": ("more", "exceed", "exceeds", "exceeding", "longer", "mehr", "länger"),
    "maximum": ("more", "exceed", "exceeds", "exceeding", "longer"),
    "höchstens": ("mehr", "länger"),
    "least": ("less", "fewer", "shorter"),
    "minimum": ("less", "fewer", "shorter"),
    "mindestens": ("weniger", "kürzer"),
}

# Bounds that are not tokens, because most of their words are also ordinary prepositions.
# Verbs after which “over” or “über” is no bound: “carry over five days”.
_WITH_OVER = (
    "carry", "carries", "carried", "carrying", "roll", "rolls", "rolled", "take", "takes", "taken", "took",
    "hand", "hands", "handed", "spread", "spreads", "paid", "verteilt", "läuft", "laufen", "geht", "gehen",
)  # fmt: skip
_OVER = "".join(rf"(?<!{verb}\s)" for verb in _WITH_OVER) + "(?:over|above|über)"
_OPEN_BOUND = re.compile(
    rf"\b(?:(?P<most>up\s{{1,3}}to|bis\s{{1,3}}zu)|(?P<more>{_OVER}|(?:may|can|could)\s{{1,3}}exceed)|(?P<less>under|below|unter))"
    r"\s{1,3}(?:[£$€]\s?|(?:EUR|USD|GBP|CHF)\s)?\Z",
    re.IGNORECASE,
)
MAX_OPEN_BOUND = 28  # characters before a number that are searched for such a bound
_PREPOSITION = re.compile(r"(?:über|unter)\s", re.IGNORECASE)
_EXTENSION = re.compile(r"\d{4,}\Z")  # “unter 4711 erreichbar”
_BOUND_KINDS = {
    **dict.fromkeys(("most", "maximum", "höchstens", "maximal"), "most"),
    **dict.fromkeys(("least", "minimum", "mindestens", "minimal"), "least"),
    **dict.fromkeys(("more", "exceed", "exceeds", "exceeding", "longer", "mehr", "länger"), "more"),
    **dict.fromkeys(("less", "fewer", "shorter", "weniger", "kürzer"), "less"),
}
_REVERSED = frozenset(
    frozenset(pair) for pair in (("most", "least"), ("most", "more"), ("least", "less"), ("more", "less"))
)
_REFUSING = frozenset(form for form, (number, side) in POLES.items() if number in DENIABLE and side)
_BEFORE_EVENT = ("before", "prior", "vor")
_MAY = re.compile(r"\b(?:darf|dürfen|kann|können)\b[^.,;:]{0,100}\Z")
MAX_MAY = 120  # characters before “überschreiten” that are searched for its modal verb
BOUND_TOKENS = 3  # tokens from a number to a German verb after it


def number_evidence(
    claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit], around: frozenset[str], share: float
) -> float:
    """Evidence that the source lacks a number of the claim, or counts something else with it.

    `around` has the words of the title and headings; the selected units have `share` of the claim's words.
    """
    # Do not confirm claims with more than MAX_NUMBERS numbers, which would take seconds to compare.
    found = 0.0 if len(claim.numbers) <= MAX_NUMBERS else MISPLACED
    places = claim.numbers if not found else []
    own = [claim.tokens[place] for place in places]
    for number, place in zip(own, places, strict=True):
        holding = [
            (unit, at) for unit in chosen for at in unit.number_places if same_number(number, unit.tokens[at])
        ]
        if holding and _has_other_rate(claim, place, holding):
            found = CONTRADICTION if share >= MIN_SHARE else MISPLACED
            continue
        if holding and _has_other_unit(number, own, chosen[0], holding):
            found = max(found, MISPLACED)
            continue
        if orders(claim.text, number) and not number.unit:
            continue  # “first” only orders statements here
        if not holding:
            if not _is_implied(claim, place, own, chosen, around):
                found = max(found, _missing(claim, place, own, chosen, units, share))
            continue
        beside = beside_of(claim.tokens, place) - around
        rivals = [
            unit
            for unit in units
            if any(same_kind(token, number) and not is_one_of(token, own) for token in unit.number_tokens)
        ]
        if not any(
            Occurrence(claim, own, units, unit, at).is_meant(beside, rivals)
            for unit, at in holding[:MAX_HOLDING]
        ) and not (_COMPARED.search(claim.text) and _is_derived(number, own, chosen)):
            found = max(found, MISPLACED)
        elif (
            not claim.joins
            and all(unit is not chosen[0] for unit, _ in holding)
            and any(
                same_kind(token, number) and not is_one_of(token, own) for token in chosen[0].number_tokens
            )
        ):
            found = max(found, UNANSWERED)  # the best sentence has another number in its place
    return found


def _is_implied(
    claim: Claim, place: int, own: Sequence[Token], chosen: Sequence[Unit], around: frozenset[str]
) -> bool:
    """Whether a number that no selected unit has is implied by something else.

    It may be implied by words or other numbers of the units, by headings (`around`) or by the claim.
    """
    number = claim.tokens[place]
    words = {token.whole for unit in chosen for token in unit.tokens}
    is_word = not claim.text[number.start].isdigit()
    if is_word and number.value == "1" and not number.unit:
        return True
    if is_word and _is_single(number, chosen):
        return True
    if _is_implied_by_claim(claim, number, own):
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
    """Evidence against a number that the selected units lack.

    If the units have the claim's words, but no other number in place of this number, this number may be
    written differently. Below LITERAL_SHARE, a number is in its place only if it is next to the same words.
    """
    number = claim.tokens[place]
    if number.value == "0" or any(  # “below zero” is “negative”
        same_number(number, token) for unit in units for token in unit.number_tokens
    ):
        return MISPLACED
    if share < OTHER_SUBJECT:
        return CONTRADICTION
    if share < MIN_SHARE or any(_lies_between(number, unit) for unit in chosen):
        return UNANSWERED
    places = {(unit.rank, unit.place + step) for unit in chosen for step in (-1, 0, 1)}
    beside = beside_of(claim.tokens, place)
    has_rival = any(
        same_kind(token, number)
        and (token.unit or not number.unit)
        and not is_one_of(token, own)
        and (share >= LITERAL_SHARE or not beside.isdisjoint(beside_of(unit.tokens, at)))
        for unit in units
        if (unit.rank, unit.place) in places
        for at, token in enumerate(unit.tokens)
        if token.kind is Kind.NUMBER
    )
    return CONTRADICTION if has_rival else UNANSWERED


def _lies_between(number: Token, unit: Unit) -> bool:
    """Whether a number lies within a range of the unit: four years in “3 to 5 years”."""
    value = amount(number)
    if value is None:
        return False
    for one, other in pairwise(unit.tokens):
        if one.kind is other.kind is Kind.NUMBER and one.end + MAX_RANGE_GAP >= other.start:
            low, high = amount(one), amount(other)
            if low is None or high is None or not min(low, high) < value < max(low, high):
                continue
            if not other.unit or same_kind(other, number):
                return True
    return False


def _is_implied_by_claim(claim: Claim, number: Token, own: Sequence[Token]) -> bool:
    """Whether the claim itself implies a number, as in “the other three” or “between two days”."""
    before = claim.text[max(0, number.start - MAX_BEFORE) : number.start].casefold().split()
    if before and before[-1] in ("between", "zwischen"):
        return number.value == "2"
    if number.unit or not before:
        return False
    amounts = [amount(each) for each in own]
    return before[-1] in _OTHERS and (amount(number) or 0.0) + 1 in amounts


def _is_exceeded(claim: Claim, place: int, chosen: Sequence[Unit]) -> bool:
    """Whether the claim says “more than” a percentage, and the source has a slightly higher one."""
    number = claim.tokens[place]
    value = amount(number)
    before = claim.tokens[place - 1] if place else None
    if number.unit != "%" or value is None or before is None or before.value not in ("more", "over", "mehr"):
        return False
    return any(
        token.kind is Kind.NUMBER and token.unit == "%" and value < (amount(token) or 0.0) <= NEARLY * value
        for unit in chosen
        for token in unit.tokens
    )


def _has_other_rate(claim: Claim, place: int, holding: Sequence[tuple[Unit, int]]) -> bool:
    """Whether a number has another rate in the source: “per week” for “per month”."""
    rate = _rate(claim.tokens, place)
    rates = {_rate(unit.tokens, at) for unit, at in holding}
    return bool(rate) and "" not in rates and rate not in rates


def _has_other_unit(
    number: Token, own: Sequence[Token], first: Unit, holding: Sequence[tuple[Unit, int]]
) -> bool:
    """Whether the same number counts something else in the source: “five days” for “five times”.

    Also whether the best sentence has it with another unit of the same kind: “three years” for “three
    months”.
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
        and any(token.unit == number.unit and not is_one_of(token, own) for token in unit.number_tokens)
        for unit, at in holding
    )


def _begins_range(unit: Unit, at: int) -> bool:
    """Whether a number begins a range such as “three to five days”."""
    following = unit.tokens[at + 1 : at + 2]
    return bool(following) and (
        following[0].kind is Kind.NUMBER and not unit.text[unit.tokens[at].end : following[0].start].isspace()
    )


def _rate(found: Sequence[Token], place: int) -> str:
    """The unit of time of a rate, such as “month” in “$200 a month”; empty if there is none."""
    for at in range(place + 1, min(place + 1 + RATE_TOKENS, len(found))):
        token = found[at]
        if token.opens or token.kind is Kind.NUMBER:
            break
        if DIMENSIONS.get(token.unit) == "time" and token.unit != found[place].unit:
            return token.unit
    return ""


def _is_derived(number: Token, own: Sequence[Token], chosen: Sequence[Unit]) -> bool:
    """Whether a number is the difference of two numbers: “three more, 30 in all”.

    Both must be in the source, and one in the claim. “20 % more” also follows from “120”.
    """
    value = amount(number)
    there = [
        each
        for unit in chosen
        for token in unit.tokens
        if token.kind is Kind.NUMBER and (each := amount(token)) is not None
    ]
    if value is None:
        return False
    if number.unit == "%" and 100 + value in there:
        return True
    said = {each for token in own if token is not number and (each := amount(token)) is not None}
    return any(abs(one - other) == value for one in said for other in there if one in there)


def _is_single(number: Token, chosen: Sequence[Unit]) -> bool:
    """Whether a unit of measure alone is this amount: “blocks of a week” for seven days."""
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


def exceeds_bound(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether the claim says “more than” a maximum of the source, or “less than” a minimum."""
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
    """Words such as “most” before a number, each with that number."""
    for place, token in enumerate(found):
        if token.kind is Kind.POLAR:
            number = next((each for each in found[place + 1 : place + 3] if each.kind is Kind.NUMBER), None)
            if number is not None:
                yield token.value, number.value


def reverses_bound(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether the source bounds a number of the claim in the opposite way: “up to 30” for “at least 30”.

    At least one of the two bounds is one of `_OPEN_BOUND` or a German verb after the number; `exceeds_bound`
    and `poles_agree` compare the others.
    """
    said = [
        (claim.tokens[place], kind, is_open)
        for place in claim.numbers
        for kind, is_open in [_bound_of(claim.tokens, place, claim.text)]
        if kind
    ]
    if not said:
        return False
    denies = _denies(claim.tokens)
    # Only different bounds are compared: a statement and a source may have thousands of numbers.
    there: dict[tuple[str, str], set[tuple[str, bool, bool]]] = {
        (number.value, number.unit): set() for number, *_ in said
    }
    for unit in chosen:
        agrees = _denies(unit.tokens) == denies
        for at in unit.number_places:
            if (found := there.get((unit.tokens[at].value, unit.tokens[at].unit))) is not None:
                found.add((*_bound_of(unit.tokens, at, unit.text), agrees))
    # The number of another sentence than the best one may count something else.
    best = {(token.value, token.unit) for token in chosen[0].number_tokens}
    return any(
        (number.value, number.unit) in best
        and all(
            {kind, other} in _REVERSED and (is_open or other_is_open) and agrees
            for other, other_is_open, agrees in there[number.value, number.unit]
        )
        for number, kind, is_open in said
    )


def _denies(found: Sequence[Token]) -> bool:
    """Whether there is a negation, or a word such as “prohibited” or “rejected”."""
    return any(
        token.kind is Kind.NEGATION
        or token.whole in REFUSALS
        or (token.kind is Kind.POLAR and token.value in _REFUSING)
        for token in found
    )


def _bound_of(found: Sequence[Token], at: int, text: str) -> tuple[str, bool]:
    """What kind of bound a number is, as in `_BOUND_KINDS`, and whether other checks do not know this bound.

    The kind is empty if the number is no bound.
    """
    start = found[at].start
    if match := _OPEN_BOUND.search(text, max(0, start - MAX_OPEN_BOUND), start):
        following = found[at + 1 : at + 1 + BOUND_TOKENS]
        if match["most"] and any(token.value in _BEFORE_EVENT for token in following):
            return "", False  # “up to 14 days before” may be a deadline: at least 14 days before
        if (
            not found[at].unit
            and _PREPOSITION.match(match[0])
            and _EXTENSION.match(text, start, found[at].end)
        ):
            return "", False
        return match.lastgroup or "", True
    before = [token for token in found[max(0, at - 2) : at] if token.value in _BOUND_KINDS]
    if before and before[-1] is found[at - 1]:  # “no more than” is “most” and “more”
        return _BOUND_KINDS[before[0].value], False
    for token in found[at + 1 : at + 1 + BOUND_TOKENS]:
        if token.kind is Kind.NUMBER:
            break
        if token.value == "höchstens":  # “darf acht Stunden nicht überschreiten”
            return "most", True
        if token.whole in BEYOND_VERBS and _MAY.search(text, max(0, token.start - MAX_MAY), token.start):
            return "more", True
    return "", False
