"""What the passages say about one question, computed once for all forms of answers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django.utils.functional import cached_property

from chat.llm.chat_model import Prompt
from chat.quoting.questions.amounts import numbers_of
from chat.quoting.questions.asked_files import AskedFiles
from chat.quoting.questions.question import Question
from chat.quoting.table_rows.journeys import FoundJourneys
from chat.quoting.table_rows.opening_hours import open_rows
from chat.quoting.table_rows.quoted_tables import SelectedRows, rows_alike, rows_in_order, selected_rows
from chat.quoting.table_rows.row_conditions import excludes
from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems
from ingestion.search.sentence_splitting import spans_of

from .candidates import Quotation, ShownRow, quotations_of
from .confidence import MIN_LEAD, confidence, is_sure
from .sentence_selection import Sentence, best_sentences, sentences_of_each

CLOSEST = 4  # number of passages that are quoted if nothing answers
NOT_FAR = 0.6  # share of the best search score that a passage needs if `closest` does not put it first
LOOKED_AT = 12  # sentences considered (as many again for each contribution); several may be in one quotation
AGREES = 0.95  # a passage with at least this share of the best search score counts as preferred
# A quotation with everything asked for is moved to the front if it has this share of the best sentence's
# score, and is from a preferred passage while the first one is not, …
PREFERRED = 0.85
# … or if it has this share of that score, and the first one lacks the type of answer asked for.
NEARLY_BEST = 0.9
RATHER_CERTAIN = 0.7  # confidence that the quotation needs in both cases
CERTAIN = 0.9  # confidence that a quotation needs for NEARLY_AGREES to apply
# A place is contested if its search score leads by less than MIN_AHEAD, or if at least MANY_NEAR passages of
# other places have NEAR of its score.
MIN_AHEAD = 0.05
MANY_NEAR = 3
NEAR = 0.8
# Used instead of AGREES if the quotation has everything that was asked for, including the amount.
NEARLY_AGREES = 0.7


@dataclass(frozen=True)
class Findings:
    """The best sentences for a question, and conclusions for the answer.

    - `files`: the files that the answer should all quote
    - `other_rows`: table rows about another name, weekday or direction than the one asked for
    - `questions`: the number of questions that were asked at once
    - `shown`: table rows that were quoted for the preceding questions; those of this answer are added
    - `journeys`: timetable rows that the question asks for
    """

    question: Question
    prompt: Prompt
    passages: Sequence[SourceView]
    files: AskedFiles
    other_rows: Collection[str]
    questions: int
    shown: set[ShownRow]
    journeys: FoundJourneys

    @cached_property
    def _judged(self) -> tuple[list[Sentence], Sequence[SourceView]]:
        count = LOOKED_AT * (1 + len(self.prompt.contributions))
        found = best_sentences(self.question, self.passages, count, self.other_rows)
        return _about_the_name(found, self.passages, self.other_rows)

    @property
    def sentences(self) -> list[Sentence]:
        return self._judged[0]

    @property
    def sources(self) -> Sequence[SourceView]:
        """The passages.

        The score of a passage is 0 if all of its best sentences are in `other_rows`.
        """
        return self._judged[1]

    @cached_property
    def _in_order(self) -> Sequence[Quotation]:
        return quotations_of(self.question, self.prompt, self.sentences, self.sources)

    @cached_property
    def quotations(self) -> Sequence[Quotation]:
        """The quotations: those about an added term first, then those with the amount asked for.

        Otherwise the best ones come first. If the first quotation is not from a preferred passage, a nearly
        equal one from such a passage that has everything asked for is moved to the front. If the first one
        then has the named words but not the type of answer asked for, any nearly equal one that has
        everything asked for is moved to the front.
        """
        ordered = sorted(
            self._in_order,
            key=lambda each: (*self.distance_from_added(each), not each.has_amount),
        )
        if ordered and not self._is_preferred(ordered[0]):
            preferred = next(
                (each for each in ordered if self._is_preferred(each) and self._has_all(each)), None
            )
            if preferred:
                ordered.sort(key=lambda each: each is not preferred)
        if ordered and self._is_of_another_type(ordered[0]):
            other = next(
                (each for each in ordered if each.share >= NEARLY_BEST and self._has_all(each)), None
            )
            if other:
                ordered.sort(key=lambda each: each is not other)
        return ordered

    def distance_from_added(self, quotation: Quotation) -> tuple[bool, ...]:
        """A sort key by which quotations about the added term of a follow-up question come first."""
        is_other = quotation.sentence.text in self.other_rows and self.question.adds
        return is_other, not quotation.is_about_added, not quotation.names_added, not quotation.has_added

    @property
    def first(self) -> Quotation:
        return self.quotations[0]

    @cached_property
    def closest(self) -> Sequence[Quotation]:
        """Passages to quote if nothing answers: that of the best quotation, then others by search rank.

        If only selected documents are searched, passages with the kind of amount asked for, such as a price,
        come first, because a short document may use other words than the question.
        """
        first = self.first.sentence.passage if self.quotations else 0
        least = NOT_FAR * max((source.score for source in self.sources), default=0.0)
        closest: list[Quotation] = []
        sentences = sentences_of_each(self.question, self.passages, self.other_rows)
        amount = self.question.amount if self.prompt.narrowed else None
        fits = [bool(amount and amount.kind and amount.is_stated(each.content)) for each in self.passages]
        for place, found in sorted(
            enumerate(sentences), key=lambda each: (not fits[each[0]], each[0] != first)
        ):
            if place != first and not fits[place] and self.sources[place].score < least:
                continue
            if amount and fits[place]:
                found.sort(key=lambda each: not amount.is_stated(each.text))
            best = quotations_of(self.question, self.prompt, found, self.sources)[:1]
            if not any(best and best[0].sentence.text in known.text for known in closest):
                closest += [each.in_passage for each in best]
        return closest[:CLOSEST]

    @cached_property
    def selected(self) -> SelectedRows:
        """The rows that the question selects by conditions."""
        found = [each.text for each in self.sentences]
        question, rows = self.question, self.prompt.table_rows
        return selected_rows(question.own, self.passages, rows, found, question.other_words)

    @cached_property
    def open_then(self) -> tuple[SelectedRows, bool]:
        """The rows of opening hours at the time asked for, and whether they are certainly the answer."""
        found = open_rows(self.question.original or self.question.own, self.question.own, self.passages)
        if not found.rows:
            return SelectedRows(), False
        rows = rows_in_order(found.rows, self.passages, self.prompt.table_rows)
        return rows, found.is_clear and rows.is_whole

    @cached_property
    def timetable(self) -> SelectedRows:
        """The rows of timetables that are asked for."""
        if not self.journeys.rows:
            return SelectedRows()
        return rows_in_order(self.journeys.rows, self.passages, self.prompt.table_rows)

    @cached_property
    def is_timetable_certain(self) -> bool:
        """Whether no other row can be meant.

        `journeys.is_clear` must be true. In addition, either the whole table was found, or the question asks
        for the first or last journey, and all rows are from the best search results and have that
        word, such as “last”, themselves.
        """
        if not self.journeys.is_clear or self.timetable.is_whole:
            return self.journeys.is_clear
        best = max(source.score for source in self.sources)
        labels = {source.label for source in self.sources if source.score == best}
        rows, order = self.journeys.rows, self.question.in_order
        found = {each.label for each in self.passages if any(row in each.content for row in rows)}
        return bool(order) and found <= labels and all(order <= held_stems(row) for row in rows)

    @cached_property
    def rows_alike(self) -> SelectedRows:
        """The row of the first quotation, with other rows that have the same name.

        Empty if the quotation is not a part of a table, if the question does not name the row, or if there
        are no such rows.
        """
        if not self.quotations or not self.first.is_part_of_table:
            return SelectedRows()
        row = self.first.sentence.text
        others = {*self.other_rows, *(text for *_, text in self.shown)}
        return rows_alike(self.question.text, row, self.passages, self.prompt.table_rows, others)

    @cached_property
    def is_answered(self) -> bool:
        """Whether the first quotation clearly answers the question."""
        first = self.first
        # The best sentence counts here even if it was left out because another agent has quoted it.
        best = self.sentences[0] if first is self._in_order[0] else first.sentence
        return (
            first.has_amount
            and (not first.question.adds or (first.names_added and first.is_about_added))
            and not (first.is_part_of_table and (self.selected.needs_all or self.selected.text))
            and not (first.is_part_of_table and not self.question.in_order <= held_stems(first.sentence.text))
            and not (first.is_part_of_table and self._is_excluded(first.sentence.text))
            and first.sentence.text not in self.other_rows
            and self._agrees(best)
            and first.answers
            and is_sure(first.held, best.score, self.prompt.fit)
        )

    @cached_property
    def is_contested(self) -> bool:
        """Whether the search found other places that fit nearly as well as that of the first quotation.

        A rule and its exceptions, or several parts of a manual, often have the same words. False for
        several questions and after other agents' contributions, because search scores cannot be compared
        there. Also False for a row of a table, which is found by its name, and for a section whose heading
        asks the question.
        """
        if self.questions > 1 or self.prompt.contributions:
            return False
        if self.first.quoted.kind == "table" or self.first.is_asked_by_heading:
            return False
        own = self.first.source
        others = [
            each.score
            for place, each in enumerate(self.sources)
            if each.label != own.label and self._contradicts(place)
        ]
        near = sum(score >= NEAR * own.score for score in others)
        return own.score - max(others, default=0.0) < MIN_AHEAD or near >= MANY_NEAR

    def _is_excluded(self, row: str) -> bool:
        """Whether the question may exclude the row (“outside Paris”), and the row itself excludes nothing."""
        return excludes(self.question.original or self.question.own) and not excludes(row)

    def _contradicts(self, place: int) -> bool:
        """Whether a passage may answer otherwise than the first quotation.

        If an amount is asked for, the passage must have one, its best sentence must have at least as many
        named words as that of the first quotation, and no number of the latter may be in its best sentences.
        """
        amount = self.question.amount
        if not amount:
            return True
        first = self.first.sentence.text
        texts = [each.text for each in self.sentences if each.passage == place]
        known = self.first.held.known
        best = held_stems(texts[0]) if texts else frozenset[str]()
        if known(self.question.named, best) < known(self.question.named, held_stems(first)):
            return False
        is_same = any(not numbers_of(first).isdisjoint(numbers_of(text)) for text in texts)
        return amount.is_stated(self.sources[place].content) and not is_same

    def _agrees(self, sentence: Sentence) -> bool:
        """Whether the sentence is from one of the best search results, with two exceptions below.

        If not, the search or the selection of the sentence may be wrong. The results of several questions are
        interleaved, so the first `questions` passages include the best result of each question.
        """
        best = max(source.score for source in self.sources)
        own = self.sources[sentence.passage].score
        if sentence.passage < self.questions or own >= AGREES * best:
            return True
        first = self.first
        # The search finds parts of a long table by its column names, so only the words can select the row.
        best_labels = {source.label for source in self.sources if source.score == best}
        if first.is_part_of_table and first.has_all and self.sources[sentence.passage].label in best_labels:
            return True
        # A passage with a lower score is accepted if it certainly has the amount and all else asked for.
        return (
            self.question.amount is not None
            and first.has_all
            and first.held.known_as_asked >= len(self.question.named)  # not only as synonyms
            and 2 * first.held.known(self.question.named, held_stems(first.held.texts[0]))
            > len(self.question.named)  # and not only in the headings
            and own >= NEARLY_AGREES * best
            and confidence(first.held, sentence.score, self.prompt.fit) >= CERTAIN
        )

    def below_heading(self, quotation: Quotation) -> Quotation:
        """What is below the quotation's heading; see `Quotation.below_heading`.

        If the question asks how to do something, the first passage of that section with steps is quoted,
        because a later one may have the most words of the question.
        """
        own = quotation.source
        with_steps = [
            (source.passage_id, place)
            for place, source in enumerate(self.sources if self.question.asks_how_to else ())
            if (source.label, source.heading) == (own.label, own.heading)
            and any(span.is_item for span in spans_of(source.content))
        ]
        if with_steps:
            _, place = min(with_steps)
            sentence = replace(quotation.sentence, passage=place)
            quotation = replace(quotation, source=self.sources[place], sentence=sentence)
        return quotation.below_heading

    def leads(self, other: Quotation, first: Quotation) -> bool:
        """Whether `other` should be quoted before `first`.

        This is so if the search ranks it first, clearly before `first`, and if it has at least as many named
        words literally as `first`, while neither has all of them. If an amount is asked for, a passage of the
        same document without one does not lead. No passage leads for a follow-up question or a translated
        one, or if only a part of the documents is searched.
        """
        scores = [self.sources[each.sentence.passage].score for each in (other, first)]
        words = [each.held.known_as_asked for each in (other, first)]
        is_best = scores[0] == max(source.score for source in self.sources)
        return (
            is_best
            and not (
                first.has_amount > other.has_amount and other.source.sourcefile == first.source.sourcefile
            )
            and not (self.question.subject or self.question.is_translated or self.prompt.narrowed)
            and scores[0] - scores[1] >= MIN_LEAD
            and len(self.question.named) > words[0] >= words[1]
        )

    def _is_preferred(self, quotation: Quotation) -> bool:
        """Whether a quotation is from one of the best search results."""
        place = quotation.sentence.passage
        return place < self.questions or self.sources[place].score >= AGREES * max(
            source.score for source in self.sources
        )

    def _is_of_another_type(self, quotation: Quotation) -> bool:
        """Whether a quotation has all named words, but not the type of answer asked for."""
        named = self.question.named
        return not quotation.answers and quotation.held.known(named) == len(named)

    def _has_all(self, quotation: Quotation) -> bool:
        return (
            quotation.has_amount
            and quotation.share >= PREFERRED
            and quotation.has_all
            and confidence(quotation.held, quotation.sentence.score, self.prompt.fit) >= RATHER_CERTAIN
        )

    def known(self, named: frozenset[str] | None = None) -> float:
        """The share of `named` (by default, the question's named words) in the first quotation."""
        words = self.question.named if named is None else named
        return self.first.held.known(words) / len(words) if words and self.quotations else 0.0

    def quoted(self, quotations: Sequence[Quotation]) -> tuple[str, ...]:
        """The texts of the quotations, without rows that were already shown."""
        return tuple(text for each in quotations if (text := each.without(self.shown)))


def _about_the_name(
    found: list[Sentence], passages: Sequence[SourceView], others: Collection[str]
) -> tuple[list[Sentence], Sequence[SourceView]]:
    """The found sentences except rows in `others`, and all passages.

    A passage for which only such rows were found gets the score 0. Nothing changes if all sentences are such
    rows.
    """
    kept = [sentence for sentence in found if sentence.text not in others]
    if not kept or len(kept) == len(found):
        return found, passages
    other = {sentence.passage for sentence in found} - {sentence.passage for sentence in kept}
    return kept, [
        replace(passage, score=0.0) if place in other else passage for place, passage in enumerate(passages)
    ]
