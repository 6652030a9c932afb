"""Answers without a language model: the best sentences of the documents, with citations."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.functional import cached_property

from chat.llm import side_texts
from chat.llm.chat_model import Contribution, End, Part, Prompt, SearchQuery, Text
from chat.llm.followup_detection import context_of, leaned_on
from chat.quoting.questions.asked_files import asked_files
from chat.quoting.questions.question import (
    Question,
    named_words,
    untranslated_object,
    without_contrasted,
)
from chat.quoting.questions.question_parts import parts_of
from chat.quoting.questions.writing_tasks import is_writing_task, without_task
from chat.quoting.table_rows.journeys import find_journeys
from chat.quoting.table_rows.named_rows import named_rows
from chat.requests import EarlierMessage
from chat.sources import SourceView
from chat.statements import marks_by_rank
from chat.verification import verify
from chatsite.db.retry import retry_until_available
from ingestion.parsing.language import language_of
from ingestion.search.form_wishes import without_form_wishes
from ingestion.search.rough_stems import held_stems
from ingestion.search.translations import is_german, question_in_english
from ingestion.search.translations import language_of as asked_language
from ingestion.suggested_questions import questions_about, subject_of

from .answer_forms import quoted_in_best_form
from .candidates import ShownRow, chapter_of
from .findings import Findings
from .quoted_answer import NOTHING_MORE, NOTICES, OTHERS, QuotedAnswer
from .sentence_selection import shared_words

# The heading above a quotation, the Markdown syntax before its lines, and the citation at its end
_AROUND_QUOTED = re.compile(r"\A\*\*[^\n]*\*\*\n\n|^> ?| ?\[[^\[\]\n]+\]\Z", re.MULTILINE)
# A heading outside the cited chapters becomes a follow-up question only if it has this share of the
# question's words: OF_CITED in a cited document, OF_OTHER in any other.
OF_CITED, OF_OTHER = 0.3, 0.5
# Passages in the question's language are enough if the best of them has this share of the best search score.
OWN_LANGUAGE = 0.6


class QuotingModel:
    """Implements the interface of a language model with quotations from the sources."""

    name = "quotations"
    writes_json = False
    needs_sources = True
    works_in_team = False  # all agents would quote the same passages
    notices: tuple[str, ...] = NOTICES

    def __init__(self, name: str = "") -> None:
        """Accept any model name."""

    def text_for(self, sources: int) -> str | None:
        """A fixed answer instead of quotations; None to quote the sources."""
        return None

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        text, grade = self.text_for(len(prompt.sources)), ""
        if text is None:
            quoted = await retry_until_available(quote, prompt)
            texts = list(quoted.texts)
            if not texts:
                texts = [NOTHING_MORE if prompt.contributions else prompt.nothing_found]
            if quoted.notice and (quoted.texts or quoted.is_task) and not prompt.contributions:
                texts.insert(0, quoted.notice)
            text, grade = "\n\n".join(texts), quoted.grade
        words = re.findall(r"\s*\S+|\s+\Z", text)
        most = prompt.generation.max_tokens  # words count as tokens
        if settings.QUOTING_WORDS_PER_SECOND:
            for word in words[:most]:
                yield Text(word)
                await asyncio.sleep(1 / settings.QUOTING_WORDS_PER_SECOND)
        else:
            yield Text("".join(words[:most]))
        yield End("stop" if most is None or len(words) <= most else "length", grade)

    async def search_query(self, question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
        return search_query(question, earlier)

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        """Questions that are answered by passages other than those that the answer quotes."""
        # Passages of a page share a label, so an answer that cites the page need not quote all of them.
        ranks = marks_by_rank(verify(answer, prompt.sources))
        cited = {(each.sourcefile, chapter_of(each)) for each in prompt.sources if each.rank in ranks}
        asked = " ".join([*leaned_on(prompt.question, prompt.earlier), prompt.question])
        question_asked = Question(asked, synonyms=prompt.synonyms)
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
            if (source.sourcefile, chapter_of(source)) not in cited:
                least = OF_CITED if source.sourcefile in dict(cited) else OF_OTHER
                if shared_words(question_asked, source.heading) < least:
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
        """The next agent in the order of the team."""
        return team[len(contributions)][0] if len(contributions) < len(team) else ""

    async def has_more(self, prompt: Prompt) -> bool:
        """Whether quotations would add to a team's answers: only if they clearly answer the question."""
        return (await retry_until_available(quote, prompt)).is_sure

    async def graded(self, question: str, passages: Sequence[str]) -> dict[int, float] | None:
        """None: all methods that were tried without a model ranked passages worse than the search does."""
        return None

    async def supported(
        self, passages: Sequence[str], statements: Sequence[tuple[int, str]]
    ) -> dict[int, bool]:
        return {}


def search_query(question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
    """The query for a question, including the earlier question to which it refers.

    `SearchQuery.context` has earlier questions that may name the subject.
    """
    question, earlier = without_form_wishes(question), _without_form_wishes(earlier)
    about = without_task(question)
    if about != question:  # a task such as “Summarise the handbook” names its own subject
        question, earlier = about, ()
    subject = " ".join(leaned_on(question, earlier))
    asked = _questions(question, earlier)
    parts = tuple(search_query(part, before) for part, before in asked) if len(asked) > 1 else ()
    context = context_of(question, earlier)
    is_adding = not parts and Question(question, subject, subject).added_term
    before = f"{context} {subject}".strip()
    kept = named_words(without_contrasted(question, subject)) if is_adding else ""
    added = (SearchQuery(question, before), SearchQuery(f"{kept} {question}", context)) if is_adding else ()
    return SearchQuery(" ".join(filter(None, (subject, question))), context, parts, added)


def _without_form_wishes(messages: Sequence[EarlierMessage]) -> list[EarlierMessage]:
    return [
        replace(each, content=without_form_wishes(each.content)) if each.role == "user" else each
        for each in messages
    ]


def _questions(question: str, earlier: Sequence[EarlierMessage]) -> list[tuple[str, list[EarlierMessage]]]:
    """The parts of `question`, each with the messages and parts that precede it."""
    parts = parts_of(question)
    return [
        (part, [*earlier, *(EarlierMessage("user", before) for before in parts[:place])])
        for place, part in enumerate(parts)
    ]


@dataclass(frozen=True)
class _Sources:
    """The passages to quote, and their language."""

    passages: Sequence[SourceView]

    @cached_property
    def language(self) -> str:
        # Detected from all passages, because the language of a single table may be unclear.
        return language_of("\n".join(each.content for each in self.passages))

    @cached_property
    def stems(self) -> frozenset[str]:
        return held_stems(" ".join(f"{each.title} {each.heading} {each.content}" for each in self.passages))


def quote(prompt: Prompt) -> QuotedAnswer:
    """The best sentences of the sources with their context, for each question of the prompt.

    If several questions are asked at once, quotations that answer one of them come before those that are only
    close to another. For a task that needs a language model, passages about its subject are quoted, but do
    not count as an answer.
    """
    prompt = replace(
        prompt,
        question=without_form_wishes(prompt.question),
        earlier=_without_form_wishes(prompt.earlier),
    )
    if is_writing_task(prompt.question):
        about = without_task(prompt.question)
        earlier = prompt.earlier if about == prompt.question else ()
        quoted = _quoted(replace(prompt, question=about, earlier=earlier))
        texts = tuple(text for text in quoted.texts if text not in NOTICES)
        return QuotedAnswer(texts, is_sure=False, is_task=True)
    return _quoted(prompt)


def _quoted(prompt: Prompt) -> QuotedAnswer:
    passages = [replace(source, content=source.model_text) for source in prompt.sources]
    own = passages if prompt.narrowed else _in_language_of(prompt.question, passages)
    quoted = _quoted_from(prompt, own)
    return quoted if quoted.texts or len(own) == len(passages) else _quoted_from(prompt, passages)


def _quoted_from(prompt: Prompt, passages: Sequence[SourceView]) -> QuotedAnswer:
    sources = _Sources(passages)
    shown: set[ShownRow] = set()
    asked = _questions(prompt.question, prompt.earlier)
    quoted = [
        _SubQuestion(question, before, len(asked), prompt, sources).answer(shown)
        for question, before in asked
    ]
    is_sure = all(each.is_sure for each in quoted)
    first = _without_repeated([text for each in quoted for text in each.first_texts])
    others = [text for each in quoted for text in each.other_texts]
    others = _without_repeated([*first, *others])[len(first) :]
    texts = [*first, OTHERS, *others] if first and others else first or others
    return QuotedAnswer(
        tuple(texts),
        is_sure,
        any(each.is_several for each in quoted),
        any(each.is_part for each in quoted),
        any(each.is_sure or each.is_likely for each in quoted),
    )


def _in_language_of(question: str, passages: Sequence[SourceView]) -> Sequence[SourceView]:
    """The passages, except those in English for a German question, or the other way round.

    All passages if none in the question's language has a good score (OWN_LANGUAGE), or if that language is
    unclear. Passages in other languages are kept, because names in tables may look like any language.
    """
    asked = asked_language(question)
    languages = [language_of(each.content) for each in passages] if asked else []
    own = [each.score for each, language in zip(passages, languages, strict=False) if language == asked]
    if not own or max(own) < OWN_LANGUAGE * max(each.score for each in passages):
        return passages
    other = {"german": "english", "english": "german"}[asked]
    return [each for each, language in zip(passages, languages, strict=True) if language != other]


def _without_repeated(texts: Sequence[str]) -> list[str]:
    """The quotations, without those that repeat the text of an earlier one.

    A quotation repeats an earlier one if its text is a part of the earlier text, or if it contains that text
    and has the same citation.
    """
    kept: list[str] = []
    said: list[tuple[str, str]] = []  # texts with their citations
    for text in texts:
        own = " ".join(_AROUND_QUOTED.sub("", text).split())
        citation = text[text.rfind("[") :]
        if not any(own in other or (other in own and citation == cited) for other, cited in said):
            kept.append(text)
            said.append((own, citation))
    return kept


@dataclass(frozen=True)
class _SubQuestion:
    """A question of a prompt, which often has only one.

    `questions` is the number of questions in the prompt; `before` has the messages and questions before this
    question.
    """

    text: str
    before: Sequence[EarlierMessage]
    questions: int
    prompt: Prompt
    sources: _Sources

    def answer(self, shown: set[ShownRow]) -> QuotedAnswer:
        """The best answer to any interpretation of the question.

        Unless the passages are German, a German question is tried both translated and untranslated. A short
        question may continue an earlier one or be independent; both are tried. A sure answer ends the search.
        `shown` has the rows that were quoted for preceding questions; the answer's rows are added.
        """
        context = context_of(self.text, self.before)
        translated = self.sources.language == "english"
        best = self._findings(context, shown, translated=translated)
        answer = quoted_in_best_form(best)
        if not answer.is_sure and is_german(self.text) and self.sources.language != "german":
            other = self._findings(context, shown, translated=not translated)
            quoted = quoted_in_best_form(other)
            if quoted.is_sure or (quoted.texts and other.known() > best.known()):
                best, answer = other, quoted
        if not answer.is_sure and context:
            other = self._findings("", shown, translated=best.question.is_translated)
            quoted = quoted_in_best_form(other)
            has_own = answer.texts and best.known(other.question.named)
            if quoted.texts and other.known() and not has_own:
                best, answer = other, quoted
        shown.update(best.shown)
        return answer

    def _findings(self, context: str, shown: set[ShownRow], *, translated: bool) -> Findings:
        """The findings for the question; `context` has earlier questions, which may name its subject."""
        passages = self.sources.passages
        files = asked_files(self.text, passages, chosen=self.prompt.narrowed)
        before = " ".join(leaned_on(self.text, self.before))
        texts = (files.question, without_contrasted(files.question, before), context)
        wording, subject, context = map(self._in_english, texts) if translated else texts
        earlier = f"{subject} {context}".strip()
        # Both wordings are used, because the translation may have lost a name.
        rows = named_rows(f"{files.question} {wording}", earlier, [each.content for each in passages])
        is_translated = wording != files.question
        thing = untranslated_object(files.question, wording) if is_translated else frozenset[str]()
        original = files.question if is_translated else ""
        question = Question(
            wording, rows.earlier, subject, self.prompt.synonyms, is_translated, thing, original
        )
        journeys = find_journeys(files.question, before, passages)
        others = rows.others | journeys.wrong_way
        return Findings(question, self.prompt, passages, files, others, self.questions, set(shown), journeys)

    def _in_english(self, text: str) -> str:
        """A German text, translated preferably into words of the sources; any other text unchanged."""
        return (question_in_english(text, self.sources.stems) or text) if is_german(text) else text
