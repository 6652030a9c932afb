"""How likely a source is to support a statement, if no fact directly contradicts it.

The result is a weighted sum of signs (features). The weights come from a logistic regression on the labelled
statements in benchmarks/verification (benchmarks/fit_credence.py). They were rounded, and reduced for signs
that may only reflect the style of these test statements.
"""

from collections.abc import Mapping, Sequence

from chat.verification.cited_passages import Unit
from chat.verification.claims import MISPLACED, UNANSWERED, Claim
from chat.verification.terms.words import Kind

from .agreement import NEARLY_LITERAL, NEW_CLAUSE
from .contrasts import leaves_out_only

MIN_LIKENESS = 0.5  # a likeness below this counts against the statement (sign “far”)
DENIABLE_SHARE = 0.6  # below this share of words in common, the sign “denial” does not count
ADDABLE_SHARE = 0.5  # below this share of words in common, only a whole new clause counts as an addition

WEIGHTS = {
    "number": -1.8,
    "name": -1.6,
    "denial": -1.8,
    "new denial": -1.8,
    "addition": -2.0,
    "new noun": -0.4,
    "pole": -2.6,
    "opposite": -1.4,
    "role": -3.0,
    "mixed": -1.6,
    "turned": -0.9,
    "borrowed": -1.6,
    "displaced": -1.3,
    "only they deny": -0.5,
    "not only": -0.4,
    "numbers agree": 1.3,
    "both deny": 1.2,
    "only alike": -0.8,
    "far": -1.4,
    "joins": 0.2,
    "apart": -1.4,
}


def credence(signs: Mapping[str, float]) -> float:
    """The weighted sum of the signs; below 0, the statement is unclear.

    There is no constant term: a statement whose words are all in the source is supported unless a sign is
    against it.
    """
    return sum(WEIGHTS[name] * value for name, value in signs.items())


def signs_of(
    claim: Claim,
    chosen: Sequence[Unit],
    *,
    share: float,
    likeness: float,
    evidence: Mapping[str, float],
) -> dict[str, float]:
    """The signs for and against a claim, by the names in WEIGHTS.

    `share` is the share of the claim's words in the selected sentences, `likeness` the mean likeness of its
    words (terms/likeness.py), and `evidence` the strength of contradicting facts by kind.
    """
    denies = any(token.kind is Kind.NEGATION for token in claim.tokens)
    denied = any(
        unit.denied or any(token.kind is Kind.NEGATION for token in (*unit.tokens, *unit.header))
        for unit in chosen
    )
    return {
        "number": evidence["number"] >= UNANSWERED,
        "name": evidence["name"] >= UNANSWERED,
        # “denial” and “addition” mean little if the texts share few words, because a paraphrase may deny the
        # opposite or have new nouns.
        "denial": evidence["denial"] >= MISPLACED and share >= DENIABLE_SHARE,
        "new denial": 0 < evidence["denial"] < MISPLACED,
        "addition": evidence["addition"] >= (MISPLACED if share >= ADDABLE_SHARE else NEW_CLAUSE),
        "new noun": 0 < evidence["addition"] < MISPLACED,
        "pole": evidence["pole"] > 0,
        "opposite": evidence["opposite"] > 0,
        "role": evidence["role"] > 0,
        "mixed": evidence["mixed"] > 0,
        "turned": evidence["turned"] > 0,
        "borrowed": evidence["borrowed"] > 0,
        "displaced": evidence["displaced"] > 0,
        "numbers agree": bool(claim.numbers) and not evidence["number"],
        "both deny": denies and denied and not evidence["denial"],
        "only they deny": denied and not denies and share >= NEARLY_LITERAL,
        "only alike": max(0.0, likeness - share),
        "far": likeness < MIN_LIKENESS,
        "joins": claim.joins,
        # The claim is a single statement, but takes its words from several sentences.
        "apart": not claim.joins and chosen[0].table < 0 and any(unit.is_sentence for unit in chosen[1:]),
        "not only": leaves_out_only(claim, chosen),
    }
