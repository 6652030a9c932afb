"""Signs that a statement confuses two things of its source, or claims more than the source does.

“Primary caregivers get six weeks” may be wrong even if the source has all of these words and numbers: another
clause, sentence or list item may give the six weeks to somebody else.
"""

import re
from collections.abc import Collection, Sequence

from chat.verification.cited_passages import Unit
from chat.verification.claims import Claim
from chat.verification.terms.lexicon import LIGHT_WORDS
from chat.verification.terms.quantities import is_of_a_name, same_kind, same_number
from chat.verification.terms.relations import opposites_of
from chat.verification.terms.words import Kind, Token

_SUBJECT = ("", "der", "die", "das")  # articles of a German subject; “” if it has none
_OBJECT = ("dem", "den")
FACTS = (Kind.NUMBER, Kind.NAME)
UNIT_RADIUS = 6  # units; sentences that are further apart are not compared
PARALLEL = 0.5  # two parallel sentences have at least this share of the shorter one's words in common
MIN_COMMON = 2  # and at least this many words
MAX_MISSING = 0.25  # share of a statement's words that the best sentence may lack; it may always lack one
MAX_CLAUSES = 30  # clauses of a sentence that are compared
MAX_FACTS = 10  # facts of a statement that are compared
MAX_LABEL = 5  # words before the colon or dash of a list item

_LABEL_BREAK = re.compile(r":\s|\s[-–—]\s")
_PASSIVE = re.compile(r"\bby\b|\b(?:wird|werden|wurde|wurden|worden)\b", re.IGNORECASE)
_ONLY = re.compile(
    r"\b(?:only|solely|exclusively|alone|nobody but|nur|ausschließlich|allein|lediglich)\b", re.IGNORECASE
)


def mixes(claim: Claim, chosen: Sequence[Unit], units: Sequence[Unit], known: Collection[str]) -> bool:
    """Whether the claim joins a fact with words about another fact.

    `known` has the words of headings.
    """
    return (
        any(_is_crossed(claim, unit) or _takes_other_clause(claim, unit) for unit in chosen if not unit.cells)
        or _takes_parallel(claim, chosen[0], units, known)
        or any(_takes_other_item(claim, unit, units) for unit in chosen)
    )


def _is_crossed(claim: Claim, unit: Unit) -> bool:
    """Whether two clauses have exchanged their facts.

    An example is “A pays 25 % and B 75 %” for “A pays 75 % and B 25 %”.
    """
    own, there = claim.parts[:MAX_CLAUSES], unit.parts[:MAX_CLAUSES]
    if (
        len(own) < 2
        or len(there) < 2
        or sum(any(token.kind in FACTS for token in clause) for clause in own) < 2
    ):
        return False
    clauses_of: dict[str, int] = {}  # the clause of each word of the unit; -1 if several have it
    for place, clause in enumerate(there):
        for value in {token.value for token in clause if not token.unit or token.kind is Kind.NUMBER}:
            said = claim.word_for(value, unit)
            clauses_of[said] = -1 if said in clauses_of else place
    places = {value: place for value, place in clauses_of.items() if place >= 0 and value in claim.values}
    found = []
    for clause in own:
        held = [(token.kind, places[token.value]) for token in clause if token.value in places]
        facts = {place for kind, place in held if kind in FACTS}
        found.append((facts, {place for _, place in held}))
    return any(
        a != b and b in words and a in other_words
        for at, (facts, words) in enumerate(found)
        for other_facts, other_words in found[at + 1 :]
        for a in facts
        for b in other_facts
    )


def _takes_other_clause(claim: Claim, unit: Unit) -> bool:
    """Whether the claim combines a number or month of one clause with the subject of another."""
    facts = [token for token in claim.tokens if _is_fact(token) and token.value in unit.values]
    if not facts or len(there := _with_facts(unit.parts[:MAX_CLAUSES])) < 2:
        return False
    named: set[str] | None = None
    for fact in facts[:MAX_FACTS]:
        holding = [clause for clause in there if any(token.value == fact.value for token in clause)]
        if len(holding) != 1:
            continue
        here = holding[0]
        for other in there:
            rivals = [
                token
                for at, token in enumerate(other)
                if _is_fact(token) and same_kind(token, fact) and not (at and is_of_a_name(other, at))
            ]
            if other is here or not rivals or any(_is_said(token, claim) for token in rivals):
                continue
            mine, theirs = _content(here), _content(other)
            if named is None:
                own = claim.values
                named = {value for value in unit.values if value in own or claim.word_for(value, unit) in own}
            taken, left = (theirs - mine) & named, mine - theirs - named
            kept = (mine - theirs) & named
            if here is there[0] and kept and left:
                # The first words of a sentence apply to all clauses: “The fee is £2 for adults and £1 …”.
                values = [token.value for token in here]
                if max(map(values.index, kept)) < min(map(values.index, left)):
                    kept = set()
            opposites = (opposites_of(claim.wholes[value]) for value in taken if value in claim.wholes)
            if taken and left and (not kept or any(not each.isdisjoint(left) for each in opposites)):
                return True
    return False


def _takes_parallel(claim: Claim, first: Unit, units: Sequence[Unit], known: Collection[str]) -> bool:
    """Whether the claim has a word of a parallel sentence instead of a word of `first`."""
    if claim.joins or first.table >= 0:
        return False
    missing = [
        value
        for value in claim.content
        if value not in first.values
        and value not in known
        and not first.relations.related(value, claim.wholes.get(value, ""), is_name=value in claim.names)
    ]
    if not missing or len(missing) > max(1, MAX_MISSING * len(claim.content)):
        return False
    for other in units:
        if other is first or other.rank != first.rank or abs(other.place - first.place) > UNIT_RADIUS:
            continue
        common = first.content & other.content
        least = max(MIN_COMMON, PARALLEL * min(len(first.content), len(other.content)))
        if len(common) < least or other.is_heading:
            continue
        if any(value in other.values for value in missing) and first.content - other.content - claim.values:
            return True
    return False


def _takes_other_item(claim: Claim, first: Unit, units: Sequence[Unit]) -> bool:
    """Whether the claim names another list item's label (“Current - …”), but not `first`'s own."""
    label = _label(first)
    if not label or label & claim.values:
        return False
    return any(
        other is not first
        and other.rank == first.rank
        and abs(other.place - first.place) <= UNIT_RADIUS
        and (beside := _label(other))
        and beside <= claim.values
        for other in units
    )


def _label(unit: Unit) -> frozenset[str]:
    if unit.cells:
        return frozenset()
    for place, (token, following) in enumerate(
        zip(unit.tokens, unit.tokens[1 : MAX_LABEL + 1], strict=False)
    ):
        if _LABEL_BREAK.search(unit.text, token.end, following.start):
            return frozenset(each.value for each in unit.tokens[: place + 1])
    return frozenset()


def is_turned_round(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether two things are swapped: “A has replaced B” for “B has replaced A”."""
    if len(claim.parts) > 1:
        return False
    words = [token for token in claim.tokens if token.kind in (Kind.WORD, Kind.NAME) and not token.unit]
    ends = {token.value for token in (*words[:1], *words[-1:])}
    own = [token for token in words if token.value in ends or (token.kind is Kind.NAME and not token.whole)]
    if not 2 <= len(own) <= MAX_FACTS:
        return False
    order = {token.value: at for at, token in enumerate(claim.tokens)}
    for unit in chosen:
        if unit.table >= 0 or not unit.tokens:
            continue
        there: dict[str, int] = {}
        for at, token in enumerate(unit.tokens):
            there[token.value] = -1 if token.value in there else at
        passive = bool(_PASSIVE.search(unit.text, unit.tokens[0].start, unit.tokens[-1].end))
        if passive != bool(_PASSIVE.search(claim.text)):
            continue
        for one in own:
            for other in own:
                at, place = there.get(one.value, -1), there.get(other.value, -1)
                if not (order[one.value] < order[other.value] and 0 <= place < at):
                    continue
                said = {
                    each.value
                    for each in claim.tokens[order[one.value] + 1 : order[other.value]]
                    if each.whole
                }
                if any(each.value in said for each in unit.tokens[place + 1 : at]):
                    return True
    return False


def exchanges_cases(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether two German nouns have swapped cases: “der Arbeitgeber … dem Arbeitnehmer”."""
    if not claim.german:
        return False
    nouns = [(token.value, claim.articles[token.value]) for token in claim.tokens if token.kind is Kind.NAME]
    return any(
        any(article == "der" and unit.articles.get(noun) in _OBJECT for noun, article in nouns)
        and any(article in _OBJECT and unit.articles.get(noun) in _SUBJECT for noun, article in nouns)
        for unit in chosen
    )


def leaves_out_only(claim: Claim, chosen: Sequence[Unit]) -> bool:
    """Whether the claim leaves out an “only” that the source has."""
    return not _ONLY.search(claim.text) and any(
        _ONLY.search(unit.text, unit.tokens[0].start, unit.tokens[-1].end) for unit in chosen if unit.tokens
    )


def _is_fact(token: Token) -> bool:
    return token.kind is Kind.NUMBER or (token.kind is Kind.NAME and token.value.startswith("month"))


def _is_said(fact: Token, claim: Claim) -> bool:
    if fact.kind is Kind.NUMBER:
        return any(same_number(claim.tokens[place], fact) for place in claim.numbers)
    return fact.value in claim.values


def _content(found: Sequence[Token]) -> set[str]:
    return {
        token.value
        for token in found
        if token.kind in (Kind.WORD, Kind.NAME, Kind.POLAR)
        and not token.unit
        and not token.value.startswith("month")
        and token.whole not in LIGHT_WORDS
    }


def _with_facts(clauses: Sequence[list[Token]]) -> list[list[Token]]:
    """Join clauses without a number or month to the next one; the last to the previous one.

    An example is the first part of “in bakeries and confectioneries until 5”.
    """
    found: list[list[Token]] = []
    open_ = False
    for clause in clauses:
        if open_:
            found[-1] += clause
        else:
            found.append(list(clause))
        open_ = not any(_is_fact(token) for token in found[-1])
    if open_ and len(found) > 1:
        last = found.pop()
        found[-1] += last
    return found
