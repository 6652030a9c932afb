"""Quotations that may answer a question: the best sentences with what belongs to them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.functional import cached_property

from chat.llm.chat_model import Prompt
from chat.quoting.questions.amounts import numbers_of
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.applicability import outsiders_in
from chat.quoting.questions.question import Question
from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems
from ingestion.search.sentence_splitting import spans_of
from ingestion.search.table_rows import rows_of

from .confidence import answers
from .extracts import MAX_UNASKED_ROWS, Extract, extract, with_surroundings, without_rows
from .rendering import markdown
from .sentence_selection import Sentence

QUOTATIONS = 3  # that are looked at
NOTES = "Notes:"  # how the readers of slides introduce those of the presenter
SECOND = 0.85  # share of the best sentence's score, for a second quotation
OF_BEST_PASSAGE = 0.7  # the same for the best sentence of the passage that the search finds best

_QUESTION_WORD = re.compile(
    r"\b(?:who|whom|what|which|when|where|why|how|wer|wem|wen|was|welche[rsnm]?|wann|wo|warum|wie)\b",
    re.IGNORECASE,
)

ShownRow = tuple[str, str, str]  # file, heading and text


@dataclass(frozen=True)
class Quotation:
    """A quotation as Markdown.

    `quoted` is what it consists of, `sentence` its best one, `share` its score as a share of the best one's,
    and `is_of_best` whether it is the first of the passage that the search finds best. `all_rows` is the
    number of a longer table's rows, if the source has only a part of it.
    """

    text: str
    quoted: Extract
    all_rows: int
    source: SourceView
    sentence: Sentence
    share: float
    is_of_best: bool
    question: Question

    @property
    def chapter(self) -> tuple[str, str]:
        """Its document and outermost heading."""
        return self.source.sourcefile, chapter_of(self.source)

    @cached_property
    def held(self) -> QuotedText:
        """The words that were asked for, and the headings.

        Rows that the question does not ask for do not make the answer more certain.
        """
        quoted = self.quoted
        asked_for = " ".join((quoted.lead, *(quoted.matching or quoted.lines)))
        return QuotedText(self.question, (asked_for, self.source.title, self.source.heading))

    @cached_property
    def answers(self) -> bool:
        return answers(self.held)

    @cached_property
    def has_all(self) -> bool:
        """Whether it answers with everything that the question names."""
        return answers(self.held, share=1.0)

    @cached_property
    def has_amount(self) -> bool:
        """Whether an amount, if one is asked for, is in the sentence or follows it."""
        amount = self.question.amount
        if amount is None:
            return True
        is_row = self.quoted.kind == "table" and self.sentence.text in self.quoted.lines
        text = self.sentence.text if is_row else self.source.content[self.sentence.start : self.quoted.end]
        return amount.is_in(text)

    @property
    def is_part_of_table(self) -> bool:
        quoted = self.quoted
        return quoted.kind == "table" and (bool(self.all_rows) or len(quoted.lines) < quoted.rows)

    @cached_property
    def needs_other_rows(self) -> bool:
        """Whether its best row has less of what the question names than the quoted rows together."""
        named = self.question.named
        row = held_stems(" ".join((self.sentence.text, *self.held.texts[1:])))
        return self.held.known(named, row) < self.held.known(named)

    @cached_property
    def is_for_others(self) -> bool:
        words, *_, heading = self.held.texts
        return self.question.is_for_others(outsiders_in(f"{words} {heading}"))

    @cached_property
    def is_asked_by_heading(self) -> bool:
        """Whether its heading asks the question: “Life jackets › When crew must wear one”.

        The innermost heading has the question word and one of the words that the question names; with the
        headings above, it has all of them.
        """
        question, inner = self.question, self.source.heading.rpartition("›")[2]
        asked, heading = _QUESTION_WORD.search(question.own), _QUESTION_WORD.search(inner)
        words = held_stems(f"{self.source.title} {self.source.heading}")
        return (
            asked is not None
            and heading is not None
            and asked[0].lower() == heading[0].lower()
            and bool(self.held.known(question.named, held_stems(inner)))
            and self.held.known(question.named, words) == len(question.named)
        )

    def has(self, sentence: Sentence) -> bool:
        """Whether the sentence is quoted here."""
        is_here = sentence.passage == self.sentence.passage
        return is_here and self.quoted.start <= sentence.start < self.quoted.end

    @property
    def below_heading(self) -> "Quotation":
        """The passage from its beginning, as much as fits; a table stays as it is."""
        content = self.source.content
        starts = (span.start for span in spans_of(content) if not span.is_heading)
        first = next((each for start in starts if (each := extract(content, start))), self.quoted)
        return self if "table" in (first.kind, self.quoted.kind) else replace(self, quoted=first).in_passage

    @property
    def in_passage(self) -> "Quotation":
        """With what is around it in its passage."""
        quoted = with_surroundings(self.source.content, self.quoted)
        return replace(self, quoted=quoted, text=markdown(quoted, self.source, self.all_rows))

    def without(self, shown: set[ShownRow]) -> str:
        """The text without the rows in `shown`, to which its rows are added; empty if nothing remains."""
        if self.quoted.kind != "table":
            return self.text
        place = self.source.sourcefile, self.source.heading
        before = {line for line in self.quoted.lines if (*place, line) in shown}
        shown.update((*place, line) for line in self.quoted.lines)
        rest = without_rows(self.quoted, before)
        return markdown(rest, self.source, self.all_rows) if rest else ""

    def differs_from(self, first: "Quotation") -> bool:
        """Whether it is another answer in other words."""
        return self.sentence.text != first.sentence.text and self.is_another_answer(first)

    def is_another_answer(self, first: "Quotation") -> bool:
        """Whether it is from another document or chapter, with no number of the first if one is asked for.

        If the first has a number of what is counted (“how many”), this one must have one, too.
        """
        if self.chapter == first.chapter or first.sentence.is_counted > self.sentence.is_counted:
            return False
        return not (
            self.question.asks_amount and numbers_of(self.sentence.text) & numbers_of(first.sentence.text)
        )


def chapter_of(source: SourceView) -> str:
    """Its outermost heading."""
    return source.heading.partition("›")[0]


def quotations_of(
    question: Question, prompt: Prompt, found: Sequence[Sentence], sources: Sequence[SourceView]
) -> list[Quotation]:
    """The best sentences with their context, at most `QUOTATIONS`, without duplicate places or what agents
    have quoted before.

    The second one is from the passage that the search finds best, if the first is not.
    """
    quotations: list[Quotation] = []
    taken: dict[int, list[tuple[int, int]]] = {}
    of_best = _of_best_passage(found, sources)
    ordered = [*found[:1], *([of_best] if of_best else []), *(each for each in found[1:] if each != of_best)]
    for sentence in ordered:
        places = taken.setdefault(sentence.passage, [])
        if any(start <= sentence.start < end for start, end in places):
            continue
        source = sources[sentence.passage]
        is_long = len(rows_of(source.content)) > MAX_UNASKED_ROWS
        starts = [
            each.start
            for each in found
            if each.passage == sentence.passage
            and each.score >= SECOND * sentence.score
            and not (is_long and _words_in(question, each.text) < _words_in(question, sentence.text))
        ]
        all_rows = prompt.table_rows.get(source.passage_id, 0)
        quoted = extract(source.content, sentence.start, starts, has_part_of_table=bool(all_rows))
        if quoted is None or any(start < quoted.end and quoted.start < end for start, end in places):
            continue
        if quoted.lead.startswith(NOTES) and "#slide=" in source.label:
            # Alone they may be instructions to the speaker.
            quoted = with_surroundings(source.content, quoted)
        places.append((quoted.start, quoted.end))
        text = markdown(quoted, source, all_rows)
        said = (sentence.text, " ".join((quoted.lead, *quoted.lines)), text)
        if any(each in item.text for item in prompt.contributions for each in said):
            continue
        share = sentence.score / found[0].score
        is_of_best = sentence == of_best
        quotations.append(Quotation(text, quoted, all_rows, source, sentence, share, is_of_best, question))
        if len(quotations) == QUOTATIONS:
            break
    return quotations


def _words_in(question: Question, text: str) -> frozenset[str]:
    """The stems of what the question names that the text has literally."""
    return question.named & held_stems(text)


def _of_best_passage(found: Sequence[Sentence], sources: Sequence[SourceView]) -> Sentence | None:
    """The best sentence of the passage that the search finds best; None if it is the first, or much worse."""
    best = max(range(len(sources)), key=lambda place: sources[place].score, default=0)
    of_best = next((each for each in found[1:] if each.passage == best), None)
    if of_best is None or found[0].passage == best or of_best.score < OF_BEST_PASSAGE * found[0].score:
        return None
    return of_best
