"""Compares each statement with the passages that it cites."""

import functools
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from typing import NamedTuple
from uuid import UUID

from chat.statements import Proof, Statement, Verdict

from .answer_statements import Citation, StatementSpan, cut
from .checks.agreement import (
    additions,
    denial,
    has_other_agent,
    is_of_another_row,
    is_swapped,
    joins_rows,
    name_evidence,
    poles_agree,
    related_words,
    says_opposite,
    takes_other_name,
)
from .checks.alignment import alignments
from .checks.contrasts import exchanges_cases, is_turned_round, mixes
from .checks.credence import credence, signs_of
from .checks.numbers import exceeds_bound, number_evidence, reverses_bound
from .cited_passages import Citable, Mark, Passage, Unit
from .claims import CLAUSE, CONTRADICTION, LITERAL_SHARE, MIN_SHARE, MISPLACED, Claim, claim_of
from .terms.facts import tokens
from .terms.lexicon import STOP_WORDS
from .terms.words import Kind

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 2_000  # characters of a statement that are compared
CACHED_ANSWERS = 16
BARE_ANSWERS = frozenset({"yes", "no", "ja", "nein"})
MAX_UNITS = 3  # sentences or rows (`Unit`) that may support a statement together
OFF_TOPIC = 0.42  # a statement without a word of its sources is off topic if its likeness is below this
# A statement with fewer words than MIN_LITERAL is never off topic; it is nearly literal only if it has
# MIN_SENTENCE_SHARE of the words of the source's sentence.
MIN_LITERAL = 4
MIN_SENTENCE_SHARE = 0.6
MIN_GAIN = 1.4  # another sentence is added if it matches further words of at least this weight
MIN_GAIN_BESIDE = 1.0  # the same for a sentence next to the best one, if the first choice gives no support
# Penalty for each word of a sentence, because a shorter one with the same words is better evidence.
LENGTH = 0.02
HEADING = 0.5  # penalty for a heading, or for another line outside tables that is no sentence
MENTION_RADIUS = 4  # units before and after the chosen ones that may also mention the statement's words
MAX_CLAUSE = 200  # characters after a quotation that are searched for the end of its clause
CLAUSE_ENDS = ".,;:!?"
# Beginnings of text that a negation at the end of the clause does not deny.
_CLAUSE_END = re.compile(
    rf"{CLAUSE.pattern}|[(\[–—|\t]"
    r"|\b(?:or|whether|that|though|although|as|than|oder|ob|dass|obwohl)\b",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_NO_LONGER = ("mehr", "longer")
WIDE_GAP = 30  # longest text, in characters, between two words that are marked as one range


@dataclass(frozen=True)
class _Finding:
    """The result of comparing a statement with some units.

    `unclear` means that no fact contradicts the statement, but the wording differs too much to decide.
    """

    verdict: Verdict
    units: tuple[Unit, ...] = ()
    marks: tuple[tuple[int, Mark], ...] = ()  # each with the rank of its passage
    share: float = 0.0
    unclear: bool = False

    def proof(self, citation: Citation, rank: int) -> Proof:
        """The proof for a citation.

        It refers to the passage with the most marked text, or else that of the best unit, or else `rank`.
        """
        if self.marks:
            counts: dict[int, int] = {}
            for each, (first, last) in self.marks:
                counts[each] = counts.get(each, 0) + last - first
            rank = max(counts, key=lambda each: counts[each])
        elif self.units:
            rank = self.units[0].rank
        disagreeing = None
        if self.verdict == "not_found" and not self.unclear and self.share >= MIN_SHARE:
            words = self.units[0].tokens
            disagreeing = (words[0].start, words[-1].end)
        return Proof(
            citation.start,
            citation.end,
            citation.label,
            self.verdict,
            rank,
            tuple(mark for each, mark in self.marks if each == rank),
            unclear=self.unclear,
            disagreeing=disagreeing,
        )


class _HashableSource(NamedTuple):
    """A hashable copy of a source, for the cache."""

    rank: int
    label: str
    title: str
    heading: str
    content: str


def verify(answer: str, sources: Iterable[Citable]) -> tuple[Statement, ...]:
    """The statements of an answer in order, each compared with the sources that it cites."""
    given = [
        _HashableSource(each.rank, each.label, each.title, each.heading, each.content) for each in sources
    ]
    return _verify_cached(answer, tuple(given))


def verify_or_log(
    answer: str, sources: Iterable[Citable], run_id: UUID | None = None
) -> tuple[Statement, ...] | None:
    """Like :func:`verify`; if it fails, log the error and return None.

    An answer that cannot be verified must still be stored, and shown. `run_id` is only for the log.
    """
    try:
        return verify(answer, sources)
    except Exception:
        logger.exception("An answer could not be verified (run: %s)", run_id)
        return None


# Cached, because suggesting follow-up questions needs the statements again.
@functools.lru_cache(maxsize=CACHED_ANSWERS)
def _verify_cached(answer: str, sources: Sequence[Citable]) -> tuple[Statement, ...]:
    return verify_anew(answer, sources)


def verify_anew(answer: str, sources: Iterable[Citable]) -> tuple[Statement, ...]:
    """Like :func:`verify`, but without the cache."""
    by_label: dict[str, list[Passage]] = {}
    for source in sources:
        by_label.setdefault(source.label, []).append(Passage(source))
    cuts = cut(answer, by_label)
    cited = {citation.label for each in cuts for citation in each.citations}
    known_names = frozenset().union(*(passage.names for label in cited for passage in by_label[label]))
    found = (_statement(answer, each, by_label, known_names) for each in cuts)
    return tuple(_without_bare_answers(answer, [each for each in found if each is not None]))


def _without_bare_answers(answer: str, statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements without a mere *Yes* or *No* before a cited statement that explains it."""
    for each, following in zip_longest(statements, statements[1:]):
        text = answer[each.start : each.end].strip(" .,!:*_").casefold()
        is_bare = not each.citations and text in BARE_ANSWERS
        if not (is_bare and following and following.citations):
            yield each


def _statement(
    answer: str, each: StatementSpan, by_label: dict[str, list[Passage]], known_names: frozenset[str]
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
    each: StatementSpan,
    labels: tuple[str, ...],
    by_label: Mapping[str, list[Passage]],
    alone: Mapping[str, _Finding],
    together: _Finding | None,
) -> Statement:
    """The statement with a proof for each citation.

    A proof is based on the finding for the citation's own sources (`alone`), or for all cited sources if they
    support the statement only in combination (`together`).
    """
    proofs = []
    for citation in each.citations:
        finding = alone[citation.label]
        passages = by_label[citation.label]
        if together and together.verdict == "supported":
            ranks = {passage.rank for passage in passages}
            used = tuple(unit for unit in together.units if unit.rank in ranks)
            marks = tuple(mark for mark in together.marks if mark[0] in ranks)
            finding = _Finding("supported" if used else "not_found", used, marks)
        elif together and together.unclear:
            finding = replace(finding, unclear=True)
        proofs.append(finding.proof(citation, passages[0].rank))
    verdicts = {proof.verdict for proof in proofs}
    verdict: Verdict = next((one for one in ("quoted", "supported") if one in verdicts), "not_found")
    return Statement(each.start, each.end, labels, verdict, tuple(proofs))


def _unproved(each: StatementSpan, labels: tuple[str, ...], verdict: Verdict) -> Statement:
    proofs = tuple(Proof(one.start, one.end, one.label, "not_found") for one in each.citations)
    return Statement(each.start, each.end, labels, verdict, proofs)


def _quoted(text: str, passages: Sequence[Passage]) -> _Finding | None:
    for passage in passages:
        mark = passage.quoted(text)
        if mark is not None and not _is_denied(passage, mark):
            return _Finding("quoted", (), ((passage.rank, mark),), 1.0)
    return None


def _is_denied(passage: Passage, mark: Mark) -> bool:
    """Whether a negation before the words at `mark`, or at the end of their clause, reverses their meaning.

    “It is not the case that …” is directly before the words; many German negations end the clause: “Der
    Arbeitgeber zahlt die Kosten nicht”.
    """
    text, (start, end) = passage.text, mark
    before = tokens(text[max(0, start - 24) : start])
    while before and before[-1].whole in ("case", "true"):
        before.pop()
    if before and before[-1].kind is Kind.NEGATION and "." not in text[before[-1].end : start]:
        return True
    if text[end - 1] in CLAUSE_ENDS:
        return False
    rest = text[end : min(passage.sentence_end(end - 1), end + MAX_CLAUSE)]
    rest = _IN_BRACKETS.sub(lambda match: " " * len(match[0]), rest)  # “nicht (siehe § 4)”
    clause = list(takewhile(lambda token: not _CLAUSE_END.search(rest, 0, token.start), tokens(rest)))
    while clause and clause[-1].whole in _NO_LONGER:
        clause.pop()
    return bool(clause) and clause[-1].kind is Kind.NEGATION


def _best(claim: Claim, passages: Sequence[Passage]) -> _Finding:
    """The best finding for one of the passages with a label, or for all of them together.

    The passages are combined if no single one supports the statement.
    """
    findings = [_compared(claim, passage.units, [passage]) for passage in passages]
    best = max(findings, key=lambda finding: (finding.verdict == "supported", finding.share))
    if best.verdict == "not_found" and len(passages) > 1:
        joint = _compared(claim, [unit for passage in passages for unit in passage.units], passages)
        return joint if joint.verdict == "supported" else best
    return best


def _compared(claim: Claim, units: Sequence[Unit], passages: Sequence[Passage]) -> _Finding:
    """Compare a claim with the units that have most of its words.

    If these do not support it, adjacent units are added.
    """
    around = frozenset().union(*(passage.around for passage in passages))
    chosen = _chosen(claim, units, MIN_GAIN)
    if not chosen:
        # No content words in common. Likeness compares vectors of English words, and only German words are
        # translated for it: a low value shows another subject only if both texts are English, or both German.
        languages = {passage.language for passage in passages}
        is_same_language = "" not in languages and (not claim.language or claim.language in languages)
        is_like = (
            len(claim.content) < MIN_LITERAL
            or not is_same_language
            or _likeness(claim, passages) >= OFF_TOPIC
        )
        return _Finding("not_found", unclear=is_like)
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
    is_literal = _is_nearly_literal(claim, chosen[0], above | related.keys())
    evidence = _evidence(claim, chosen, units, around, above, missing, related, share)
    facts = max(evidence.values())
    if facts >= CONTRADICTION or (facts >= MISPLACED and is_literal):
        return _Finding("not_found", chosen, (), share)
    # If the units have all words, likeness adds nothing.
    likeness = 1.0 if share == 1 or not claim.spoken else _likeness(claim, passages)
    places = {
        (unit.rank, unit.place + step)
        for unit in chosen
        for step in range(-MENTION_RADIUS, MENTION_RADIUS + 1)
    }
    near = [unit for unit in units if (unit.rank, unit.place) in places]
    evidence["addition"] = additions(claim, near, passages)
    evidence["opposite"] = float(says_opposite(claim, chosen))
    evidence["turned"] = float(is_turned_round(claim, chosen))
    aligned = alignments(claim, chosen, above)
    evidence["borrowed"] = float(any(each.borrows(units) for each in aligned))
    evidence["displaced"] = float(any(each.displaces() for each in aligned))
    signs = signs_of(claim, chosen, share=share, likeness=likeness, evidence=evidence)
    if credence(signs) < 0:
        return _Finding("not_found", chosen, (), share, unclear=True)
    return _Finding("supported", chosen, tuple(_marks(claim, chosen, related)), share)


def _evidence(
    claim: Claim,
    chosen: tuple[Unit, ...],
    units: Sequence[Unit],
    around: frozenset[str],
    above: frozenset[str],
    missing: Sequence[str],
    related: Mapping[str, str],
    share: float,
) -> dict[str, float]:
    """How strongly facts disagree, by kind; differences in wording are considered later."""
    if (
        joins_rows(claim, chosen)
        or is_of_another_row(claim, chosen, units)
        or exceeds_bound(claim, chosen)
        or is_swapped(claim, chosen, missing, share)
    ):
        return {"row": CONTRADICTION}
    has_other_role = (
        takes_other_name(claim, chosen)
        or has_other_agent(claim, chosen, above | related.keys())
        or exchanges_cases(claim, chosen)
    )
    agrees = poles_agree(claim, chosen, units) and not reverses_bound(claim, chosen)
    return {
        "number": number_evidence(claim, chosen, units, around, share),
        "name": name_evidence(claim, chosen, units, above, missing, share),
        "denial": min(denial(claim, chosen, units, related), MISPLACED),
        "pole": 0.0 if agrees else MISPLACED,
        "role": MISPLACED if has_other_role else 0.0,
        "mixed": MISPLACED if mixes(claim, chosen, units, above) else 0.0,
    }


def _is_nearly_literal(claim: Claim, unit: Unit, known: Collection[str]) -> bool:
    """Whether a unit has nearly all words of the claim: another word then means another fact.

    A short claim must also have most words of the unit.
    """
    held = [value for value in claim.content if value in unit.values or value in known]
    if len(held) < LITERAL_SHARE * len(claim.content):
        return False
    return len(claim.content) >= MIN_LITERAL or len(held) >= MIN_SENTENCE_SHARE * len(unit.content)


def _likeness(claim: Claim, passages: Sequence[Passage]) -> float:
    return max(passage.likeness.coverage(claim.spoken, claim.names) for passage in passages)


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
        if new[best] < ((least_beside if near[best] else MIN_GAIN) if chosen else 1.0):
            break
        unit, common = rest.pop(best)
        chosen.append(unit)
        covered |= common | unit.context
    return tuple(chosen)


def _cost(unit: Unit) -> float:
    """A penalty for long units and headings, to choose between units with the same words."""
    is_bare = unit.is_heading or not (unit.is_sentence or unit.table >= 0)
    return LENGTH * len(unit.values) + (HEADING if is_bare else 0.0)


def _marks(claim: Claim, chosen: Sequence[Unit], related: dict[str, str]) -> Iterable[tuple[int, Mark]]:
    """The positions of the claim's words in the units; adjacent words become one range."""
    wanted = claim.values | frozenset(related.values())
    denies = any(token.kind is Kind.NEGATION for token in claim.tokens)
    for unit in sorted(chosen, key=lambda unit: (unit.rank, unit.place)):
        start = end = -1
        apart = False
        begins = {
            unit.tokens[cell.start].start: cell.begin
            for cell in unit.cells
            if cell.start < cell.end and cell.opening and cell.opening in claim.text
        }
        ends = {
            unit.tokens[cell.end - 1].start: cell.finish
            for cell in unit.cells
            if cell.start < cell.end and cell.closing in claim.text
        }
        for token in unit.tokens:
            if not (token.value in wanted or (denies and token.kind is Kind.NEGATION)):
                apart = True
                continue
            if start < 0 or apart or token.start - end > WIDE_GAP:
                if start >= 0:
                    yield unit.rank, (start, end)
                start = begins.get(token.start, token.start)
            end, apart = max(end, token.end, ends.get(token.start, 0)), False
        if start >= 0:
            yield unit.rank, (start, end)
