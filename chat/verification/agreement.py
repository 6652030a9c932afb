"""Whether sentences of a source agree with a statement in its numbers, names, negations and opposites."""

from collections.abc import Collection, Iterable, Sequence

from .claims import Claim
from .facts import REFUSALS, SYNONYMS, Kind, Token, skeletons, stem
from .lexicon import DENIABLE, DIMENSIONS, POLES
from .passages import Unit

NEARLY_LITERAL = 0.8  # the share of words from which a single other noun is a swap and no paraphrase
NEAR = 4  # tokens: how far what belongs together may stand apart
CLEARLY_MORE = 2  # words by which another sentence with another number must hold more of a statement
MAX_HOLDING = 10  # places of a number that are looked at
MAX_COMPOUND = 60  # letters of a word that is taken apart

# How many of a smaller unit a larger one is, so that two weeks are 14 days.
_LARGER = {
    ("week", "day"): 7,
    ("year", "month"): 12,
    ("day", "hour"): 24,
    ("hour", "minute"): 60,
    ("minute", "second"): 60,
}
_BEYOND = {
    "most": ("more", "exceed", "exceeds", "exceeding", "longer", "mehr", "länger"),
    "maximum": ("more", "exceed", "exceeds", "exceeding", "longer"),
    "höchstens": ("mehr", "länger"),
    "least": ("less", "fewer", "shorter"),
    "minimum": ("less", "fewer", "shorter"),
    "mindestens": ("weniger", "kürzer"),
}


def related_words(claim: Claim, missing: Sequence[str], chosen: Sequence[Unit]) -> dict[str, str]:
    """Words that are parts, other forms or synonyms of words that are there: Urlaubstage and Urlaub."""
    found: dict[str, str] = {}
    if not missing:
        return found
    there = [token for unit in chosen for token in unit.tokens if token.whole]
    beginnings = {token.value[:5]: token.value for token in there if len(token.value) >= 5}
    forms = {form: token.value for token in there for form in _forms(token.whole)}
    stems = {token.value for token in there if len(token.value) >= 4}
    joined = " ".join(dict.fromkeys(token.whole for token in there)) + " "
    wholes = {token.value: token.whole for token in claim.tokens if token.whole}
    for value in missing:
        whole = wholes.get(value, "")
        if not whole or any(character.isdigit() for character in value):
            continue
        form = next((form for form in _forms(whole) if form in forms), None)
        part = _part(whole, stems)
        if form is not None:
            found[value] = forms[form]
        elif len(value) >= 5 and value[:5] in beginnings:
            found[value] = beginnings[value[:5]]
        elif (len(value) >= 5 and (at := joined.find(value)) >= 0) or (
            len(whole) >= 4 and (at := joined.find(f"{whole} ")) >= 0
        ):
            first = joined.rfind(" ", 0, at) + 1
            found[value] = stem(joined[first : joined.find(" ", at)])
        elif part:
            found[value] = part
    return found


def _forms(word: str) -> list[str]:
    """What a word shares with its synonyms and with its strong forms (begins, began; gilt, galt)."""
    value = stem(word)
    forms = SYNONYMS.get(value, [])
    return [*forms, *(skeleton for skeleton in skeletons(word) if skeleton)]


def _part(word: str, stems: Collection[str]) -> str:
    """The word at the beginning or the end of a compound, of at least four letters, that is among `stems`."""
    if len(word) < 7 or len(word) > MAX_COMPOUND:
        return ""
    for cut_at in range(len(word) - 4, 3, -1):
        if word[:cut_at] in stems:
            return word[:cut_at]
        if (last := stem(word[cut_at:])) in stems:
            return last
    return ""


def _same_number(one: Token, other: Token) -> bool:
    if one.value == other.value:
        return (
            not (one.unit and other.unit)
            or one.unit == other.unit
            or {one.unit, other.unit} <= {"date", "day"}
        )
    for first, second in ((one, other), (other, one)):
        factor = _LARGER.get((first.unit, second.unit))
        if factor and first.value.isdecimal() and len(first.value) < 5:
            return str(int(first.value) * factor) == second.value
    return False


def numbers_agree(
    claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit], around: frozenset[str]
) -> bool:
    """Each number stands in a chosen unit, and none other stands nearer to the words around it."""
    own = {claim.tokens[place].value for place in claim.numbers}
    for place in claim.numbers:
        number = claim.tokens[place]
        holding = [
            (unit, at)
            for unit in chosen
            for at, token in enumerate(unit.tokens)
            if token.kind is Kind.NUMBER and _same_number(number, token)
        ]
        if not holding:
            if number.value in around and not number.unit:
                continue
            return False
        beside = _beside(claim.tokens, place) - around
        rivals = _with_other_number(units, number, own)
        if not any(
            _is_about(claim, unit, at, beside, rivals, own, units) for unit, at in holding[:MAX_HOLDING]
        ):
            return False
    return True


def _is_about(
    claim: Claim,
    unit: Unit,
    at: int,
    beside: set[str],
    rivals: Sequence[Unit],
    own: set[str],
    units: Sequence[Unit],
) -> bool:
    """Whether a number of a unit counts there what the claim says that it counts."""
    label = _label(unit, at)
    labels = {name for name in claim.values if name.startswith("letter ")}
    if label and labels:
        return label in labels
    if _is_of_another_row(claim, unit, unit.tokens[at].value, units):
        return False
    here = claim.said & unit.said
    for rival in rivals:
        there = claim.said & rival.said
        if here < there and len(there) >= len(here) + CLEARLY_MORE:
            return False
    nearer = unit.table < 0 and _other_is_nearer(beside, unit, at, own)  # all cells are of the first one
    return not (nearer or _belongs_elsewhere(beside, unit, rivals))


def _label(unit: Unit, at: int) -> str:
    """The letter of a number: “ten on Class A, five on Class B”, or a row below “Class A, Class B”."""
    numbers = [
        place
        for place, token in enumerate(unit.tokens)
        if token.kind is Kind.NUMBER and _same_kind(token, unit.tokens[at])
    ]
    for found in (unit.tokens, unit.header):
        letters = [token.value for token in found if token.value.startswith("letter ")]
        if len(letters) > 1 and len(letters) == len(numbers) == len(set(letters)):
            return letters[numbers.index(at)]
    return ""


def _is_of_another_row(claim: Claim, unit: Unit, value: str, units: Sequence[Unit]) -> bool:
    """Whether another row of its table holds all that this one holds of the claim, and more."""
    if unit.table < 0:
        return False
    rows = [each for each in units if (each.rank, each.table) == (unit.rank, unit.table)]
    common = frozenset.intersection(*(row.values for row in rows)) | unit.context | {value}
    here = (claim.values & unit.values) - common
    return any(here < (claim.values & row.values) - common and value not in row.values for row in rows)


def _belongs_elsewhere(beside: set[str], unit: Unit, others: Iterable[Unit]) -> bool:
    """Whether a unit with another such fact holds all the words beside it that this one holds, and more."""
    here = beside & unit.words
    return any(here < (beside & other.words) for other in others if other is not unit)


def _with_other_number(units: Sequence[Unit], number: Token, own: set[str]) -> list[Unit]:
    return [
        unit
        for unit in units
        if any(
            token.kind is Kind.NUMBER and token.value not in own and _same_kind(token, number)
            for token in unit.tokens
        )
    ]


def _same_kind(one: Token, other: Token) -> bool:
    return DIMENSIONS.get(one.unit, one.unit) == DIMENSIONS.get(other.unit, other.unit)


def _other_is_nearer(beside: set[str], unit: Unit, at: int, own: set[str]) -> bool:
    """Whether most of the words beside a number stand nearer to another number of its kind in the unit."""
    others = [
        position
        for position, token in enumerate(unit.tokens)
        if token.kind is Kind.NUMBER
        and position  # the first one of a unit may be that of a section or of an item
        and token.value not in own
        and _same_kind(token, unit.tokens[at])
    ]
    if not others:
        return False
    nearest: dict[str, int] = {}
    for position, token in enumerate(unit.tokens):
        if token.value in beside:
            votes = min(abs(position - other) for other in others) - abs(position - at)
            nearest[token.value] = max(votes, nearest.get(token.value, votes))
    return sum((vote < 0) - (vote > 0) for vote in nearest.values()) > 0


def names_agree(
    claim: Claim,
    chosen: Sequence[Unit],
    units: Sequence[Unit],
    around: frozenset[str],
    missing: Sequence[str],
) -> bool:
    """Each name stands in a chosen unit or a heading; or before it, where no other name takes its place."""
    held = frozenset().union(*(unit.values for unit in chosen))
    competing = bool(chosen[0].names - claim.values)
    for name in claim.names:
        if name in held:
            holding = [unit for unit in chosen if name in unit.values]
            place = next(at for at, token in enumerate(claim.tokens) if token.value == name)
            beside = _beside(claim.tokens, place) - claim.names
            rivals = [unit for unit in chosen if unit.names - claim.values]
            if name not in around and all(_belongs_elsewhere(beside, unit, rivals) for unit in holding):
                return False
            continue
        if name in around:
            continue
        if name not in missing and not name.startswith("month"):
            continue  # another form of a word that is there
        first = chosen[0]
        before = (
            unit for unit in units if unit.rank == first.rank and first.place - 3 <= unit.place < first.place
        )
        if competing or not any(name in unit.values for unit in before):
            return False
    return True


def _scope(found: Sequence[Token], at: int, claim: Claim) -> list[str]:
    """What a negation denies: the words after it up to the next comma, else (in German also) those before."""
    after: list[str] = []
    for token in found[at + 1 : at + 1 + NEAR]:
        if token.opens or token.kind is Kind.NEGATION:
            break
        if token.kind in (Kind.WORD, Kind.NAME, Kind.POLAR):
            after.append(token.value)
    if after and not claim.german:
        return after[:3]
    before: list[str] = []
    for place in range(at, max(0, at - 3), -1):
        if found[place].opens:
            break
        if found[place - 1].kind in (Kind.WORD, Kind.NAME, Kind.POLAR):
            before.append(found[place - 1].value)
    return [*after[:2], *before]


def negations_agree(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """What the statement denies is denied in a unit, and the other way round."""
    own = [
        _scope(claim.tokens, at, claim)
        for at, token in enumerate(claim.tokens)
        if token.kind is Kind.NEGATION
    ]
    theirs = [
        _scope(unit.tokens, at, claim)
        for unit in chosen
        for at, token in enumerate(unit.tokens)
        if token.kind is Kind.NEGATION
    ]
    held = frozenset().union(*(unit.values for unit in chosen))
    refused, refused_there = claim.values & REFUSALS, held & REFUSALS
    denied_above = any(token.kind is Kind.NEGATION for unit in chosen for token in unit.header)
    if (last := _denied_in_last_column(claim, chosen)) is not None:
        denied_above = last
        if last and not (own or refused):
            return False
    if own and any(unit.table >= 0 and unit.tokens[-1].kind is Kind.NEGATION for unit in chosen):
        return True  # a cell “No”
    for scope in own:
        same = any(_deny_the_same(scope, there, claim, held) for there in theirs)
        # What is denied in other words: neither side has the word that the other one denies.
        other = (not scope or scope[0] not in held) and any(
            not there or there[0] not in claim.values for there in theirs
        )
        if not (same or other or refused_there - refused or denied_above):
            return False
    if refused - refused_there:
        return True
    for there in theirs:
        shared = [value for value in there if value in claim.values]
        denied = bool(shared) and (shared[0] == there[0] or (len(shared) > 1 and not own))
        if denied and not any(_deny_the_same(scope, there, claim, held) for scope in own):
            return False
    return True


def _denied_in_last_column(claim: Claim, chosen: Sequence[Unit]) -> bool | None:
    """Whether the claim names what stands in a last column that its header denies; None without one."""
    found = None
    for unit in chosen:
        if unit.table >= 0 and any(token.kind is Kind.NEGATION for token in unit.header[-2:]):
            found = bool(found) or unit.tokens[-1].value in claim.values
    return found


def _deny_the_same(scope: Sequence[str], there: Sequence[str], claim: Claim, held: frozenset[str]) -> bool:
    if not scope or not there:
        return False
    if claim.german:
        return bool(set(scope) & set(there))
    return (
        scope[0] == there[0]
        or (there[0] in scope and scope[0] not in held)
        or (scope[0] in there and there[0] not in claim.values)
    )


def poles_agree(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """No word such as “before” stands where a unit has its opposite, with the same words beside it."""
    poles = [at for at, token in enumerate(claim.tokens) if token.kind is Kind.POLAR]
    for at in poles:
        pair, side = _pole(claim.tokens, at)
        beside = _beside(claim.tokens, at)
        same = opposite = False
        for unit in chosen:
            for place, other in enumerate(unit.tokens):
                if other.kind is Kind.POLAR and POLES[other.value][0] == pair:
                    if _pole(unit.tokens, place)[1] == side:
                        same = True
                    elif beside & _beside(unit.tokens, place):
                        opposite = True
        both = any(_pole(claim.tokens, place) == (pair, 1 - side) for place in poles)
        if opposite and not same and not both:
            return False
    return True


def _pole(found: Sequence[Token], at: int) -> tuple[int, int]:
    """The pair of a word and its side, the other one where it is denied (“may not”)."""
    pair, side = POLES[found[at].value]
    near = (*found[max(0, at - 1) : at], *found[at + 1 : at + 2])
    denied = pair in DENIABLE and any(token.kind is Kind.NEGATION and not token.opens for token in near)
    return pair, side ^ denied


def _beside(found: Sequence[Token], at: int) -> set[str]:
    """The words next to a token that say what it is about."""
    before = [token.value for token in found[max(0, at - NEAR) : at] if _is_topic(token)]
    after = [token.value for token in found[at + 1 : at + 1 + NEAR] if _is_topic(token)]
    return {*before[-2:], *after[:2]}


def _is_topic(token: Token) -> bool:
    return token.kind in (Kind.WORD, Kind.NAME) and not token.unit and not token.value.startswith("month")


def joins_rows(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether a statement without “and” takes its words from several rows of a table."""
    if claim.joins:
        return False
    for place, one in enumerate(chosen):
        for other in chosen[place + 1 :]:
            if one.table >= 0 and (one.rank, one.table) == (other.rank, other.table):
                here, there = (claim.words & row.words - row.context for row in (one, other))
                if here - there and there - here:
                    return True
    return False


def exceeds_bound(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether it says “more than” of a number that is the most, or “less than” of the least."""
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
    """The words that bound a number, each with it."""
    for place, token in enumerate(found):
        if token.kind is Kind.POLAR:
            number = next((each for each in found[place + 1 : place + 3] if each.kind is Kind.NUMBER), None)
            if number is not None:
                yield token.value, number.value


def is_swapped(claim: Claim, chosen: Sequence[Unit], missing: Sequence[str], share: float) -> bool:
    """Whether one noun of an otherwise literal German statement takes the place of another one."""
    if not claim.german or len(missing) != 1 or share < NEARLY_LITERAL:
        return False
    values = [token.value for token in claim.tokens]
    at = values.index(missing[0])
    if claim.tokens[at].kind is not Kind.NAME or not 0 < at < len(values) - 1:
        return False
    for unit in chosen:
        there = [token.value for token in unit.tokens]
        for place in range(1, len(there) - 1):
            if there[place - 1] == values[at - 1] and there[place + 1] == values[at + 1]:
                return there[place] not in claim.values and not missing[0].startswith(there[place])
    return False
