"""Answers without a language model: the best sentences of the documents, each with its citation."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.translation import gettext_noop

from chat.requests import EarlierMessage
from chat.sources import SourceView
from chat.statements import marks_by_rank
from chat.verification import verify
from chatsite.db.retry import retry_until_available
from ingestion.parsing.language import language_of
from ingestion.search.amounts import asks_amount, has_amount, numbers_of
from ingestion.search.audiences import is_for_outsiders
from ingestion.search.confidence import SURE, answers, confidence
from ingestion.search.extracts import Extract, extract, without_rows
from ingestion.search.named_rows import named_rows
from ingestion.search.numbered_parts import numbered_parts
from ingestion.search.rough_stems import held_stems, stems, weak_stems
from ingestion.search.sentence_splitting import split_sentences
from ingestion.search.sentences import (
    Sentence,
    best_sentences,
    shared_words,
)
from ingestion.search.translations import language_of as asked_language
from ingestion.search.translations import question_in_english
from ingestion.suggested_questions import questions_about, subject_of

from . import side_texts, table_notices
from .asked_files import AskedFiles, asked_files
from .chat_model import (
    Contribution,
    End,
    Part,
    Prompt,
    SearchQuery,
    Text,
)
from .followup_detection import context_of, leaned_on
from .question_parts import parts_of
from .quoted_tables import rows_alike, selected_rows, table_markdown

NOTHING_MORE = gettext_noop("There is nothing to add from the documents you may read.")
UNSURE = gettext_noop("No exact answer found. The closest passages:")
SEVERAL = gettext_noop("More than one place may answer this:")
PARTLY = gettext_noop("These are the parts that were found; there may be more:")
NOTICES = (UNSURE, SEVERAL, PARTLY, NOTHING_MORE)
QUOTATIONS = 2
CLOSEST = 3  # quotations if none of them clearly answers
CLOSEST_SCORE = 0.8  # share of the best sentence's score, for these
AGREES = 0.95  # of the best passage's score: the search and the choice of sentences agree
SURE_TRANSLATED = 0.9  # confidence from which the answer to a translated question is given as one
LOOKED_AT = 12  # sentences, some of them in the same place
SECOND = 0.85  # share of the best sentence's score, for a second quotation
SECOND_OF_ALL = 0.94  # the same if the first has everything that was asked for
OF_OTHER_FILE = 0.5  # the same for one of the files that were chosen
OF_BEST_PASSAGE = 0.7  # the same for the best sentence of the passage that the search finds best
OF_CITED, OF_OTHER = 0.3, 0.5  # of the question, in a heading of a cited or another document, to ask about it
MAX_HEADING = 160  # characters

_CAPTION = re.compile(
    r"^(?:(?:chapter|section|part|annex|appendix|kapitel|abschnitt)\s+)?[\d.\s§)(:-]+", re.IGNORECASE
)
_NUMBER = re.compile(r"\d{1,2}[.)]\s")


@dataclass(frozen=True, slots=True)
class Quoted:
    """Quotations as Markdown, whether the first clearly answers, whether they are from several places that
    may answer the same question, and whether they may be only some of the parts that are asked for."""

    texts: tuple[str, ...]
    is_sure: bool
    is_several: bool = False
    is_part: bool = False

    @property
    def notice(self) -> str:
        """The sentence above them; empty if they are the answer."""
        if not self.is_sure:
            return UNSURE
        return SEVERAL if self.is_several else PARTLY if self.is_part else ""


class QuotingModel:
    """Implements the model's interface with quotations of the sources."""

    name = "quotations"
    writes_json = False
    needs_sources = True
    notices: tuple[str, ...] = NOTICES

    def __init__(self, name: str = "") -> None:
        """Accepts any model name."""

    def text_for(self, sources: int) -> str | None:
        """The answer without a closer look at many sources; None if it is to quote them."""
        return None

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        text = self.text_for(len(prompt.sources))
        if text is None:
            quoted = await retry_until_available(quote, prompt)
            texts = list(quoted.texts)
            if not texts:
                texts = [NOTHING_MORE if prompt.contributions else prompt.nothing_found]
            elif quoted.notice and not prompt.contributions:
                texts.insert(0, quoted.notice)
            text = "\n\n".join(texts)
        words = re.findall(r"\s*\S+|\s+\Z", text)
        most = prompt.generation.max_tokens  # words count as tokens here
        if settings.QUOTING_WORDS_PER_SECOND:
            for word in words[:most]:
                yield Text(word)
                await asyncio.sleep(1 / settings.QUOTING_WORDS_PER_SECOND)
        else:
            yield Text("".join(words[:most]))
        yield End("stop" if most is None or len(words) <= most else "length")

    async def search_query(self, question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
        return search_query(question, earlier)

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        """Other questions that the passages answer, apart from those that the answer cites."""
        # Passages of a page share a label: an answer that cites the page need not cover all of it.
        ranks = marks_by_rank(verify(answer, prompt.sources))
        cited = {(each.sourcefile, _chapter(each)) for each in prompt.sources if each.rank in ranks}
        asked = " ".join([*leaned_on(prompt.question, prompt.earlier), prompt.question])
        asked_in = asked_language(prompt.question)
        answered = {subject_of(source.heading) for source in prompt.sources if source.rank in ranks}
        known = {prompt.question, *(turn.content for turn in prompt.earlier)}
        questions: dict[str, None] = {}
        for source in prompt.sources:
            if subject_of(source.heading, source.title) in {"", *answered}:
                continue
            language = language_of(source.content)
            if asked_in and language in {"english", "german"} and language != asked_in:
                continue
            if (source.sourcefile, _chapter(source)) not in cited:
                least = OF_CITED if source.sourcefile in dict(cited) else OF_OTHER
                if shared_words(asked, source.heading, prompt.synonyms) < least:
                    continue
            for question in questions_about(source.title, language, [(source.heading, source.content)]):
                if question not in known:
                    questions.setdefault(question)
        return list(questions)

    async def document_questions(self, title: str, text: str) -> list[str]:
        return []

    async def title(self, question: str) -> str:
        return side_texts.title_of(question)

    async def further_query(self, question: str, contributions: Sequence[Contribution]) -> str:
        return ""

    async def next_speaker(
        self, question: str, team: Sequence[tuple[str, str]], contributions: Sequence[Contribution]
    ) -> str:
        """In the order of the team."""
        return team[len(contributions)][0] if len(contributions) < len(team) else ""

    async def has_more(self, prompt: Prompt) -> bool:
        """Only for clear answers: a passage that is merely related adds nothing to an answer."""
        return (await retry_until_available(quote, prompt)).is_sure

    async def graded(self, question: str, passages: Sequence[str]) -> dict[int, float] | None:
        """None: no scoring of passages that was tried here ranks better than the search itself."""
        return None

    async def supported(
        self, passages: Sequence[str], statements: Sequence[tuple[int, str]]
    ) -> dict[int, bool]:
        return {}


def search_query(question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
    """The question with those that it refers to, and with others that may contain its subject as context."""
    text = " ".join([*leaned_on(question, earlier), question])
    asked = _questions(question, earlier)
    parts = tuple(search_query(part, before) for part, before in asked) if len(asked) > 1 else ()
    return SearchQuery(text, context_of(question, earlier), parts)


def _questions(question: str, earlier: Sequence[EarlierMessage]) -> list[tuple[str, list[EarlierMessage]]]:
    """The questions that this one consists of, each with the preceding ones."""
    parts = parts_of(question)
    return [
        (part, [*earlier, *(EarlierMessage("user", before) for before in parts[:place])])
        for place, part in enumerate(parts)
    ]


def quote(prompt: Prompt) -> Quoted:
    """The best sentences of the sources with their context, for each question of the prompt."""
    passages = [replace(source, content=source.model_text) for source in prompt.sources]
    # Of all of them, because a table alone may show no language.
    is_english = language_of("\n".join(each.content for each in passages)) == "english"
    held = held_stems(" ".join(f"{each.title} {each.heading} {each.content}" for each in passages))

    def in_words_of_sources(text: str) -> str:
        return (is_english and question_in_english(text, held)) or text

    shown: set[tuple[str, str, str]] = set()
    asked = _questions(prompt.question, prompt.earlier)
    quoted = [
        _quoted(question, before, prompt, passages, in_words_of_sources, shown, len(asked))
        for question, before in asked
    ]
    return Quoted(
        tuple(dict.fromkeys(text for each in quoted for text in each.texts)),
        all(each.is_sure for each in quoted),
        any(each.is_several for each in quoted),
        any(each.is_part for each in quoted),
    )


def _quoted(
    asked_question: str,
    before: Sequence[EarlierMessage],
    prompt: Prompt,
    passages: list[SourceView],
    in_words_of_sources: Callable[[str], str],
    shown: set[tuple[str, str, str]],
    questions: int,
) -> Quoted:
    """As `quote`, for one of so many questions; adds the rows of its tables to those that are `shown`."""
    count = LOOKED_AT * (1 + len(prompt.contributions))
    files = asked_files(asked_question, passages, chosen=prompt.narrowed)
    question = files.question
    leaning, context = " ".join(leaned_on(asked_question, before)), context_of(asked_question, before)
    wording, subject, context = (in_words_of_sources(text) for text in (question, leaning, context))
    earlier = f"{subject} {context}".strip()
    # A translation may leave out a name.
    rows = named_rows(f"{question} {wording}", earlier, [each.content for each in passages])
    earlier = rows.earlier
    found = best_sentences(wording, passages, count, earlier, prompt.synonyms, rows.others, subject)
    found, places = _about_the_name(found, passages, rows.others)
    asked = f"{earlier} {wording}"
    quotations = _quotations(asked, prompt, found, places)
    if not quotations:
        return Quoted((), is_sure=False)
    selected = selected_rows(wording, passages, prompt.table_rows, [each.text for each in found])
    # After “and on floor 3?” other conditions may still be meant.
    if selected.text and not subject and not any(selected.text in each.text for each in prompt.contributions):
        return Quoted((selected.text,), not selected.needs_all, is_part=not selected.is_whole)
    likeliest = quotations[0]
    # What has no amount is no answer to “how much”.
    quotations.sort(key=lambda each: not each.has_asked)
    first = quotations[0]
    # What agents before have quoted is left out, and still says how well the search and the sentences agree.
    best = found[0] if first is likeliest else first.sentence
    answered = (
        first.has_asked
        and not (first.is_part_of_table and (selected.needs_all or selected.text))
        and first.sentence.text not in rows.others
        and _agrees(best, places, questions)
        and answers(asked, first.held, synonyms=prompt.synonyms)
        and confidence(asked, first.held, best.score, prompt.fit, prompt.synonyms)
        >= (SURE if wording == question else SURE_TRANSLATED)
    )
    of_files = _of_each_file(asked, prompt, found, places, files)
    if of_files:
        is_told = answered or (
            files.are_named
            and not of_files[0].is_part_of_table
            and answers(asked, of_files[0].held, synonyms=prompt.synonyms)
        )
        return Quoted(_new_texts(of_files, shown), is_told, is_several=True)
    alike: tuple[str, ...] = ()
    is_part = False
    if answered and first.is_part_of_table:
        found_alike = rows_alike(asked, first.sentence.text, passages, prompt.table_rows)
        alike = (found_alike.text,) if found_alike.text else ()
        shown |= found_alike.rows
        is_part = not found_alike.is_whole
    documents = [each.document_id for each in passages]
    parts = numbered_parts(wording, passages, documents, first.sentence.passage)
    if answered and parts:
        # Where the search found other things too, it found all parts.
        numbers = sorted(set(parts.values()))
        is_part |= numbers != list(range(1, len(numbers) + 1)) or len(parts) == len(passages)
        return Quoted((*alike, *_parts_quoted(parts, passages)), is_sure=True, is_part=is_part)
    has_all = answered and answers(asked, first.held, share=1.0, synonyms=prompt.synonyms)
    kept = _kept(quotations, asked, answered=answered, has_all=has_all)
    # Beside everything that was asked for, a place with less is no other answer.
    is_several = answered and any(
        each.is_another_answer(first, asked)
        and (not has_all or answers(asked, each.held, share=1.0, synonyms=prompt.synonyms))
        for each in kept
    )
    return Quoted((*alike, *_new_texts(kept, shown)), answered, is_several, is_part)


def _new_texts(quotations: "Sequence[_Quotation]", shown: set[tuple[str, str, str]]) -> tuple[str, ...]:
    return tuple(text for each in quotations if (text := each.without(shown)))


def _kept(
    quotations: Sequence["_Quotation"], asked: str, *, answered: bool, has_all: bool
) -> list["_Quotation"]:
    """The first of the quotations, and others that are nearly as good."""
    first = quotations[0]
    least = (SECOND_OF_ALL if has_all else SECOND) if answered else CLOSEST_SCORE
    kept = [first, *(each for each in quotations[1:] if each.is_of_best or each.share >= least)]
    kept = kept[: QUOTATIONS if answered else CLOSEST]
    if not answered and _is_for_others(first, asked):
        own = (each for each in kept if not _is_for_others(each, asked))
        kept.sort(key=next((each for each in own if answers(asked, each.held)), first).__ne__)
    return kept


def is_answered_by(
    question: str,
    earlier: Sequence[EarlierMessage],
    sources: Sequence[SourceView],
    fit: float,
    synonyms: Mapping[str, Sequence[str]],
) -> bool:
    """Whether sentences of these sources clearly answer the question."""
    return quote(Prompt(question, earlier, sources, 0.0, fit=fit, synonyms=synonyms)).is_sure


def _is_for_others(quotation: "_Quotation", asked: str) -> bool:
    return is_for_outsiders(asked, quotation.held[0], quotation.held[-1])


def _parts_quoted(parts: Iterable[int], passages: Sequence[SourceView]) -> list[str]:
    """The passages of numbered parts, each from its beginning and below its heading."""
    quoted = []
    for place in parts:
        content = passages[place].content
        starts = (span.start for span in split_sentences(content) if not span.is_heading)
        found = next((each for start in starts if (each := extract(content, start))), None)
        if found:
            quoted.append(_markdown(replace(found, needs_heading=True), passages[place], 0))
    return quoted


def _of_each_file(
    asked: str,
    prompt: Prompt,
    found: Sequence[Sentence],
    sources: Sequence[SourceView],
    files: AskedFiles,
) -> "list[_Quotation]":
    """The best quotations of each file; none if only one of them has something.

    Of files that the question does not name, one place each, which must answer it, and in another way.
    """
    of_files: list[list[_Quotation]] = []
    for file in files.files:
        of_file = [each for each in found if sources[each.passage].sourcefile == file]
        quotations = _quotations(asked, prompt, of_file, sources)
        if files.are_named:
            known = held_stems(quotations[0].text) if quotations else frozenset()
            more = stems(asked) - weak_stems() - known
            kept = [
                each
                for each in quotations
                if each.share >= CLOSEST_SCORE or not more.isdisjoint(held_stems(each.text))
            ][:QUOTATIONS]
        else:
            kept = [
                each
                for each in quotations[:1]
                if each.sentence.score >= OF_OTHER_FILE * found[0].score
                and answers(asked, each.held, synonyms=prompt.synonyms)
                and all(each.differs_from(other, asked) for (other, *_) in of_files)
            ]
        if kept:
            of_files.append(kept)
    of_files.sort(key=lambda kept: -kept[0].sentence.score)
    return [each for kept in of_files for each in kept] if len(of_files) > 1 else []


def _about_the_name(
    found: list[Sentence], passages: list[SourceView], others: Collection[str]
) -> tuple[list[Sentence], list[SourceView]]:
    """The sentences without the rows about other names, and the passages, of which those that were found for
    such a row do not count as the best of the search; all of them if there is nothing else."""
    kept = [sentence for sentence in found if sentence.text not in others]
    if not kept or len(kept) == len(found):
        return found, passages
    other = {sentence.passage for sentence in found} - {sentence.passage for sentence in kept}
    return kept, [
        replace(passage, score=0.0) if place in other else passage for place, passage in enumerate(passages)
    ]


def _agrees(sentence: Sentence, passages: Sequence[SourceView], questions: int) -> bool:
    """Whether the sentence is from one of the best search results; if not, either choice may be wrong.

    The results of several questions are interleaved.
    """
    best = max(passage.score for passage in passages)
    return sentence.passage < questions or passages[sentence.passage].score >= AGREES * best


@dataclass(frozen=True, slots=True)
class _Quotation:
    """A quotation as Markdown.

    `quoted` is what it consists of, `sentence` its best one, `chapter` its document and outermost heading,
    `share` its score as a share of the best one's, and `is_of_best` whether it is the first of the passage
    that the search finds best. `held` has the words that were asked for and the headings; `has_asked` says
    whether an amount, if one is asked for, is in the sentence or follows it.
    """

    text: str
    quoted: Extract
    all_rows: int
    source: SourceView
    sentence: Sentence
    chapter: tuple[str, str]
    share: float
    is_of_best: bool
    held: tuple[str, ...]
    has_asked: bool

    @property
    def is_part_of_table(self) -> bool:
        quoted = self.quoted
        return quoted.kind == "table" and (bool(self.all_rows) or len(quoted.lines) < quoted.rows)

    def without(self, shown: set[tuple[str, str, str]]) -> str:
        """The text without the rows in `shown`, to which its rows are added; empty if nothing remains."""
        if self.quoted.kind != "table":
            return self.text
        place = self.source.sourcefile, self.source.heading
        before = {line for line in self.quoted.lines if (*place, line) in shown}
        shown.update((*place, line) for line in self.quoted.lines)
        rest = without_rows(self.quoted, before)
        return _markdown(rest, self.source, self.all_rows) if rest else ""

    def differs_from(self, first: "_Quotation", asked: str) -> bool:
        """Whether it is another answer in other words."""
        return self.sentence.text != first.sentence.text and self.is_another_answer(first, asked)

    def is_another_answer(self, first: "_Quotation", asked: str) -> bool:
        """Whether it is from another document or chapter, with no number of the first if one is asked for."""
        if self.chapter == first.chapter:
            return False
        return not (asks_amount(asked) and numbers_of(self.sentence.text) & numbers_of(first.sentence.text))


def _quotations(
    asked: str, prompt: Prompt, found: Sequence[Sentence], sources: Sequence[SourceView]
) -> list[_Quotation]:
    """The best sentences with their context, at most `CLOSEST`, without duplicate places.

    The second one is from the passage that the search finds best, if the first is not.
    """
    quotations: list[_Quotation] = []
    taken: dict[int, list[tuple[int, int]]] = {}
    best = max(range(len(sources)), key=lambda place: sources[place].score, default=0)
    of_best = next((each for each in found[1:] if each.passage == best), None)
    if (found and found[0].passage == best) or (of_best and of_best.score < OF_BEST_PASSAGE * found[0].score):
        of_best = None
    ordered = [*found[:1], *([of_best] if of_best else []), *(each for each in found[1:] if each != of_best)]
    for sentence in ordered:
        places = taken.setdefault(sentence.passage, [])
        if any(start <= sentence.start < end for start, end in places):
            continue
        source = sources[sentence.passage]
        starts = [
            each.start
            for each in found
            if each.passage == sentence.passage and each.score >= SECOND * sentence.score
        ]
        all_rows = prompt.table_rows.get(source.passage_id, 0)
        quoted = extract(source.content, sentence.start, starts, has_part_of_table=bool(all_rows))
        if quoted is None or any(start < quoted.end and quoted.start < end for start, end in places):
            continue
        places.append((quoted.start, quoted.end))
        words = " ".join((quoted.lead, *quoted.lines))
        quotation = _markdown(quoted, source, all_rows)
        said = (sentence.text, words, quotation)
        if any(text in item.text for item in prompt.contributions for text in said):
            continue
        is_row = quoted.kind == "table" and sentence.text in quoted.lines
        # Rows that the question does not ask for do not make the answer more certain.
        asked_for = " ".join((quoted.lead, *(quoted.matching or quoted.lines)))
        quotations.append(
            _Quotation(
                quotation,
                quoted,
                all_rows,
                source,
                sentence,
                (source.sourcefile, _chapter(source)),
                sentence.score / found[0].score,
                sentence == of_best,
                (asked_for, source.title, source.heading),
                has_amount(asked, sentence.text if is_row else source.content[sentence.start : quoted.end]),
            )
        )
        if len(quotations) == CLOSEST:
            break
    return quotations


def _markdown(quoted: Extract, source: SourceView, all_rows: int) -> str:
    """The extract as a block quotation or a table, with its citation; `all_rows` is the number of a longer
    table's rows, if the source has only a part of it, below 0 if not known."""
    cite = f"[{source.label}]"
    headings = heading_of(source, " ".join((*quoted.columns, *quoted.lines)) if quoted.cells else "")
    heading = f"**{headings}**" if quoted.needs_heading and headings else ""
    if quoted.kind == "table":
        table = table_markdown(quoted.columns, [(cells, source.label) for cells in quoted.cells])
        is_lead_in = not quoted.lead or quoted.lead.endswith((":", "："))
        lead = quoted.lead if is_lead_in else f"> {quoted.lead} {cite}"
        shown, total = len(quoted.cells), max(all_rows, 0) if all_rows else quoted.rows
        notice = table_notices.notice(shown, total) if shown < total or all_rows else ""
        return "\n\n".join(part for part in (heading, lead, table, notice) if part)
    lines = [quoted.lead] if quoted.lead else []
    lines += [line if _NUMBER.match(line) else f"- {line}" for line in quoted.lines]
    quotation = "\n".join(f"> {line}" for line in lines)
    if quoted.lead and quoted.lines:
        quotation = quotation.replace("\n", "\n>\n", 1)
    return "\n\n".join(part for part in (heading, f"{quotation} {cite}") if part)


def _chapter(source: SourceView) -> str:
    """Its outermost heading."""
    return source.heading.partition("›")[0]


def heading_of(source: SourceView, table: str = "") -> str:
    """The two innermost headings of a passage without numbers and without the document's title.

    Above a table, the innermost is left out if only the other has to do with it: a table at the end of a
    chapter is not about the last of its sections alone.
    """
    parts = [_CAPTION.sub("", part).strip() for part in source.heading.split("›")]
    parts = [part for part in parts if part and part != source.title][-2:]
    if table and len(parts) == 2:
        words, outer = held_stems(table), held_stems(parts[0])
        inner = held_stems(parts[1]) - outer
        is_about_it = any(word.startswith(other) for word in inner for other in words if len(other) > 2)
        if outer & words and not is_about_it:
            parts = parts[:1]
    return " › ".join(parts)[:MAX_HEADING]
