"""The forms of answers made of quotations, in the order in which they are tried.

The forms are: rows of timetables and opening hours, rows of other tables that meet conditions, quotations
from each file, numbered parts, and sentences with their context. If a form finds nothing, the next one is
tried; if none answers, the closest passages are quoted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chat.quoting.table_rows.row_conditions import selects_rows
from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems, weak_stems
from ingestion.search.sentence_splitting import spans_of
from ingestion.search.table_rows import cells_of

from .candidates import SECOND, Quotation, quotations_of
from .confidence import is_close, is_likely, is_preferred
from .extracts import extract
from .findings import Findings
from .numbered_parts import asks_for_all, numbered_parts
from .quoted_answer import ADDED_MISSING, OTHERS, QuotedAnswer
from .rendering import markdown

QUOTATIONS = 2
# Each share below is a minimum. “The best score” is that of the best sentence.
FILE_SCORE = 0.8  # share of the best score in a file that the question names, for further quotations from it
SECOND_OF_ALL = 0.94  # share of the best score for a second quotation, if the first has everything asked for
OF_FIRST = 0.8  # share of the first passage's search score for a passage with at most one named word
BEHIND = 2  # number of passages that are shown after one that may answer
OF_OTHER_FILE = 0.5  # share of the best score for a quotation from a file that the question does not name


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """A form of answers: whether a question asks for it, and how to answer in it.

    `answer` returns None if the passages have no such answer; otherwise `QuotedAnswer.is_sure` says whether
    the answer is certain.
    """

    name: str
    is_asked: Callable[[Findings], bool]
    answer: Callable[[Findings], QuotedAnswer | None]


def quoted_in_best_form(findings: Findings) -> QuotedAnswer:
    """The answer in the first form that fits, or the closest passages."""
    forms = ANSWER_FORMS if findings.quotations else ()
    answers = (form.answer(findings) for form in forms if form.is_asked(findings))
    answer = next((answer for answer in answers if answer), None) or _closest_passages(findings)
    return replace(answer, is_sure=False, is_likely=False) if _has_wrong_way(answer, findings) else answer


# --- Rows that a question selects by conditions ---


def _asks_selected_rows(findings: Findings) -> bool:
    # A follow-up question such as “and on floor 3?” may rely on conditions of earlier questions.
    return not findings.question.subject and selects_rows(findings.question.own)


def _selected_rows(findings: Findings) -> QuotedAnswer | None:
    selected = findings.selected
    if not selected.text or any(selected.text in each.text for each in findings.prompt.contributions):
        return None
    return QuotedAnswer((selected.text,), not selected.needs_all, is_part=not selected.is_whole)


# --- Rows of timetables and opening hours ---


def _timetable_rows(findings: Findings) -> QuotedAnswer | None:
    """The rows for the journey asked for; the closest rows if it is unclear or no row fits.

    If the question names a date, the answer is uncertain, because a weekly timetable does not say whether the
    date is in its season.
    """
    rows = findings.timetable
    if not rows.text or any(rows.text in each.text for each in findings.prompt.contributions):
        return None
    findings.shown.update(rows.rows)
    is_likely = findings.journeys.is_met and rows.is_whole
    return QuotedAnswer((rows.text,), findings.is_timetable_certain, is_likely=is_likely)


def _open_rows(findings: Findings) -> QuotedAnswer | None:
    """The rows of opening hours that include the time asked for."""
    rows, is_certain = findings.open_then
    if not rows.text or any(rows.text in each.text for each in findings.prompt.contributions):
        return None
    findings.shown.update(rows.rows)
    return QuotedAnswer((rows.text,), is_certain)


def _has_wrong_way(answer: QuotedAnswer, findings: Findings) -> bool:
    """Whether the answer shows a timetable row for the opposite direction."""
    lines = (" | ".join(cells_of(row).values()) for row in findings.journeys.wrong_way)
    return any(line in text for line in lines for text in answer.texts)


# --- A quotation from each file ---


def _asks_each_file(findings: Findings) -> bool:
    return len(findings.files.files) > 1


def _each_file(findings: Findings) -> QuotedAnswer | None:
    """Quotations from each file; None if fewer than two files have one."""
    is_named = findings.files.are_named
    of_files: list[Sequence[Quotation]] = []
    for file in findings.files.files:
        of_file = [each for each in findings.sentences if findings.sources[each.passage].sourcefile == file]
        quotations = quotations_of(findings.question, findings.prompt, of_file, findings.sources)
        if is_named:
            kept = _for_named_file(findings, quotations)
        else:
            kept = _for_chosen_file(findings, quotations, [first for (first, *_) in of_files])
        if kept:
            of_files.append(kept)
    if len(of_files) < 2:
        return None
    of_files.sort(key=lambda kept: -kept[0].sentence.score)
    first = of_files[0][0]
    is_sure = findings.is_answered or (is_named and not first.is_part_of_table and first.answers)
    texts = findings.quoted([each for kept in of_files for each in kept])
    return QuotedAnswer(texts, is_sure, is_several=True)


def _for_named_file(findings: Findings, quotations: Sequence[Quotation]) -> Sequence[Quotation]:
    """The best quotations (at most QUOTATIONS) from a file that the question names.

    Further quotations must be nearly as good as the file's best sentence, or have words of the question that
    the first one lacks.
    """
    known = held_stems(quotations[0].text) if quotations else frozenset[str]()
    more = findings.question.stems - weak_stems() - known
    kept = [
        each for each in quotations if each.share >= FILE_SCORE or not more.isdisjoint(held_stems(each.text))
    ]
    return kept[:QUOTATIONS]


def _for_chosen_file(
    findings: Findings, quotations: Sequence[Quotation], others: Sequence[Quotation]
) -> Sequence[Quotation]:
    """The first quotation if it answers, is good enough, and differs from those of other files.

    The file is in the selected scope, or is one of several editions; the question does not name it.
    """
    least = OF_OTHER_FILE * findings.sentences[0].score
    return [
        each
        for each in quotations[:1]
        if each.sentence.score >= least and each.answers and all(map(each.differs_from, others))
    ]


# --- The numbered parts of something ---


def _asks_numbered_parts(findings: Findings) -> bool:
    return asks_for_all(findings.question.own) and findings.is_answered


def _numbered_parts(findings: Findings) -> QuotedAnswer | None:
    passages = findings.passages
    documents = [each.document_id for each in passages]
    start = findings.first.sentence.passage
    parts = numbered_parts(findings.question.own, passages, documents, start)
    if not parts:
        return None
    # The parts seem complete if their numbers run from 1 without a gap and other passages were found, too.
    numbers = sorted(set(parts.values()))
    has_all = numbers == list(range(1, len(numbers) + 1)) and len(parts) < len(passages)
    alike = findings.rows_alike
    findings.shown.update(alike.rows)
    texts = (*_texts(alike.text), *_parts_quoted(parts, passages))
    return QuotedAnswer(texts, is_sure=True, is_part=not (has_all and alike.is_whole))


def _parts_quoted(parts: Iterable[int], passages: Sequence[SourceView]) -> list[str]:
    """Quote the passages of numbered parts from their beginnings, below their headings."""
    quoted = []
    for place in parts:
        content = passages[place].content
        starts = (span.start for span in spans_of(content) if not span.is_heading)
        found = next((each for start in starts if (each := extract(content, start))), None)
        if found:
            quoted.append(markdown(replace(found, needs_heading=True), passages[place], 0))
    return quoted


# --- Sentences with their context ---


def _sentences(findings: Findings) -> QuotedAnswer:
    """The first quotation, and others that are nearly as good.

    If the first one's place is contested (`Findings.is_contested`) and the others are no alternative answers,
    it counts only as a possible answer.
    """
    first, *others = findings.quotations
    has_all = first.has_all
    least = SECOND_OF_ALL if has_all else SECOND
    kept = [first, *(each for each in others if each.is_of_best or each.share >= least)][:QUOTATIONS]
    # If one place has everything that was asked for, a place with less is not an alternative.
    is_several = any(each.is_another_answer(first) and (not has_all or each.has_all) for each in kept)
    alike = findings.rows_alike
    findings.shown.update(alike.rows)
    if first.is_asked_by_heading:  # Everything below that heading answers.
        whole = findings.below_heading(first)
        kept = [whole, *(each for each in kept if not whole.has(each.sentence))]
    elif first.is_part_of_explanation:
        whole = first.in_short_section
        kept = [whole, *(each for each in kept if not whole.has(each.sentence))]
    texts = (*_texts(alike.text), *findings.quoted(kept))
    if findings.is_contested and not is_several:
        behind = [each for each in findings.closest if not any(one.has(each.sentence) for one in kept)]
        if further := findings.quoted(behind[:BEHIND]):
            texts = (*texts, OTHERS, *further)
        return QuotedAnswer(texts, is_sure=False, is_likely=True, is_part=not alike.is_whole)
    return QuotedAnswer(texts, True, is_several, is_part=not alike.is_whole)


# --- The closest passages, if nothing answers ---


def _closest_passages(findings: Findings) -> QuotedAnswer:
    """Quotations of `Findings.closest`, reordered for the question; no texts if none is close."""
    kept = list(findings.closest)
    if not any(is_close(each.held, findings.prompt.fit) for each in kept):
        return QuotedAnswer((), is_sure=False)
    if kept[0].is_for_others:
        own = next((each for each in kept if not each.is_for_others and each.answers), kept[0])
        kept.sort(key=lambda each: each is not own)
    alike = findings.rows_alike
    findings.shown.update(alike.rows)
    kept.sort(key=findings.distance_from_added)
    entity = findings.question.entity
    if entity:  # “Whom do I call?”
        kept.sort(key=lambda each: not any(map(entity.has.search, each.held.texts)))
    may_answer = not alike.text and _may_answer(findings, kept[0], is_only=len(kept) == 1)
    leading = next((each for each in kept if findings.leads(each, kept[0])), None)
    if leading and not (alike.text or may_answer):
        kept.sort(key=lambda each: each is not leading)
    kept = [kept[0].in_section, *(each for each in kept[1:] if not _is_stray(findings, each, kept[0]))]
    if may_answer:
        first, *others = findings.quoted(kept[: 1 + BEHIND]) or ("",)
        texts = (first, OTHERS, *others) if others else _texts(first)
        return QuotedAnswer(texts, is_sure=False, is_likely=bool(first))
    texts = (*_texts(alike.text), *findings.quoted(kept))
    if _lack_added(findings, texts):
        texts = (ADDED_MISSING, *texts)
    return QuotedAnswer(texts, is_sure=False, is_part=not alike.is_whole)


def _lack_added(findings: Findings, texts: Sequence[str]) -> bool:
    """Whether none of the quotations has any word of the term that a follow-up question adds."""
    added, held = findings.question.added, findings.closest[0].held
    return bool(added and texts) and not any(held.known(added, held_stems(text)) for text in texts)


def _is_stray(findings: Findings, other: Quotation, first: Quotation) -> bool:
    """Whether a passage of another document has at most one named word, and a low search score.

    Named words are those of `Question.named`; the first passage must have more than one. False if only a part
    of the documents is searched.
    """
    named = findings.question.named
    return (
        not findings.prompt.narrowed
        and other.source.sourcefile != first.source.sourcefile
        and other.source.score < OF_FIRST * first.source.score
        and other.held.known(named) <= 1 < first.held.known(named)
    )


def _may_answer(findings: Findings, closest: Quotation, *, is_only: bool) -> bool:
    """Whether the closest passage passes all checks for a passage that may answer.

    Several checks are for tables, in which a row can have all words of the question and still be the wrong
    one.
    """
    question, sentence = findings.question, closest.sentence
    selected = findings.selected if closest.is_part_of_table else None
    others = [each.score for each in findings.sources if each.label != closest.source.label]
    lead = closest.source.score - max(others, default=0.0)
    fit = findings.prompt.fit
    return (
        (
            is_likely(closest.held, closest.source.score, lead)
            or is_preferred(closest.held, sentence.score, fit, lead, is_only=is_only)
            or closest.is_named_row
            or closest.excludes_added
        )
        and (closest.has_amount or closest.excludes_added)
        and (not question.adds or closest.names_added or closest.excludes_added)
        and not closest.is_for_others
        and sentence.text not in findings.other_rows
        and not (selected and (selected.needs_all or selected.text))
        and not (closest.is_part_of_table and not question.in_order <= held_stems(sentence.text))
        and not (closest.is_part_of_table and closest.needs_other_rows)
    )


def _texts(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


ANSWER_FORMS = (
    AnswerForm("timetable rows", lambda findings: bool(findings.journeys.rows), _timetable_rows),
    AnswerForm("open rows", lambda findings: not findings.question.subject, _open_rows),
    AnswerForm("selected rows", _asks_selected_rows, _selected_rows),
    AnswerForm("each file", _asks_each_file, _each_file),
    AnswerForm("numbered parts", _asks_numbered_parts, _numbered_parts),
    AnswerForm("sentences", lambda findings: findings.is_answered, _sentences),
)
