"""Checks whether a source agrees with a claim in names, negations and opposites."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from chat.verification.cited_passages import Passage, Unit
from chat.verification.claims import CONTRADICTION, MIN_SHARE, MISPLACED, OTHER_SUBJECT, UNANSWERED, Claim
from chat.verification.terms.facts import REFUSALS
from chat.verification.terms.lexicon import DENIABLE, POLES
from chat.verification.terms.relations import opposites_of
from chat.verification.terms.words import MAX_STEM, Kind, Token, stem

from .occurrences import TOKEN_RADIUS, belongs_elsewhere, beside_of, columns_of

# Evidence against a claim, on the scale of claims.py: a noun, a clause or a negation that the source lacks.
NEW_NOUN = 0.6
NEW_CLAUSE = 1.5
NEW_DENIAL = 0.5
NEARLY_LITERAL = 0.8  # with at least this share of words in common, a different noun is not a paraphrase
ENTITLED = frozenset(map(stem, ("anspruch", "recht", "entitled", "entitlement", "right")))  # “no right to …”
PERMITTED = frozenset(("allowed", "permitted", "erlaubt", "gestattet", "zulässig", "statthaft"))
EQUAL = frozenset(map(stem, ("same", "equal", "equally", "gleich", "gleiche", "gleichen")))
ORDER = POLES["before"][0]
UNEQUAL = frozenset(("fewer", "less", "more", "weniger", "mehr"))


def related_words(claim: Claim, missing: Sequence[str], chosen: Sequence[Unit]) -> dict[str, str]:
    """Missing words that are forms, synonyms, parts or compounds of a word in the units, with that word.

    An example is “Urlaubstage” with “Urlaub”.
    """
    found: dict[str, str] = {}
    for value in missing:
        for unit in chosen:
            if related := unit.relations.related(
                value, claim.wholes.get(value, ""), is_name=value in claim.names
            ):
                found[value] = related
                break
    return found


def name_evidence(
    claim: Claim,
    chosen: Sequence[Unit],
    units: Sequence[Unit],
    around: frozenset[str],
    missing: Sequence[str],
    share: float,
) -> float:
    """Evidence that the source lacks a name of the claim, or has it only far away.

    A name is near if it is in the selected units, in a heading, or shortly before these units while they have
    no other name in its place. `around` has the words of headings; `share` is the share of the claim's words
    that the source has.
    """
    found = 0.0
    held = frozenset().union(*(unit.values for unit in chosen))
    competing = bool(chosen[0].names - claim.values)
    for name in claim.names:
        if name in held:
            is_beside = name in chosen[0].values or name in around
            if competing and not is_beside and not claim.joins:
                found = MISPLACED
            holding = [unit for unit in chosen if name in unit.values]
            place = next(at for at, token in enumerate(claim.tokens) if token.value == name)
            beside = beside_of(claim.tokens, place) - claim.names
            rivals = [unit for unit in chosen if unit.names - claim.values]
            if name not in around and all(belongs_elsewhere(beside, unit, rivals) for unit in holding):
                found = MISPLACED
            continue
        if name in around or any(value.startswith(f"{name}-") for value in held):
            continue  # “POSIX-like”
        if name not in missing and not name.startswith("month"):
            continue  # another form of a word in the units
        if any(name in claim.abbreviated.get(short, ()) for unit in units for short in unit.names):
            continue  # “the Office of Acquisition” is the OA
        if name not in claim.wholes and any(name in unit.abbreviated for unit in chosen):
            continue
        first = chosen[0]
        before = (
            unit for unit in units if unit.rank == first.rank and first.place - 3 <= unit.place < first.place
        )
        if competing or not any(name in unit.values for unit in before):
            if any(name in unit.values for unit in units):
                found = MISPLACED
            elif share < OTHER_SUBJECT or (competing and share >= MIN_SHARE):
                return CONTRADICTION
            else:
                found = max(found, UNANSWERED)
    return found


def _scope(found: Sequence[Token], at: int, claim: Claim) -> list[str]:
    """The words that a negation denies: those after it up to the next comma, or those before it.

    A German negation may deny words on both sides, because it often comes last.
    """
    after: list[str] = []
    for token in found[at + 1 : at + 1 + TOKEN_RADIUS]:
        if token.opens or token.kind is Kind.NEGATION:
            break
        if token.kind in (Kind.WORD, Kind.NAME, Kind.POLAR):
            after.append(token.value)
    if found[at].unit == "without" or (after and not claim.german):
        return after[:3]
    before: list[str] = []
    for place in range(at, max(0, at - 3), -1):
        if found[place].opens:
            break
        if found[place - 1].kind in (Kind.WORD, Kind.NAME, Kind.POLAR):
            before.append(found[place - 1].value)
    return [*after[:2], *before]


def _before(found: Sequence[Token], at: int) -> list[str]:
    """The words directly before a negation: the subject about which something is denied."""
    return [token.value for token in found[max(0, at - 2) : at] if token.kind in (Kind.WORD, Kind.NAME)]


@dataclass(frozen=True)
class _Denied:
    """A negation in a source: what it denies, in words of the claim, and what follows it."""

    scope: list[str]
    after: frozenset[str]  # all words after it in its sentence
    negation: Token
    is_predicate: bool  # whether it denies the word that follows it


def denial(claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit], related: Mapping[str, str]) -> float:
    """Evidence that only the claim or only the source denies something.

    A paraphrase often denies the opposite (“must not be moved” for “remains in its place”). It is therefore
    only weak evidence if the claim denies something that the units do not mention. `related` maps words of
    the claim to related words of the units.
    """
    own = [at for at, token in enumerate(claim.tokens) if token.kind is Kind.NEGATION]
    if own and any(_quotes_cells(claim, unit) for unit in chosen):
        return 0.0
    places = [
        (unit, at) for unit in chosen for at, token in enumerate(unit.tokens) if token.kind is Kind.NEGATION
    ]
    cells = [(unit, at) for unit, at in places if _is_cell(unit, at)]
    if (decided := _table_evidence(claim, chosen, cells, is_denied=bool(own))) is not None:
        return decided
    theirs = [_denied(claim, unit, at) for unit, at in places if (unit, at) not in cells]
    before = {value for unit, at in places for value in _before(unit.tokens, at)}
    held = frozenset().union(*(unit.values for unit in chosen))
    refused, refused_there = claim.values & REFUSALS, held & REFUSALS
    denied_above = _denied_in_last_column(claim, chosen)
    if denied_above is None:
        denied_above = any(
            unit.denied or any(token.kind is Kind.NEGATION for token in unit.header) for unit in chosen
        )
    excuses = refused_there - refused
    if any(claim.tokens[at].unit != "without" for at in own):  # “without a break” is “unbroken”
        excuses -= set(related.values())  # “are not turned down” for “are refused”
    is_excused = bool(excuses) or denied_above or _answers_no(units)
    evidence = 0.0 if is_excused else _own_evidence(claim, own, theirs, before, held, held | related.keys())
    if evidence >= CONTRADICTION or refused - refused_there:
        return evidence
    if not (own or refused) and any(each.scope[:1] and each.scope[0] in PERMITTED for each in theirs):
        return CONTRADICTION  # “you can” for “is not allowed”
    return CONTRADICTION if _affirms(claim, own, theirs, held) else evidence


def _denied(claim: Claim, unit: Unit, at: int) -> _Denied:
    following = unit.tokens[at + 1 : at + 2]
    return _Denied(
        [claim.word_for(value, unit) for value in _scope(unit.tokens, at, claim) if value not in ENTITLED],
        frozenset(token.value for token in unit.tokens[at + 1 :]),
        unit.tokens[at],
        bool(following) and following[0].kind is Kind.WORD and not following[0].opens,
    )


def _answers_no(units: Sequence[Unit]) -> bool:
    """Whether a passage begins with “no”, as the answer to a question in its heading."""
    for unit in units[:2]:
        held = unit.tokens
        if any(token.kind is Kind.NEGATION for token in held) and (
            len(held) <= 2 or (held[0].kind is Kind.NEGATION and held[1].opens)
        ):
            return True
    return False


def _own_evidence(
    claim: Claim,
    own: Sequence[int],
    theirs: Sequence[_Denied],
    before: Collection[str],
    held: frozenset[str],
    known: Collection[str],
) -> float:
    """Evidence that the claim denies something that the source does not deny.

    `before` has the words before the source's negations.
    """
    evidence = 0.0
    for scope in (_scope(claim.tokens, at, claim) for at in own):
        same = any(_deny_the_same(scope, each.scope, each.after, claim, held) for each in theirs)
        # If neither side has the word that the other side denies, both may deny the same thing in different
        # words.
        other = (not scope or scope[0] not in held) and any(
            not each.scope or each.scope[0] not in claim.values for each in theirs
        )
        subject = bool(scope) and scope[0] in before  # “no compensation” and “compensation is not due”
        # “Cannot be refunded” is “nonrefundable”.
        prefixed = any(
            held & opposites_of(claim.wholes[value]) for value in scope[:1] if value in claim.wholes
        )
        if not (same or other or subject or prefixed):
            if scope and scope[0] in known:
                return CONTRADICTION
            evidence = NEW_DENIAL
    return evidence


def _affirms(claim: Claim, own: Sequence[int], theirs: Sequence[_Denied], held: frozenset[str]) -> bool:
    """Whether the claim affirms what the source denies."""
    before_own = {value for at in own for value in _before(claim.tokens, at)}
    scopes = [_scope(claim.tokens, at, claim) for at in own]
    for each in theirs:
        shared = [value for value in each.scope if value in claim.values]
        is_said = not own and each.negation.unit != "if"  # the negation is a statement, not a condition
        if claim.german and each.is_predicate and each.scope[0] not in claim.values:
            continue  # “ist nicht einheitlich” only denies a word that the claim lacks
        denied = bool(shared) and (shared[0] == each.scope[0] or (len(shared) > 1 and is_said))
        if (
            denied
            and each.scope[0] not in before_own
            and not any(_deny_the_same(scope, each.scope, each.after, claim, held) for scope in scopes)
        ):
            return True
    return False


def _table_evidence(
    claim: Claim, chosen: Sequence[Unit], cells: Sequence[tuple[Unit, int]], *, is_denied: bool
) -> float | None:
    """Evidence from cells such as “No”, and from headers and lead-ins with a negation; None if not decisive.

    `is_denied` says whether the claim itself denies something.
    """
    if is_denied:
        return 0.0 if cells else None
    if any(_is_of_claimed_column(claim, unit, at) for unit, at in cells):
        return CONTRADICTION
    denied = any(unit.denied for unit in chosen) or _denied_in_last_column(claim, chosen)
    return CONTRADICTION if denied and not claim.values & REFUSALS else None


def _is_cell(unit: Unit, at: int) -> bool:
    """Whether a negation is a whole cell: “Gas cylinders: 20, 6, no”."""
    token = unit.tokens[at]
    if token.kind is not Kind.NEGATION or unit.table < 0:
        return False
    following = unit.tokens[at + 1] if at + 1 < len(unit.tokens) else None
    return following is None or following.kind in (Kind.NEGATION, Kind.NUMBER)


def _quotes_cells(claim: Claim, unit: Unit) -> bool:
    """Whether the claim has only cells of a row, in their order: “R3 | no” of “Room: R3; Lift: no”.

    In such a claim, “no” denies nothing that follows it.
    """
    values = (token for cell in unit.cells for token in unit.tokens[cell.start : cell.end])
    return bool(unit.cells) and all(
        any((own.kind, own.value) == (token.kind, token.value) for token in values) for own in claim.tokens
    )


def _is_of_claimed_column(claim: Claim, unit: Unit, at: int) -> bool:
    own = [value for value in claim.values if value.startswith("letter ")]
    letters = columns_of(unit.columns)
    cells = [
        place for place, token in enumerate(unit.tokens) if token.kind is Kind.NUMBER or _is_cell(unit, place)
    ]
    return bool(own) and len(letters) == len(cells) > 1 and not letters[cells.index(at)].isdisjoint(own)


def _denied_in_last_column(claim: Claim, chosen: Sequence[Unit]) -> bool | None:
    """Whether the claim names a cell of the last column.

    None unless the header of that column has a negation.
    """
    found = None
    for unit in chosen:
        if unit.table >= 0 and any(token.kind is Kind.NEGATION for token in unit.header[-2:]):
            found = bool(found) or unit.tokens[-1].value in claim.values
    return found


def _deny_the_same(
    scope: Sequence[str], there: Sequence[str], after: Collection[str], claim: Claim, held: frozenset[str]
) -> bool:
    """Whether a negation of the claim and one of the source deny the same thing.

    `there` is the scope of the negation in the source, and `after` has all words after it.
    """
    if not scope or not there:
        return False
    if claim.german:
        return bool(set(scope) & set(there))
    return (
        scope[0] == there[0]
        or (there[0] in scope and scope[0] not in held)
        or (scope[0] in there and there[0] not in claim.values)
        or (there[0] in scope and scope[0] in after)  # “does not waive rights”, “no rights are waived”
    )


def poles_agree(claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit]) -> bool:
    """Whether no unit has the opposite of a word of the claim, such as “before”.

    Opposites only count next to the same words. If no selected unit has either word of a pair in DENIABLE
    (“paid” and “unpaid”), all `units` are searched.
    """
    poles = [at for at, token in enumerate(claim.tokens) if token.kind is Kind.POLAR]
    held = frozenset().union(*(unit.values for unit in chosen))
    if not claim.values.isdisjoint(UNEQUAL - held) and not (held - claim.values).isdisjoint(EQUAL):
        return False  # “fewer rights” for “the same rights”
    for at in poles:
        pair, side = _pole(claim.tokens, at)
        beside = beside_of(claim.tokens, at)
        is_order = pair == ORDER
        same = opposite = False
        is_there = any(
            other.kind is Kind.POLAR and POLES[other.value][0] == pair
            for unit in chosen
            for other in unit.tokens
        )
        for unit in units if pair in DENIABLE and not is_there else chosen:
            for place, other in enumerate(unit.tokens):
                if other.kind is Kind.POLAR and POLES[other.value][0] == pair:
                    if is_order and (turned := _is_turned(claim.tokens, at, unit.tokens, place)) is not None:
                        agrees = turned != (_pole(unit.tokens, place)[1] == side)
                        same, opposite = same or agrees, opposite or not agrees
                    elif _pole(unit.tokens, place)[1] == side:
                        same = True
                    elif beside & beside_of(unit.tokens, place):
                        opposite = True
        both = any(other == pair and its != side for other, its in map(partial(_pole, claim.tokens), poles))
        if opposite and not same and not both:
            return False
    return True


def _is_turned(own: Sequence[Token], at: int, found: Sequence[Token], place: int) -> bool | None:
    """Whether the words on both sides of a word such as “before” have been swapped; None if unclear."""

    def sides(tokens: Sequence[Token], middle: int) -> tuple[set[str], set[str]]:
        parts = (
            tokens[max(0, middle - TOKEN_RADIUS) : middle],
            tokens[middle + 1 : middle + 1 + TOKEN_RADIUS],
        )
        first, last = ({each.value for each in part if each.whole} for part in parts)
        return first - last, last - first

    (left, right), (other_left, other_right) = sides(own, at), sides(found, place)
    if left & other_right and right & other_left:
        return True
    return False if left & other_left or right & other_right else None


def _pole(found: Sequence[Token], at: int) -> tuple[int, int]:
    """The pair of a word in POLES, and its side.

    A denied word of a DENIABLE pair is on the other side (“may not”).
    """
    pair, side = POLES[found[at].value]
    # “Not allowed”, “no visitors allowed”
    near = (*found[max(0, at - 2) : at], *found[at + 1 : at + 2])
    denied = pair in DENIABLE and any(token.kind is Kind.NEGATION and not token.opens for token in near)
    return pair, side ^ denied


def says_opposite(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether the claim has the opposite of a word of a unit: “automatically” for “manually”.

    Two opposites agree if exactly one of them is denied.
    """
    held = frozenset().union(*(unit.values for unit in chosen))
    for at, token in enumerate(claim.tokens):
        if not token.whole or token.unit or token.value in held:
            continue
        opposites = opposites_of(token.whole) - claim.values
        if opposites.isdisjoint(held):
            continue
        beside = beside_of(claim.tokens, at)
        for unit in chosen:
            for place, other in enumerate(unit.tokens):
                if (
                    other.value in opposites
                    and _is_denied(unit.tokens, place) == _is_denied(claim.tokens, at)
                    and beside & unit.values
                ):
                    return True
    return False


def _is_denied(found: Sequence[Token], at: int) -> bool:
    near = found[max(0, at - 2) : at + 2]
    return any(token.kind is Kind.NEGATION for token in near)


def joins_rows(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether the claim has words from several rows of a table; False for claims that join statements."""
    if claim.joins:
        return False
    for place, one in enumerate(chosen):
        for other in chosen[place + 1 :]:
            if one.table >= 0 and (one.rank, one.table) == (other.rank, other.table):
                here, there = (claim.words & row.words - row.context for row in (one, other))
                if here - there and there - here:
                    return True
    return False


def is_swapped(claim: Claim, chosen: Sequence[Unit], missing: Sequence[str], share: float) -> bool:
    """Whether a German claim repeats the source almost literally, but with one noun replaced."""
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


def additions(claim: Claim, near: Sequence[Unit], passages: Sequence[Passage]) -> float:
    """Evidence that the claim mentions something that the source does not.

    In English, where nouns are guessed, a single new noun may be a paraphrase, so it counts less than a new
    name, two adjacent new words, two new nouns or a whole new clause. In German, where capital letters mark
    the nouns, it counts as much as two.
    """

    def is_new(value: str) -> bool:
        whole = claim.wholes.get(value, "")
        if claim.german and len(whole) > MAX_STEM:
            relations = [*(unit.relations for unit in near), *(passage.relations for passage in passages)]
            return not any(each.mentions(whole) for each in relations)
        if any(value in unit.values or value in unit.context for unit in near):
            return False
        if any(value in passage.around for passage in passages):
            return False
        is_name = value in claim.names
        return not any(unit.relations.related(value, whole, is_name=is_name) for unit in near)

    new = [nouns for nouns in claim.nouns if all(map(is_new, nouns))]
    if not new:
        found = 0.0
    elif claim.german or len(new) > 1 or any(value in claim.names for value in new[0]):
        found = CONTRADICTION
    else:
        place = next(at for at, token in enumerate(claim.tokens) if token.value == new[0][0])
        before = claim.tokens[place - 1] if place else None
        if before and before.kind in (Kind.WORD, Kind.NAME) and not before.unit and is_new(before.value):
            found = CONTRADICTION  # “registered courier”
        else:
            found = NEW_NOUN
    return NEW_CLAUSE if any(all(map(is_new, clause)) for clause in claim.clauses) else found


def has_other_agent(claim: Claim, chosen: Sequence[Unit], known: Collection[str]) -> bool:
    """Whether the claim names an agent whom the source does not name.

    An agent is, for example, “the port manager” in “planned by the port manager”. It is searched for in the
    units that have the verb, or in all selected units if none has it.
    """
    for verb, agent in claim.agents:
        acting = [unit for unit in chosen if verb in unit.values] or list(chosen)
        if not any(
            all(value in unit.values or value in unit.context or value in known for value in agent)
            for unit in acting
        ):
            return True
    return False


def takes_other_name(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether a unit has the claim's name in one part, but the claim's other words with another name."""
    for unit in chosen:
        if unit.table >= 0 or not unit.names - claim.values:
            continue
        parts: list[set[str]] = [set()]  # the words between its commas
        for token in unit.tokens:
            if token.opens:
                parts.append(set())
            parts[-1].add(token.value)
        said = claim.words - claim.names
        for name in claim.names & unit.names:
            here = [part for part in parts if name in part]
            others = [part for part in parts if name not in part and part & unit.names - claim.values]
            says_else = any(part - unit.names - claim.values for part in here)
            if (
                says_else
                and not any(part & said for part in here)
                and any(len(part & said) > 1 for part in others)
            ):
                return True
    return False


def is_of_another_row(claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit]) -> bool:
    """Whether the claim names the first cell of another row instead of that of the best unit."""
    first = chosen[0]
    if not first.cells or claim.common(first) & first.cells[0].words:
        return False
    rows = [unit for unit in units if (unit.rank, unit.table) == (first.rank, first.table) and unit.cells]
    return any(claim.words & row.cells[0].words - first.values for row in rows if row not in chosen)
