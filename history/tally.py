"""Counts the statements of an answer by verdict."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, gettext_noop, ngettext

# UNSURE is shown above passages that do not answer the question. LIKELY is shown above a passage that has the
# words of the question and the kind of information asked for, but may be about something else.
UNSURE = gettext_noop("No exact answer found. The closest passages:")
LIKELY = gettext_noop("This may answer your question:")
# NEEDS_MODEL answers a request for a new text, such as a summary; passages on its subject follow, if any.
NEEDS_MODEL = gettext_noop(
    "This needs a language model, and none is connected to this site. Without one, the site quotes documents"
    " word for word."
)
# Citations below these sentences do not confirm that the question is answered.
HEDGES = (UNSURE, LIKELY, NEEDS_MODEL)


class Grade:
    """How certain it is that an answer made of quotations answers the question.

    Programs read this value instead of the answer's first line.
    """

    GIVEN = "given"  # an answer, or at least a part of one
    SEVERAL = "several"  # several passages may answer, in different ways
    LIKELY = "likely"
    CLOSEST = "closest"  # no answer, only passages close to the question
    NONE = "none"  # nothing was found


GRADES = (Grade.GIVEN, Grade.SEVERAL, Grade.LIKELY, Grade.CLOSEST, Grade.NONE)


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of an answer's statements, by kind."""

    found: int = 0  # statements quoted from the cited source, or supported by it
    missing: int = 0  # statements that their cited source does not support, without the unclear ones
    uncited: int = 0
    by_model: int = 0  # those of `found` that only the language model confirmed (see chat.engine.second_look)
    unclear: int = 0  # statements in words that differ too much from the cited source to tell
    verified_by: str = ""  # who verified the answer, including statements that were not found in its sources

    @property
    def cited(self) -> int:
        return self.found + self.missing + self.unclear

    @property
    def summary(self) -> str:
        """A line about the citations; empty for an answer without citations."""
        if not self.cited:
            return ""
        if self.is_confirmed:
            number = self.missing + self.unclear
            words = ngettext(
                "%(count)s statement checked by %(person)s",
                "%(count)s statements checked by %(person)s",
                number,
            )
            found = words % {"count": number, "person": self.verified_by}
        elif not (self.missing or self.unclear):
            found = self._all_found
        elif not self.missing:
            found = self._compare
        elif self.cited == 1:
            found = gettext("The statement was not found in its source")
        else:
            words = ngettext(
                "%(missing)s of %(cited)s statements was not found in its source",
                "%(missing)s of %(cited)s statements were not found in their sources",
                self.missing,
            )
            found = words % {"missing": self.missing, "cited": self.cited}
            if self.unclear:
                found = f"{found}; {self._compare}"
        if not self.by_model:
            return found
        words = ngettext(
            "%(found)s; %(count)s statement checked again by the language model",
            "%(found)s; %(count)s statements checked again by the language model",
            self.by_model,
        )
        return words % {"found": found, "count": self.by_model}

    @property
    def is_confirmed(self) -> bool:
        """Whether a person checked statements that were not found in their sources.

        A verified answer with such statements can be saved only after its author has confirmed them.
        """
        return bool(self.verified_by and (self.missing or self.unclear))

    @property
    def is_doubtful(self) -> bool:
        """Whether there are `missing` statements that no person confirmed."""
        return bool(self.missing) and not self.is_confirmed

    @property
    def _all_found(self) -> str:
        # If there are statements without citations, “All” would seem to include them.
        if not self.uncited:
            return gettext("All citations found in the text")
        words = ngettext(
            "%(count)s statement found in its source",
            "%(count)s statements found in their sources",
            self.found,
        )
        return words % {"count": self.found}

    @property
    def _compare(self) -> str:
        words = ngettext(
            "%(count)s statement in other words: compare it with its source",
            "%(count)s statements in other words: compare them with their sources",
            self.unclear,
        )
        return words % {"count": self.unclear}

    @property
    def rest(self) -> str:
        """A line about statements without citations; empty if there are none."""
        if not self.uncited:
            return ""
        if self.verified_by:
            words = ngettext(
                "%(count)s statement without a source, confirmed by %(person)s",
                "%(count)s statements without a source, confirmed by %(person)s",
                self.uncited,
            )
            return words % {"count": self.uncited, "person": self.verified_by}
        words = ngettext(
            "%(count)s statement cites no source", "%(count)s statements cite no source", self.uncited
        )
        return words % {"count": self.uncited}


def tally(
    verdicts: Iterable[str], by_model: int = 0, unclear: int = 0, verified: Mapping[str, Any] | None = None
) -> Tally:
    """Count the verdicts of an answer's statements.

    `unclear` is the number of unclear statements among those with the verdict “not_found”. `verified` is the
    answer's `Message.verified`.
    """
    counts = Counter(verdicts)
    found = counts["quoted"] + counts["supported"]
    missing = counts["not_found"] - unclear
    return Tally(found, missing, counts["uncited"], by_model, unclear, (verified or {}).get("by", ""))


def is_by_model(row: Mapping[str, Any]) -> bool:
    """Whether a stored statement is supported only by the language model's second look."""
    proven = [proof for proof in row.get("proofs", ()) if proof["verdict"] in ("quoted", "supported")]
    return bool(proven) and all(proof.get("by_model") for proof in proven)


def is_unclear(row: Mapping[str, Any]) -> bool:
    """Whether a statement was not found only because its wording differs too much to compare."""
    return row["verdict"] == "not_found" and any(proof.get("unclear") for proof in row.get("proofs", ()))
