"""Streams one message of a model, with verified citations."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from django.conf import settings

from chat.citations import CitationFilter, JsonCitationFilter
from chat.events import MessageDone, TextDelta, Thinking, Usage
from chat.llm import ChatModel, ModelError, Prompt, Text, TokenCount
from chat.llm.base import (
    NOTHING_FITS,
    Reasoning,
)

from .stop_sequences import StopSequences


@dataclass(slots=True)
class _Outcome:
    """How the model's stream ended."""

    reason: str = ""
    usage: TokenCount | None = None
    error: ModelError | None = None
    stopped: bool = False  # at a stop sequence of the caller's


async def written(
    model: ChatModel, prompt: Prompt
) -> AsyncGenerator[Thinking | TextDelta | MessageDone | Usage, None]:
    """Yield Thinking (if the model reasons), the text, then MessageDone.

    Raises ModelError after all the text that arrived.
    """
    if not (prompt.sources or prompt.earlier or prompt.said or prompt.images):
        # Without sources and without a conversation the model could only make something up.
        yield TextDelta(NOTHING_FITS)
        yield MessageDone("stop", ())
        return
    wants_json = prompt.generation.json is not None
    labels = [source.label for source in prompt.sources]
    citations = JsonCitationFilter(labels) if wants_json else CitationFilter(labels)
    outcome = _Outcome()
    length, limit = 0, settings.ANSWER_MAX_CHARACTERS
    kept: list[str] = []  # of an answer that has to be JSON
    async with aclosing(_verified(model, prompt, citations, outcome)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reasoning):
                yield Thinking()
                continue
            safe = _cut(piece, limit - length)
            if wants_json:
                safe = safe.lstrip() if not length else safe
                kept.append(safe)
                if not length and safe and not safe.startswith("{"):
                    raise ModelError("upstream_protocol")
            length += len(safe)
            if safe:
                yield TextDelta(safe)
            if len(safe) < len(piece) or length >= limit:
                outcome.reason = "length"
                break
    if outcome.error:
        raise outcome.error
    if not length and not outcome.stopped:
        raise ModelError("empty_answer")
    if not outcome.reason:
        raise ModelError("interrupted")
    if wants_json and outcome.reason == "stop" and not outcome.stopped and not _is_object("".join(kept)):
        raise ModelError("upstream_protocol")
    yield MessageDone(outcome.reason, tuple(citations.cited))
    if outcome.usage:
        yield Usage(outcome.usage.prompt, outcome.usage.completion)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _cut(piece: str, length: int) -> str:
    """The first `length` characters, without a citation that is cut off."""
    if len(piece) <= length:
        return piece
    safe = piece[:length]
    opened = safe.rfind("[")
    return safe if opened <= safe.rfind("]") else safe[:opened]


async def _verified(
    model: ChatModel, prompt: Prompt, citations: CitationFilter | JsonCitationFilter, outcome: _Outcome
) -> AsyncGenerator[str | Reasoning, None]:
    """Yield Reasoning and verified text, which may be empty; on failure also the text held back."""
    stops = StopSequences(prompt.generation.stop)
    try:
        async with aclosing(model.answer(prompt)) as parts:
            async for part in parts:
                if isinstance(part, Text):
                    yield citations.feed(stops.feed(part.text))
                    if stops.reached:
                        outcome.reason, outcome.stopped = "stop", True
                        break
                elif isinstance(part, Reasoning):
                    yield part
                elif isinstance(part, TokenCount):
                    outcome.usage = part
                else:
                    outcome.reason = part.reason
    except ModelError as error:
        outcome.error = error
    yield citations.feed(stops.flush()) + citations.flush()
