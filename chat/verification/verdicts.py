"""Compares each statement with the passages that it cites."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chat.statements import Proof, Statement, Verdict

from .agreement import (
    CONTRADICTION,
    additions,
    denial,
    has_other_agent,
    is_of_another_row,
    is_swapped,
    joins_apart,
    joins_rows,
    names_agree,
    poles_agree,
    related_words,
    takes_other_name,
)
from .claims import Claim, claim_of
from .facts import Kind, tokens
from .lexicon import STOP_WORDS
from .numbers import exceeds_bound, numbers_agree
from .passages import Citable, Mark, Passage, Unit
from .statements import Citation, Cut, cut

MAX_CHARACTERS = 2_000  # of a statement that are compared
MAX_UNITS = 3  # sentences of a passage that may support a statement together
LEAST_SHARE = 0.55  # of a statement's words that the sentences must have
LITTLE_SHARE = 0.35
# Evidence against a statement beside what agreement.py finds.
FEW_WORDS = 0.4  # less than LEAST_SHARE
OTHER_WORDS = 1.0  # less than LITTLE_SHARE
JOINED_APART = 0.5
LEAST_GAIN = 1.4  # by which another sentence must match more of a statement
MIN_GAIN_BESIDE = 1.0  # the same for an adjacent one, if the sentence alone does not support it
LENGTH = 0.02  # malus for each word of a sentence: a short one with the same words is better evidence
TOPIC = 0.5  # weight of a word elsewhere in the passage
HEADING = 0.5  # malus for a heading
NEAR = 4  # units: the greatest distance of a mention from the evidence
WIDE_GAP = 30  # characters between two words that are marked as one range


@dataclass(frozen=True)
class _Finding:
    """The comparison of a statement with some units; `doubtful` if no fact disagrees, only the words."""

    verdict: Verdict
    units: tuple[Unit, ...] = ()
    marks: tuple[tuple[int, Mark], ...] = ()  # by rank of the passage
    share: float = 0.0
    doubtful: bool = False

    def proof(self, citation: Citation, rank: int) -> Proof:
        """Of the passage with most of the words; of `rank`, the first with that label, if none has any."""
        if self.marks:
            counts: dict[int, int] = {}
            for each, (first, last) in self.marks:
                counts[each] = counts.get(each, 0) + last - first
            rank = max(counts, key=lambda each: counts[each])
        elif self.units:
            rank = self.units[0].rank
        disagreeing = None
        if self.verdict == "not_found" and not self.doubtful and self.share >= LEAST_SHARE:
            words = self.units[0].tokens
            disagreeing = (words[0].start, words[-1].end)
        return Proof(
            citation.start,
            citation.end,
            citation.label,
            self.verdict,
            rank,
            tuple(mark for each, mark in self.marks if each == rank),
            doubtful=self.doubtful,
            disagreeing=disagreeing,
        )


def verify(answer: str, sources: Iterable[Citable]) -> tuple[Statement, ...]:
    """The statements of an answer in order, each compared with the sources that it cites."""
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
    parts, end = [], each.start
    for citation in each.citations:
        if each.start <= citation.start < each.end:
            parts.append(answer[end : citation.start])
            end = citation.end
    parts.append(answer[end : max(end, each.end)])
    text = " ".join(parts)[:MAX_CHARACTERS]
    labels = tuple(dict.fromkeys(citation.label for citation in each.citations))
    if each.past_bound:
        return _unproved(each, labels, "not_found" if labels else "uncited")
    quoted = {label: _quoted(text, by_label[label]) for label in labels}
    if quoted and all(quoted.values()) and not STOP_WORDS.issuperset(text.casefold().split()):
        alone = {label: finding for label, finding in quoted.items() if finding}
        return _proved(each, labels, by_label, alone, None)
    claim = claim_of(text, known_names)
    if not claim.tokens:
        return None
    if not labels:
        return _unproved(each, labels, "uncited")
    alone = {label: quoted[label] or _best(claim, by_label[label]) for label in labels}
    together: _Finding | None = None
    if all(finding.verdict == "not_found" for finding in alone.values()) and len(labels) > 1:
        passages = [passage for label in labels for passage in by_label[label]]
        together = _compared(claim, [unit for passage in passages for unit in passage.units], passages)
    return _proved(each, labels, by_label, alone, together)


def _proved(
    each: Cut,
    labels: tuple[str, ...],
    by_label: Mapping[str, list[Passage]],
    alone: Mapping[str, _Finding],
    together: _Finding | None,
) -> Statement:
    """The statement with a proof for each citation, from its own sources (`alone`) or from all
    (`together`)."""
    proofs = []
    for citation in each.citations:
        finding = alone[citation.label]
        passages = by_label[citation.label]
        if together and together.verdict == "supported":
            ranks = {passage.rank for passage in passages}
            used = tuple(unit for unit in together.units if unit.rank in ranks)
            marks = tuple(mark for mark in together.marks if mark[0] in ranks)
            finding = _Finding("supported" if used else "not_found", used, marks)
        proofs.append(finding.proof(citation, passages[0].rank))
    verdicts = {proof.verdict for proof in proofs}
    verdict: Verdict = next((one for one in ("quoted", "supported") if one in verdicts), "not_found")
    return Statement(each.start, each.end, labels, verdict, tuple(proofs))


def _unproved(each: Cut, labels: tuple[str, ...], verdict: Verdict) -> Statement:
    proofs = tuple(Proof(one.start, one.end, one.label, "not_found") for one in each.citations)
    return Statement(each.start, each.end, labels, verdict, proofs)


def _quoted(text: str, passages: Sequence[Passage]) -> _Finding | None:
    for passage in passages:
        mark = passage.quoted(text)
        if mark is None:
            continue
        # A negation directly before the quoted words reverses their meaning.
        before = tokens(passage.text[max(0, mark[0] - 24) : mark[0]])
        is_denied = before and before[-1].kind is Kind.NEGATION
        if not is_denied or "." in passage.text[before[-1].end : mark[0]]:
            return _Finding("quoted", (), ((passage.rank, mark),), 1.0)
    return None


def _best(claim: Claim, passages: Sequence[Passage]) -> _Finding:
    """The best passage with the label; if none supports the statement, all of them together."""
    findings = [_compared(claim, passage.units, [passage]) for passage in passages]
    best = max(findings, key=lambda finding: (finding.verdict == "supported", finding.share))
    if best.verdict == "not_found" and len(passages) > 1:
        joint = _compared(claim, [unit for passage in passages for unit in passage.units], passages)
        return joint if joint.verdict == "supported" else best
    return best


def _compared(claim: Claim, units: Sequence[Unit], passages: Sequence[Passage]) -> _Finding:
    """The sentences with most of its words; if they differ, also the adjacent ones."""
    around = frozenset().union(*(passage.around for passage in passages))
    chosen = _chosen(claim, units, LEAST_GAIN)
    if not chosen:
        has_facts = claim.numbers or claim.names or any(each.kind is Kind.NEGATION for each in claim.tokens)
        return _Finding("not_found", doubtful=not has_facts)
    finding = _judged(claim, chosen, units, around, passages)
    if finding.verdict == "not_found":
        more = _chosen(claim, units, MIN_GAIN_BESIDE)
        if (
            len(more) > len(chosen)
            and (second := _judged(claim, more, units, around, passages)).verdict == "supported"
        ):
            return second
    return finding


def _judged(
    claim: Claim,
    chosen: tuple[Unit, ...],
    units: Sequence[Unit],
    around: frozenset[str],
    passages: Sequence[Passage],
) -> _Finding:
    above = around.union(*(unit.context for unit in chosen))
    held = frozenset().union(*(unit.values for unit in chosen))
    missing = [value for value in claim.content if value not in held and value not in above]
    related = related_words(claim, missing, chosen)
    missing = [value for value in missing if value not in related]
    total = len(claim.content)
    share = (total - len(missing)) / total if total else 1.0
    # The rest of the passage is its topic, which a sentence need not repeat.
    topics = len(frozenset().union(*(unit.values.intersection(missing) for unit in units)))
    enough_words = share + TOPIC * topics / max(1, total)
    evidence = _evidence(claim, chosen, units, around, above, missing, related, share, passages)
    is_contradicted = evidence >= CONTRADICTION
    if not is_contradicted:
        if total <= 2:
            evidence += OTHER_WORDS if total and len(missing) == total else 0.0
        elif enough_words < LEAST_SHARE:
            evidence += OTHER_WORDS if enough_words < LITTLE_SHARE else FEW_WORDS
        places = {(unit.rank, unit.place + step) for unit in chosen for step in range(-NEAR, NEAR + 1)}
        near = [unit for unit in units if (unit.rank, unit.place) in places]
        evidence += additions(claim, near, passages)
    if evidence < CONTRADICTION:
        return _Finding("supported", chosen, tuple(_marks(claim, chosen, related)), share)
    return _Finding("not_found", chosen, (), share, doubtful=not is_contradicted)


def _evidence(
    claim: Claim,
    chosen: tuple[Unit, ...],
    units: Sequence[Unit],
    around: frozenset[str],
    above: frozenset[str],
    missing: Sequence[str],
    related: Mapping[str, str],
    share: float,
    passages: Sequence[Passage],
) -> float:
    """How strongly the facts disagree: other wording is weighed afterwards."""
    if not (
        numbers_agree(claim, chosen, units, around)
        and names_agree(claim, chosen, units, above, missing)
        and poles_agree(claim, chosen)
        and not joins_rows(claim, chosen)
        and not takes_other_name(claim, chosen)
        and not has_other_agent(claim, chosen, above | related.keys())
        and not is_of_another_row(claim, chosen[0], units)
        and not exceeds_bound(claim, chosen)
        and not is_swapped(claim, chosen, missing, share)
    ):
        return CONTRADICTION
    held = frozenset().union(*(unit.values for unit in chosen))
    apart = JOINED_APART if joins_apart(claim, chosen) else 0.0
    return denial(claim, chosen, held | related.keys()) + apart


def _chosen(claim: Claim, units: Sequence[Unit], least_beside: float) -> tuple[Unit, ...]:
    """The few units that together match most of the claim, best first."""
    weights = claim.weights
    chosen: list[Unit] = []
    if claim.measures:
        rest = [(unit, common) for unit in units if (common := claim.common(unit))]
    else:
        wanted = claim.values
        rest = [(unit, common) for unit in units if (common := unit.values & wanted)]
    covered: frozenset[str] = frozenset()
    while rest and len(chosen) < MAX_UNITS:
        if chosen:  # a distant heading or page footer adds nothing
            rest = [
                (unit, common)
                for unit, common in rest
                if unit.is_sentence or unit.table >= 0 or abs(unit.place - chosen[0].place) <= MAX_UNITS
            ]
            if not rest:
                break
        new = [sum(weights[value] for value in common - covered) for _, common in rest]
        near = [0.3 if chosen and abs(unit.place - chosen[0].place) <= 1 else 0.0 for unit, _ in rest]
        best = max(range(len(rest)), key=lambda at: new[at] + near[at] - _cost(rest[at][0]))
        if new[best] < ((least_beside if near[best] else LEAST_GAIN) if chosen else 1.0):
            break
        unit, common = rest.pop(best)
        chosen.append(unit)
        covered |= common | unit.context
    return tuple(chosen)


def _cost(unit: Unit) -> float:
    """A malus for long units and headings, among those with the same words."""
    is_bare = unit.is_heading or not (unit.is_sentence or unit.table >= 0)
    return LENGTH * len(unit.values) + (HEADING if is_bare else 0.0)


def _marks(claim: Claim, chosen: Sequence[Unit], related: dict[str, str]) -> Iterable[tuple[int, Mark]]:
    """Positions of the claim's words in the units; words close together become one range."""
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
