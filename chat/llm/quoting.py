"""Answers without a language model: the best sentences of the documents, each with its citation."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from django.conf import settings

from chat.requests import EarlierMessage
from chat.sources import SourceView
from chat.statements import marks_by_rank
from chat.verification import verify
from chatsite.db.retry import retry_until_available
from ingestion.search.sentences import (
    Sentence,
    best_sentences,
)

from . import side_texts
from .base import (
    NOTHING_FITS,
    End,
    Part,
    Prompt,
    Said,
    SearchQuery,
    Text,
)
from .followup_detection import context_of, leaned_on

NOTHING_MORE = "There is nothing to add from the documents you may read."
NOTICE = "No language model is connected, so the answer quotes the documents word for word."
UNSURE = "No language model is connected, and no sentence clearly answers this. The nearest ones are:"
SURE = 0.65  # score of the best sentence; docs/benchmarks.md says how often it is right above and below
SENTENCES = 2
FOLLOWUPS = 3

_CAPTION = re.compile(r"^[\d.\s§)(-]+")


class QuotingModel:
    """Speaks the model's protocol and knows only the sources."""

    name = "quotations"
    writes_json = False
    notices: tuple[str, ...] = (NOTICE, UNSURE, NOTHING_MORE)

    def __init__(self, name: str = "") -> None:
        """There is only one, whatever model is asked for."""

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        earlier = " ".join(
            [*leaned_on(prompt.question, prompt.earlier), context_of(prompt.question, prompt.earlier)]
        )
        count = SENTENCES * (1 + len(prompt.said))
        passages = [replace(source, content=source.model_text) for source in prompt.sources]
        found = await retry_until_available(best_sentences, prompt.question, passages, count, earlier)
        sentences = [item for item in found if not _quoted(item, prompt.said)][:SENTENCES]
        if not sentences:
            text = NOTHING_MORE if prompt.said else NOTHING_FITS
        else:
            quotes = [_quotation(sentence, prompt.sources) for sentence in sentences]
            notice = NOTICE if prompt.sure and sentences[0].score >= SURE else UNSURE
            text = "\n\n".join(quotes if prompt.said else [notice, *quotes])
        words = re.findall(r"\s*\S+|\s+\Z", text)
        most = prompt.generation.max_tokens  # a word counts as a token here
        if settings.QUOTING_WORDS_PER_SECOND:
            for word in words[:most]:
                yield Text(word)
                await asyncio.sleep(1 / settings.QUOTING_WORDS_PER_SECOND)
        else:
            yield Text("".join(words[:most]))
        yield End("stop" if most is None or len(words) <= most else "length")

    async def search_query(self, question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
        text = " ".join([*leaned_on(question, earlier), question])
        return SearchQuery(text, context_of(question, earlier))

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        """Headings of the passages that the answer does not rest on, as questions."""
        # Passages of a page share a label: an answer that cites the page need not tell all of it.
        ranks = marks_by_rank(verify(answer, prompt.sources))
        answered = {_caption(source) for source in prompt.sources if source.rank in ranks}
        questions: list[str] = []
        for source in prompt.sources:
            heading = _caption(source)
            question = f"What does “{source.title}” say about “{heading}”?"
            known = questions + [turn.content for turn in prompt.earlier] + [prompt.question]
            if heading and heading != source.title and heading not in answered and question not in known:
                questions.append(question)
        return questions[:FOLLOWUPS]

    async def title(self, question: str) -> str:
        return side_texts.title_of(question)

    async def further_query(self, question: str, said: Sequence[Said]) -> str:
        return ""

    async def next_speaker(self, question: str, team: Sequence[tuple[str, str]], said: Sequence[Said]) -> str:
        """In the order of the team."""
        return team[len(said)][0] if len(said) < len(team) else ""

    async def graded(self, question: str, passages: Sequence[str]) -> dict[int, float] | None:
        """No score of passage against question that was tried here orders better than the search itself."""
        return None


def _caption(source: SourceView) -> str:
    """The innermost heading, without its number."""
    return _CAPTION.sub("", source.heading.rpartition("›")[2]).strip()


def _quoted(sentence: Sentence, said: Sequence[Said]) -> bool:
    words = " ".join(sentence.text.split())
    return any(words in item.text for item in said)


def _quotation(sentence: Sentence, sources: Sequence[SourceView]) -> str:
    words = " ".join(sentence.text.split())
    return f"> {words} [{sources[sentence.passage].label}]"
