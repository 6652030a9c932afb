"""One message of a model: its text with verified citations, piece by piece."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from django.conf import settings

from chat.citations import CitationFilter
from chat.events import MessageDone, TextDelta, Thinking, Usage
from chat.llm import ChatModel, ModelError, Prompt, Text, TokenCount
from chat.llm.protocol import NOTHING_FITS, Reasoning


@dataclass(slots=True)
class _Outcome:
    """How the model's text ended."""

    reason: str = ""
    usage: TokenCount | None = None
    error: ModelError | None = None


async def written(
    model: ChatModel, prompt: Prompt
) -> AsyncGenerator[Thinking | TextDelta | MessageDone | Usage, None]:
    """Thinking, if the model does, the text, then MessageDone.

    Raises ModelError, after all the text that came.
    """
    if not (prompt.sources or prompt.earlier or prompt.said or prompt.images):
        # Without sources and without a conversation a model could only invent.
        yield TextDelta(NOTHING_FITS)
        yield MessageDone("stop", ())
        return
    citations = CitationFilter(source.label for source in prompt.sources)
    outcome = _Outcome()
    length, most = 0, settings.ANSWER_MAX_CHARACTERS
    async with aclosing(_verified(model, prompt, citations, outcome)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reasoning):
                yield Thinking()
                continue
            safe = piece[: most - length]
            length += len(safe)
            if safe:
                yield TextDelta(safe)
            if length >= most:
                outcome.reason = "length"
                break
    if outcome.error:
        raise outcome.error
    if not length:
        raise ModelError("empty_answer")
    if not outcome.reason:
        raise ModelError("interrupted")
    yield MessageDone(outcome.reason, tuple(citations.cited))
    if outcome.usage:
        yield Usage(outcome.usage.prompt, outcome.usage.completion)


async def _verified(
    model: ChatModel, prompt: Prompt, citations: CitationFilter, outcome: _Outcome
) -> AsyncGenerator[str | Reasoning, None]:
    """Reasoning, and pieces of text, some of them empty; also what was held back when the model failed."""
    try:
        async with aclosing(model.answer(prompt)) as parts:
            async for part in parts:
                if isinstance(part, Text):
                    yield citations.feed(part.text)
                elif isinstance(part, Reasoning):
                    yield part
                elif isinstance(part, TokenCount):
                    outcome.usage = part
                else:
                    outcome.reason = part.reason
    except ModelError as error:
        outcome.error = error
    yield citations.flush()
