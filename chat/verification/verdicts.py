"""Compares each statement with the passages that it cites."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from chat.statements import Proof, Statement, Verdict

from .facts import REFUSALS, Kind, Token, is_german, tokens
from .lexicon import DENIABLE, DIMENSIONS, POLES
from .passages import Citable, Mark, Passage, Unit
from .statements import Cut, cut

MAX_CHARACTERS = 2_000  # of a statement that are compared
MAX_UNITS = 3  # sentences of a passage on which a statement may rest
LEAST_SHARE = 0.55  # of a statement's words that the sentences must hold
NEARLY_LITERAL = 0.8  # the share of words from which a single other noun is a swap and no paraphrase
LEAST_GAIN = 1.4  # by which a further sentence must hold more of a statement
LENGTH = 0.02  # what each word of a sentence costs: a short one with the same words is the better proof
NEAR = 4  # tokens: how far what belongs together may stand apart
WIDE_GAP = 30  # characters between two words that are marked as one

# Days of other units, so that two weeks are 14 days.
_IN_DAYS = {"week": 7}
_WEIGHTS = {Kind.NUMBER: 1.5, Kind.NAME: 1.5, Kind.WORD: 1.0, Kind.POLAR: 0.3, Kind.NEGATION: 0.0}


@dataclass(frozen=True)
class _Claim:
    """A statement with its tokens."""

    tokens: tuple[Token, ...]
    names: frozenset[str]  # values that must not be missing
    german: bool

    @cached_property
    def values(self) -> frozenset[str]:
        return frozenset(token.value for token in self.tokens if token.kind is not Kind.NEGATION)

    @cached_property
    def content(self) -> list[str]:
        """The words whose share counts, each once."""
        kinds = (Kind.WORD, Kind.NAME)
        return list(dict.fromkeys(token.value for token in self.tokens if token.kind in kinds))

    @cached_property
    def weights(self) -> dict[str, float]:
        return {token.value: _WEIGHTS[token.kind] for token in self.tokens}

    @cached_property
    def numbers(self) -> list[int]:
        """Their places among the tokens."""
        return [place for place, token in enumerate(self.tokens) if token.kind is Kind.NUMBER]


@dataclass(frozen=True)
class _Finding:
    """How a statement compares with some units; `doubtful` where only its words differ."""

    verdict: Verdict
    units: tuple[Unit, ...] = ()
    marks: tuple[tuple[int, Mark], ...] = ()  # by rank of the passage
    share: float = 0.0
    doubtful: bool = False


def verify(answer: str, sources: Iterable[Citable]) -> tuple[Statement, ...]:
    """The statements of an answer in order, each compared with the sources that it cites itself."""
    by_label: dict[str, list[Passage]] = {}
    for source in sources:
        by_label.setdefault(source.label, []).append(Passage(source))
    cuts = cut(answer, by_label)
    cited = {citation.label for each in cuts for citation in each.citations}
    known_names = frozenset().union(*(passage.names for label in cited for passage in by_label[label]))
    found = (_statement(answer, each, by_label, known_names) for each in cuts)
    return tuple(statement for statement in found if statement is not None)


def _statement(
    answer: str, each: Cut, by_label: dict[str, list[Passage]], known_names: frozenset[str]
) -> Statement | None:
    text = _without_citations(answer, each)
    labels = tuple(dict.fromkeys(citation.label for citation in each.citations))
    if each.past_bound:
        return _unproved(each, labels, "not_found" if labels else "uncited")
    claim = _claim(text, known_names)
    if not claim.tokens:
        return None
    if not labels:
        return _unproved(each, labels, "uncited")
    alone = {label: _best(text, claim, by_label[label]) for label in labels}
    together: _Finding | None = None
    if all(finding.verdict == "not_found" for finding in alone.values()) and len(labels) > 1:
        passages = [passage for label in labels for passage in by_label[label]]
        together = _compared(claim, [unit for passage in passages for unit in passage.units], passages)
    proofs = []
    for citation in each.citations:
        finding = alone[citation.label]
        passages = by_label[citation.label]
        if together and together.verdict == "supported":
            ranks = {passage.rank for passage in passages}
            used = tuple(unit for unit in together.units if unit.rank in ranks)
            marks = tuple(mark for mark in together.marks if mark[0] in ranks)
            finding = _Finding("supported" if used else "not_found", used, marks)
        proofs.append(_proof(citation.start, citation.end, citation.label, finding, passages[0].rank))
    verdicts = {proof.verdict for proof in proofs}
    verdict: Verdict = next((one for one in ("quoted", "supported") if one in verdicts), "not_found")
    doubtful = verdict == "not_found" and any(finding.doubtful for finding in alone.values())
    return Statement(each.start, each.end, labels, verdict, tuple(proofs), doubtful=doubtful)


def _unproved(each: Cut, labels: tuple[str, ...], verdict: Verdict) -> Statement:
    proofs = tuple(Proof(one.start, one.end, one.label, "not_found") for one in each.citations)
    return Statement(each.start, each.end, labels, verdict, proofs)


def _proof(start: int, end: int, label: str, finding: _Finding, rank: int) -> Proof:
    """The passage with most of the words; the first of the label where none has any."""
    if finding.marks:
        counts: dict[int, int] = {}
        for each, (first, last) in finding.marks:
            counts[each] = counts.get(each, 0) + last - first
        rank = max(counts, key=lambda each: counts[each])
    elif finding.units:
        rank = finding.units[0].rank
    marks = tuple(mark for each, mark in finding.marks if each == rank)
    return Proof(start, end, label, finding.verdict, rank, marks)


def _without_citations(answer: str, each: Cut) -> str:
    parts, end = [], each.start
    for citation in each.citations:
        if each.start <= citation.start < each.end:
            parts.append(answer[end : citation.start])
            end = citation.end
    parts.append(answer[end : max(end, each.end)])
    return " ".join(parts)[:MAX_CHARACTERS]


def _claim(text: str, known_names: frozenset[str]) -> _Claim:
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
    return _Claim(tuple(found), frozenset(names), german)


def _best(text: str, claim: _Claim, passages: Sequence[Passage]) -> _Finding:
    """The passages of a page share a label: the one that says it best, else all of them together."""
    for passage in passages:
        mark = passage.quoted(text)
        if mark and not _cut_off(passage, mark):
            return _Finding("quoted", (), ((passage.rank, mark),), 1.0)
    findings = [_compared(claim, passage.units, [passage]) for passage in passages]
    best = max(findings, key=lambda finding: (finding.verdict == "supported", finding.share))
    if best.verdict == "not_found" and len(passages) > 1:
        joint = _compared(claim, [unit for passage in passages for unit in passage.units], passages)
        return joint if joint.verdict == "supported" else best
    return best


def _cut_off(passage: Passage, mark: Mark) -> bool:
    """Whether a negation stands right before the quoted words, so that they say the opposite."""
    before = tokens(passage.text[max(0, mark[0] - 24) : mark[0]])
    return (
        bool(before)
        and before[-1].kind is Kind.NEGATION
        and "." not in passage.text[before[-1].end : mark[0]]
    )


def _compared(claim: _Claim, units: Sequence[Unit], passages: Sequence[Passage]) -> _Finding:
    around = frozenset().union(*(passage.around for passage in passages))
    chosen = _chosen(claim, units)
    if not chosen:
        return _Finding("not_found")
    held = frozenset().union(*(unit.values for unit in chosen))
    missing = [value for value in claim.content if value not in held and value not in around]
    related = _related(missing, held)
    missing = [value for value in missing if value not in related]
    total = len(claim.content)
    share = (total - len(missing)) / total if total else 1.0
    agrees = (
        _numbers_agree(claim, chosen, units, around)
        and _names_agree(claim, chosen, units, around, missing)
        and _negations_agree(claim, chosen)
        and _poles_agree(claim, chosen)
        and not _is_swapped(claim, chosen, missing, share)
    )
    enough = share >= LEAST_SHARE if total > 2 else len(missing) < max(1, total)
    if agrees and enough:
        return _Finding("supported", chosen, tuple(_marks(claim, chosen, related)), share)
    return _Finding("not_found", chosen, (), share, doubtful=agrees and share > 0)


def _chosen(claim: _Claim, units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The few units that together hold most of the claim, the best first."""
    wanted = claim.values
    weights = claim.weights
    chosen: list[Unit] = []
    rest = [(unit, common) for unit in units if (common := unit.values & wanted)]
    covered: frozenset[str] = frozenset()
    while rest and len(chosen) < MAX_UNITS:
        new = [sum(weights[value] for value in common - covered) for _, common in rest]
        near = [0.3 if chosen and abs(unit.place - chosen[0].place) <= 1 else 0.0 for unit, _ in rest]
        best = max(range(len(rest)), key=lambda at: new[at] + near[at] - LENGTH * len(rest[at][0].values))
        if new[best] < (LEAST_GAIN if chosen else 1.0):
            break
        unit, common = rest.pop(best)
        chosen.append(unit)
        covered |= common
    return tuple(chosen)


def _related(missing: Sequence[str], held: frozenset[str]) -> dict[str, str]:
    """Words that are parts or other forms of words that are there: Urlaubstage and Urlaub."""
    found: dict[str, str] = {}
    if not missing:
        return found
    long = [value for value in held if len(value) >= 4]
    beginnings = {value[:5]: value for value in long if len(value) >= 5}
    text = " ".join(long)
    for value in missing:
        if len(value) < 5 or any(character.isdigit() for character in value):
            continue
        if value[:5] in beginnings:
            found[value] = beginnings[value[:5]]
        elif (at := text.find(value)) >= 0:
            found[value] = text[text.rfind(" ", 0, at) + 1 :].partition(" ")[0]
    return found


def _same_number(one: Token, other: Token) -> bool:
    if one.value == other.value:
        return (
            not (one.unit and other.unit)
            or one.unit == other.unit
            or {one.unit, other.unit} <= {"date", "day"}
        )
    for first, second in ((one, other), (other, one)):
        if (
            first.unit in _IN_DAYS
            and second.unit == "day"
            and first.value.isdecimal()
            and len(first.value) < 5
        ):
            return str(int(first.value) * _IN_DAYS[first.unit]) == second.value
    return False


def _numbers_agree(
    claim: _Claim, chosen: Sequence[Unit], units: Sequence[Unit], around: frozenset[str]
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
        if all(
            _other_is_nearer(beside, unit, at, own) or _belongs_elsewhere(beside, unit, rivals)
            for unit, at in holding
        ):
            return False
    return True


def _belongs_elsewhere(beside: set[str], unit: Unit, others: Iterable[Unit]) -> bool:
    """Whether a unit with another such fact holds all the words beside it that this one holds, and more."""
    here = beside & unit.values
    return any(here < (beside & other.values) for other in others if other is not unit)


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


def _names_agree(
    claim: _Claim,
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


def _scope(found: Sequence[Token], at: int, claim: _Claim) -> list[str]:
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


def _negations_agree(claim: _Claim, chosen: Sequence[Unit]) -> bool:
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
    for scope in own:
        same = any(_deny_the_same(scope, there, claim, held) for there in theirs)
        # What is denied in other words: neither side has the word that the other one denies.
        other = (not scope or scope[0] not in held) and any(
            not there or there[0] not in claim.values for there in theirs
        )
        if not (same or other or refused_there - refused):
            return False
    if refused - refused_there:
        return True
    for there in theirs:
        shared = [value for value in there if value in claim.values]
        denied = bool(shared) and (shared[0] == there[0] or (len(shared) > 1 and not own))
        if denied and not any(_deny_the_same(scope, there, claim, held) for scope in own):
            return False
    return True


def _deny_the_same(scope: Sequence[str], there: Sequence[str], claim: _Claim, held: frozenset[str]) -> bool:
    if not scope or not there:
        return False
    if claim.german:
        return bool(set(scope) & set(there))
    return (
        scope[0] == there[0]
        or (there[0] in scope and scope[0] not in held)
        or (scope[0] in there and there[0] not in claim.values)
    )


def _poles_agree(claim: _Claim, chosen: Sequence[Unit]) -> bool:
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


def _is_swapped(claim: _Claim, chosen: Sequence[Unit], missing: Sequence[str], share: float) -> bool:
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


def _marks(claim: _Claim, chosen: Sequence[Unit], related: dict[str, str]) -> Iterable[tuple[int, Mark]]:
    """Where the claim's words stand in the units; words with only little between them as one."""
    wanted = claim.values | frozenset(related.values())
    denies = any(token.kind is Kind.NEGATION for token in claim.tokens)
    for unit in sorted(chosen, key=lambda unit: (unit.rank, unit.place)):
        start = end = -1
        apart = False
        for token in unit.tokens:
            if not (token.value in wanted or (denies and token.kind is Kind.NEGATION)):
                apart = True
                continue
            if start < 0 or apart or token.start - end > WIDE_GAP:
                if start >= 0:
                    yield unit.rank, (start, end)
                start = token.start
            end, apart = max(end, token.end), False
        if start >= 0:
            yield unit.rank, (start, end)
