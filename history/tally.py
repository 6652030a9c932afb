"""Counts the statements of an answer by verdict."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext, ngettext


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of an answer's statements by kind."""

    found: int = 0  # quoted or supported
    missing: int = 0  # with a citation whose source does not support them
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
            return gettext("All citations found in the text")
        if self.cited == 1:
            return gettext("The statement was not found in its source")
        words = ngettext(
            "%(missing)s of %(cited)s statements was not found in its source",
            "%(missing)s of %(cited)s statements were not found in their sources",
            self.missing,
        )
        return words % {"missing": self.missing, "cited": self.cited}

    @property
    def rest(self) -> str:
        """One line on statements without citations; empty if there are none."""
        if not self.uncited:
            return ""
        words = ngettext(
            "%(count)s statement cites no source", "%(count)s statements cite no source", self.uncited
        )
        return words % {"count": self.uncited}


def tally(verdicts: Iterable[str]) -> Tally:
    """Counts of the verdicts of an answer's statements."""
    counts = Counter(verdicts)
    return Tally(counts["quoted"] + counts["supported"], counts["not_found"], counts["uncited"])
