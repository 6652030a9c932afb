"""A model with scripted answers."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from chat.llm.chat_model import (
    Contribution,
    End,
    ModelError,
    Part,
    Prompt,
    SearchQuery,
    Text,
)
from chat.requests import EarlierMessage


@dataclass
class ScriptedModel:
    """Sends `words` with `pause` seconds between them, then the finish `reason`.

    With `error`, it fails with this error instead. `prompts` records the requests.
    """

    words: Sequence[str] = ("An answer.",)
    pause: float = 0.0
    reason: str | None = "stop"
    error: ModelError | None = None
    suggestions: Sequence[str] = ()
    speakers: Sequence[str] = ()
    grades: dict[int, float] | None = None
    supports: dict[str, bool] = field(default_factory=dict)  # verdicts by text that a statement contains
    name: str = "scripted"
    writes_json: bool = True
    needs_sources: bool = True
    works_in_team: bool = True
    notices: tuple[str, ...] = ()
    prompts: list[Prompt] = field(default_factory=list)
    closed: int = 0

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        self.prompts.append(prompt)
        try:
            for word in self.words:
                yield Text(word)
                await asyncio.sleep(self.pause)
            if self.error:
                raise self.error
            if self.reason:
                yield End(self.reason)
        finally:
            self.closed += 1

    async def search_query(self, question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
        return SearchQuery(question)

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        return list(self.suggestions)

    async def document_questions(self, title: str, text: str) -> list[str]:
        return []

    async def title(self, question: str) -> str:
        return question[:40]

    async def further_query(self, question: str, contributions: Sequence[Contribution]) -> str:
        return ""

    async def next_speaker(
        self, question: str, team: Sequence[tuple[str, str]], contributions: Sequence[Contribution]
    ) -> str:
        return self.speakers[len(contributions)] if len(contributions) < len(self.speakers) else ""

    async def has_more(self, prompt: Prompt) -> bool:
        return True

    async def graded(self, question: str, passages: Sequence[str]) -> dict[int, float] | None:
        return self.grades

    async def supported(
        self, passages: Sequence[str], statements: Sequence[tuple[int, str]]
    ) -> dict[int, bool]:
        return {
            place: any(found and words in statement for words, found in self.supports.items())
            for place, (_, statement) in enumerate(statements)
        }
