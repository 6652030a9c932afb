"""How many statements of an answer were found in their sources: the one place that counts them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """How many statements of an answer there are of each kind; all that count them use this one."""

    found: int = 0  # quoted or supported
    missing: int = 0  # with a citation in whose source they were not found
    uncited: int = 0

    @property
    def cited(self) -> int:
        return self.found + self.missing

    @property
    def summary(self) -> str:
        """One line on the citations; empty for an answer without any."""
        if not self.cited:
            return ""
        if not self.missing:
            return "All citations found in the text"
        if self.cited == 1:
            return "The statement was not found in its source"
        if self.missing == 1:
            return f"1 of {self.cited} statements was not found in its source"
        return f"{self.missing} of {self.cited} statements were not found in their sources"

    @property
    def rest(self) -> str:
        """One line on the statements without citations; empty where there are none."""
        if not self.uncited:
            return ""
        return (
            "1 statement cites no source"
            if self.uncited == 1
            else f"{self.uncited} statements cite no source"
        )


def tally(verdicts: Iterable[str]) -> Tally:
    """Counts of the verdicts of an answer's statements."""
    counts = Counter(verdicts)
    return Tally(counts["quoted"] + counts["supported"], counts["not_found"], counts["uncited"])
