"""Quotations that may answer a question: the best sentences, with their context."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.functional import cached_property

from chat.llm.chat_model import Prompt
from chat.quoting.questions.amounts import numbers_of
from chat.quoting.questions.answer_types import QuotedText
from chat.quoting.questions.applicability import outsiders_in
from chat.quoting.questions.question import Question, has_mark, states_negation
from chat.quoting.table_rows.named_rows import names_in
from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems, weak_stems
from ingestion.search.sentence_splitting import spans_of
from ingestion.search.table_rows import rows_of

from .confidence import answers
from .extracts import (
    MAX_CHARACTERS,
    MAX_FIRST_PASSAGE,
    MAX_PASSAGE,
    MAX_UNASKED_ROWS,
    Extract,
    extract,
    with_surroundings,
    without_rows,
)
from .rendering import markdown
from .sentence_selection import Sentence

QUOTATIONS = 3  # quotations that are considered for a question
NOTES = "Notes:"  # the word that introduces the presenter's notes in the text of a slide
SECOND = 0.85  # share of the best score that a second quotation, or a further row of a quoted table, needs
OF_BEST_PASSAGE = 0.7  # the same for a sentence from the passage that the search ranks first

MIN_ADDED = 2 / 3  # share of the words of `Question.added` that a quotation about the added term needs

_QUESTION_WORD = re.compile(
    r"\b(?:who|whom|what|which|when|where|why|how|wer|wem|wen|was|welche[rsnm]?|wann|wo|warum|wie)\b",
    re.IGNORECASE,
)

ShownRow = tuple[str, str, str]  # file, heading and text of a row


@dataclass(frozen=True)
class Quotation:
    """A quotation as Markdown.

    `quoted` is the extract that is shown as `text`, and `sentence` its best sentence; `share` is that
    sentence's score divided by the score of the best sentence overall. `is_of_best` says that the quotation
    is from the passage that the search ranks first, although another passage has a better sentence.
    `all_rows` is the number of rows of the whole table if the source has only a part of it (negative if
    unknown), otherwise 0.
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
        """The document and the outermost heading."""
        return self.source.sourcefile, chapter_of(self.source)

    @cached_property
    def held(self) -> QuotedText:
        """The quoted text with title and heading, in the form for checks of answers.

        Of a table, only the matching rows count; of a long list, only the best item: other rows and items do
        not make the answer more certain.
        """
        quoted = self.quoted
        lines = quoted.matching or quoted.lines
        if quoted.kind == "list" and sum(map(len, lines)) > MAX_CHARACTERS:
            lines = tuple(line for line in lines if self.sentence.text in line) or lines
        asked_for = " ".join((quoted.lead, *lines)).strip()
        return QuotedText(self.question, (asked_for, self.source.title, self.source.heading))

    @cached_property
    def answers(self) -> bool:
        return answers(self.held)

    @cached_property
    def has_all(self) -> bool:
        """Whether it answers the question and contains everything that the question names."""
        return answers(self.held, share=1.0)

    @property
    def _is_row(self) -> bool:
        return self.quoted.kind == "table" and self.sentence.text in self.quoted.lines

    @cached_property
    def has_amount(self) -> bool:
        """Whether the sentence or the quoted text after it has the amount asked for.

        If the sentence is a table row, only the row counts. True if the question asks for no amount.
        """
        amount = self.question.amount
        if amount is None:
            return True
        text = (
            self.sentence.text if self._is_row else self.source.content[self.sentence.start : self.quoted.end]
        )
        return amount.is_in(text)

    @cached_property
    def _said(self) -> str:
        """The quoted text (of a table, only the best row) and the inner heading."""
        quoted = self.quoted
        text = self.sentence.text if self._is_row else " ".join((quoted.lead, *quoted.lines))
        return f"{text} {self.source.heading.rpartition('›')[2]}"

    @cached_property
    def has_added(self) -> bool:
        """Whether it has most words, and all numbers and letters, of the added term.

        The term is what a follow-up question adds; True if there is none. Synonyms of words count.
        """
        question = self.question
        return self.held.known(question.added, held_stems(self._said)) >= MIN_ADDED * len(
            question.added
        ) and all(has_mark(mark, self._said) for mark in question.added_marks)

    @cached_property
    def is_named_row(self) -> bool:
        """Whether a follow-up question (“and dinner?”) names this row, and nothing that it lacks."""
        question = self.question
        if not (question.subject and self._is_row):
            return False
        own = replace(question, earlier="", subject="").named
        words = own.union(*map(question.other_words, own))
        names = (name - weak_stems() for name in names_in(self.sentence.text).values())
        return any(name and name <= words for name in names) and self.held.known(own) == len(own)

    @cached_property
    def names_added(self) -> bool:
        """Whether it has most words of the added term literally, not only as synonyms."""
        added = self.question.added
        return self.has_added and len(added & held_stems(self._said)) >= MIN_ADDED * len(added)

    @cached_property
    def is_about_added(self) -> bool:
        """Whether it has the added term, the amount asked for, and most words of `Question.kept`.

        For a row, half of these words are enough, because its columns may name the rest; if the question
        names the row, none is needed. Also True if the sentence says that the rule does not apply to the
        term; False if no term is added.
        """
        before, held = self.question.kept, held_stems(self._said) | self.held.headings
        known = 2 * self.held.known(before, held)
        keeps = self.is_named_row or known > len(before) or (self._is_row and known == len(before))
        return self.excludes_added or (self.question.adds and self.has_added and self.has_amount and keeps)

    @cached_property
    def excludes_added(self) -> bool:
        """Whether its sentence says that the rule does not apply to the added term.

        An example is “Crews do not carry leave over.” for “When must carried leave be used? And for crews?”
        """
        question, words = self.question, held_stems(self.sentence.text)
        added, before = question.added, question.kept
        with_heading = words | held_stems(self.source.heading.rpartition("›")[2])
        return (
            bool(added and before and not self._is_row)
            and self.held.known(added, words) >= MIN_ADDED * len(added)
            and 2 * self.held.known(before, with_heading) >= len(before)
            and states_negation(self.sentence.text)
        )

    @property
    def is_part_of_explanation(self) -> bool:
        """Whether the rest of its section may explain what its sentence does not.

        This is so if the question asks how to do something, or asks why or whether and has words that the
        sentence lacks.
        """
        question = self.question
        held = self.held.known(question.named, held_stems(self.sentence.text))
        return question.asks_how_to or (question.asks_explanation and held < len(question.named))

    @property
    def is_part_of_table(self) -> bool:
        quoted = self.quoted
        return quoted.kind == "table" and (bool(self.all_rows) or len(quoted.lines) < quoted.rows)

    @cached_property
    def needs_other_rows(self) -> bool:
        """Whether all quoted rows together have more of the named words than the best row by itself."""
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

        The innermost heading must have the question word and at least one named word; title and all headings
        together must have all named words. If the question asks how to do something, the innermost heading
        must have all named words instead: “Merging terms”.
        """
        question, inner = self.question, self.source.heading.rpartition("›")[2]
        if question.asks_how_to:
            return 0 < len(question.named) == self.held.known(question.named, held_stems(inner))
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
        """Whether this quotation contains the sentence."""
        is_here = sentence.passage == self.sentence.passage
        return is_here and self.quoted.start <= sentence.start < self.quoted.end

    @property
    def below_heading(self) -> "Quotation":
        """A quotation from the beginning of the passage, up to the maximum length.

        If the question asks how to do something and the passage has steps, the quotation is the text around
        the first step instead. A table, or a quotation from a passage that begins with one, is unchanged.
        """
        content = self.source.content
        spans = [span for span in spans_of(content) if not span.is_heading]
        steps = [span for span in spans if span.is_item] if self.question.asks_how_to else []
        starts = (span.start for span in steps or spans)
        first = next((each for start in starts if (each := extract(content, start))), self.quoted)
        return self if "table" in (first.kind, self.quoted.kind) else replace(self, quoted=first).in_passage

    @property
    def in_passage(self) -> "Quotation":
        """The quotation, extended by the surrounding text of its passage."""
        quoted = with_surroundings(self.source.content, self.quoted)
        return replace(self, quoted=quoted, text=markdown(quoted, self.source, self.all_rows))

    @property
    def in_short_section(self) -> "Quotation":
        """The paragraph with its whole passage if that is short; otherwise unchanged."""
        if len(self.source.content.strip()) > MAX_PASSAGE or self.quoted.kind != "text":
            return self
        whole = self.in_passage
        ends = self.quoted.start, self.quoted.end
        return self if (whole.quoted.start, whole.quoted.end) == ends else whole

    @property
    def in_section(self) -> "Quotation":
        """The quotation with its whole passage if that is a short section; otherwise unchanged."""
        content = self.source.content.strip()
        if len(content) > MAX_FIRST_PASSAGE:
            return self
        quoted = with_surroundings(self.source.content, self.quoted, MAX_FIRST_PASSAGE)
        return replace(self, quoted=quoted, text=markdown(quoted, self.source, self.all_rows))

    def without(self, shown: set[ShownRow]) -> str:
        """The text without the rows in `shown`; empty if nothing remains.

        Adds the quotation's rows to `shown`.
        """
        if self.quoted.kind != "table":
            return self.text
        place = self.source.sourcefile, self.source.heading
        before = {line for line in self.quoted.lines if (*place, line) in shown}
        shown.update((*place, line) for line in self.quoted.lines)
        rest = without_rows(self.quoted, before)
        return markdown(rest, self.source, self.all_rows) if rest else ""

    def differs_from(self, first: "Quotation") -> bool:
        """Whether it is another answer (`is_another_answer`), and its sentence has a different text."""
        return self.sentence.text != first.sentence.text and self.is_another_answer(first)

    def is_another_answer(self, first: "Quotation") -> bool:
        """Whether it is from another document or chapter, and gives no number that `first` gives.

        Numbers are only compared if the question asks for an amount. If `first` has a number of the counted
        thing (“how many”), this quotation must also have one.
        """
        if self.chapter == first.chapter or first.sentence.is_counted > self.sentence.is_counted:
            return False
        return not (
            self.question.asks_amount and numbers_of(self.sentence.text) & numbers_of(first.sentence.text)
        )


def chapter_of(source: SourceView) -> str:
    """The outermost heading."""
    return source.heading.partition("›")[0]


def quotations_of(
    question: Question, prompt: Prompt, found: Sequence[Sentence], sources: Sequence[SourceView]
) -> list[Quotation]:
    """The best sentences with their context: at most `QUOTATIONS`, without overlaps.

    Leaves out what other agents have already quoted. If the first quotation is not from the passage that the
    search ranks first, the second one is, unless the best sentence of that passage is much worse.
    """
    quotations: list[Quotation] = []
    taken: dict[int, list[tuple[int, int]]] = {}
    of_best = _of_best_passage(found, sources)
    ordered = [*found[:1], *([of_best] if of_best else []), *(each for each in found[1:] if each != of_best)]
    for sentence in ordered:
        places = taken.setdefault(sentence.passage, [])
        if any(start <= sentence.start < end for start, end in places):
            continue
        if any(sentence.text in known.quoted.lines for known in quotations if known.quoted.kind == "list"):
            continue  # both passages have a part of the same list
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
            # The presenter's notes may be mere instructions: quote them with the rest of the slide.
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
    """The stems of the words that the question names and the text contains."""
    return question.named & held_stems(text)


def _of_best_passage(found: Sequence[Sentence], sources: Sequence[SourceView]) -> Sentence | None:
    """The best sentence of the passage that the search ranks first.

    None if the best sentence overall is from that passage, or is much better.
    """
    best = max(range(len(sources)), key=lambda place: sources[place].score, default=0)
    of_best = next((each for each in found[1:] if each.passage == best), None)
    if of_best is None or found[0].passage == best or of_best.score < OF_BEST_PASSAGE * found[0].score:
        return None
    return of_best
