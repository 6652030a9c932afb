"""An answer made of quotations, and the sentences with which the site introduces it."""

from dataclasses import dataclass

from django.utils.translation import gettext_noop

from history.tally import LIKELY, NEEDS_MODEL, UNSURE, Grade

NOTHING_MORE = gettext_noop("There is nothing to add from the documents you may read.")
SEVERAL = gettext_noop("More than one place may answer this:")
PARTLY = gettext_noop("These are the parts that were found; there may be more:")
OTHERS = gettext_noop("Other passages that were found:")
# Shown above the closest passages for a follow-up question such as “and for crews?”
ADDED_MISSING = gettext_noop("None of them mentions what your question adds to the previous one.")
NOTICES = (UNSURE, LIKELY, SEVERAL, PARTLY, OTHERS, NOTHING_MORE, ADDED_MISSING, NEEDS_MODEL)


@dataclass(frozen=True, slots=True)
class QuotedAnswer:
    """Quotations as Markdown, and how well they answer.

    - `is_sure`: the first quotation clearly answers the question
    - `is_several`: several places may answer the same question
    - `is_part`: parts of what is asked for may be missing
    - `is_likely`: the quotations before `OTHERS` may answer
    - `is_task`: the question asks for a new text, which quotations cannot give
    """

    texts: tuple[str, ...]
    is_sure: bool
    is_several: bool = False
    is_part: bool = False
    is_likely: bool = False
    is_task: bool = False

    @property
    def first_texts(self) -> tuple[str, ...]:
        """The quotations that answer or may answer."""
        if self.is_sure:
            return self.texts
        return self.texts[: self._others_at] if self.is_likely else ()

    @property
    def other_texts(self) -> tuple[str, ...]:
        """The quotations that are only close, without the sentence that introduces them."""
        if self.is_sure:
            return ()
        return self.texts[self._others_at + 1 :] if self.is_likely else self.texts

    @property
    def _others_at(self) -> int:
        return self.texts.index(OTHERS) if OTHERS in self.texts else len(self.texts)

    @property
    def notice(self) -> str:
        """The sentence above the quotations; empty if they are a clear, single and complete answer."""
        if self.is_task:
            return NEEDS_MODEL
        if not self.is_sure:
            return LIKELY if self.is_likely else UNSURE
        return SEVERAL if self.is_several else PARTLY if self.is_part else ""

    @property
    def grade(self) -> str:
        """How certainly the quotations answer, as a value for programs."""
        if not self.texts:
            return Grade.NONE
        if not self.is_sure:
            return Grade.LIKELY if self.is_likely else Grade.CLOSEST
        return Grade.SEVERAL if self.is_several else Grade.GIVEN
