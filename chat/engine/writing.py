"""Streams one message of a model, with verified citations."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from django.conf import settings

from chat.citations import CitationFilter, JsonCitationFilter
from chat.events import MessageDone, TextDelta, Thinking, Usage
from chat.llm import ChatModel, ModelError, Prompt, Text, TokenCount
from chat.llm.chat_model import Reasoning
from history.tally import Grade


@dataclass(slots=True)
class _Outcome:
    """How the model's stream ended."""

    reason: str = ""
    grade: str = ""
    usage: TokenCount | None = None
    error: ModelError | None = None
    stopped: bool = False  # whether the text ended at the caller's stop sequence


async def written(
    model: ChatModel, prompt: Prompt
) -> AsyncGenerator[Thinking | TextDelta | MessageDone | Usage, None]:
    """Yield Thinking (if the model reasons), the text, MessageDone, and Usage (if reported).

    The text of a continued answer begins with `prompt.prefill`. If the model fails, all received text is
    yielded before ModelError is raised.
    """
    is_alone = not (prompt.earlier or prompt.contributions or prompt.images or prompt.prefill)
    if is_alone and model.needs_sources and not prompt.sources:
        # Without sources, images or earlier text, the model could only invent an answer.
        yield TextDelta(prompt.nothing_found)
        yield MessageDone("stop", (), grade=Grade.NONE)
        return
    wants_json = prompt.generation.json is not None
    labels = [source.label for source in prompt.sources]
    citations = JsonCitationFilter(labels) if wants_json else CitationFilter(labels)
    outcome = _Outcome()
    length, limit = 0, settings.ANSWER_MAX_CHARACTERS
    kept: list[str] = []  # the text of an answer that must be JSON
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
    yield MessageDone(outcome.reason, tuple(citations.cited), grade=outcome.grade)
    if outcome.usage:
        yield Usage(outcome.usage.prompt, outcome.usage.completion)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _cut(piece: str, length: int) -> str:
    """The first `length` characters of `piece`, without a citation that would be cut in half."""
    if len(piece) <= length:
        return piece
    safe = piece[:length]
    opened = safe.rfind("[")
    return safe if opened <= safe.rfind("]") else safe[:opened]


async def _verified(
    model: ChatModel, prompt: Prompt, citations: CitationFilter | JsonCitationFilter, outcome: _Outcome
) -> AsyncGenerator[str | Reasoning, None]:
    """Yield Reasoning, and text (possibly empty) with verified citations.

    If the model fails, all received text is yielded first.
    """
    stops = StopSequences(prompt.generation.stop)
    if prompt.prefill:
        yield citations.feed(prompt.prefill)
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
                    outcome.reason, outcome.grade = part.reason, part.grade
    except ModelError as error:
        outcome.error = error
    yield citations.feed(stops.flush()) + citations.flush()


class StopSequences:
    """Passes text on up to the first stop sequence; holds back text that may be the start of one."""

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = sequences
        self._longest = max(map(len, sequences), default=0)
        self._held = ""
        self.reached = False

    def feed(self, text: str) -> str:
        """Add text; returns the part that certainly precedes any stop sequence, and holds back the rest."""
        if self.reached or not self._sequences:
            return "" if self.reached else text
        text = self._held + text
        places = [place for sequence in self._sequences if (place := text.find(sequence)) >= 0]
        if places:
            self.reached, self._held = True, ""
            return text[: min(places)]
        start = self._undecided(text)
        certain, self._held = text[:start], text[start:]
        return certain

    def flush(self) -> str:
        """Return the text that is still held back, at the end of the stream."""
        held, self._held = self._held, ""
        return held

    def _undecided(self, text: str) -> int:
        """The start of the longest end of `text` that may begin a stop sequence."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(sequence.startswith(text[start:]) for sequence in self._sequences):
                return start
        return len(text)
