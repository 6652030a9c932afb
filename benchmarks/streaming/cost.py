"""CPU time for each token: the site with all features, compared with a bare relay of the same answers."""

from typing import Any

from .client import Outcome
from .processes import cpu_seconds, load
from .upstream import TOKENS


def measured(pid: int, plan: dict[str, Any], spread: float = 6.0) -> tuple[float, list[Outcome]]:
    """The CPU seconds of a process for a plan, and the outcomes of its questions."""
    before = cpu_seconds(pid)
    outcomes = load(**plan, spread=spread, abort=0)
    spent = cpu_seconds(pid) - before
    for outcome in outcomes:
        assert outcome.status == 200, outcome
        assert not outcome.error, outcome
        assert outcome.first >= 0, outcome
    return spent, outcomes


def per_token(spent: float, answers: int, tokens: int = TOKENS) -> float:
    return spent / answers / tokens * 1e6
