"""The interface of language models, their prompts, and the selection of the model."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext_noop

from chat import site_texts
from chat.requests import EarlierMessage, Generation, ImageInput
from chat.sources import PageImage, SourceView

MAX_TOKENS = 1_000_000_000  # tokens of a request or an answer; a larger reported number is invalid
NOTHING_FITS = gettext_noop(
    "Nothing was found in the documents you may read. Try other words, or ask the document’s owner."
)
NOTHING_IN_PART = gettext_noop(
    "Nothing was found in the part of the documents that was searched. Search everything, or try other words."
)
FORMER_NOTHING_FITS = gettext_noop(
    "Nothing in the documents you may read answers this. Try other words, or ask who keeps the document."
)
FORMER_NOTHING_IN_PART = gettext_noop(
    "Nothing in the part of the documents that was searched answers this. "
    "Search everything, or try other words."
)
# Answers store these texts untranslated, so that they can be counted; older answers contain the former texts.
NOTHING_FOUND = (NOTHING_FITS, NOTHING_IN_PART, FORMER_NOTHING_FITS, FORMER_NOTHING_IN_PART)

APPEND_MARK = ">>>"  # precedes a template that extends the site's instructions


@cache
def instructions(name: str) -> str:
    """Text of the prompt file chat/prompts/{name}.txt."""
    return (Path(__file__).parent.parent / "prompts" / f"{name}.txt").read_text().strip()


@dataclass(frozen=True, slots=True)
class Contribution:
    """The message of one agent in a team."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The contents of a request for an answer."""

    question: str
    earlier: Sequence[EarlierMessage]
    sources: Sequence[SourceView]
    temperature: float
    contributions: Sequence[Contribution] = ()  # earlier messages of the team's agents in this run
    instructions: str = ""  # instructions of the agent that writes
    images: Sequence[ImageInput] = ()  # images that came with the question
    pages: Sequence[PageImage] = ()  # images of the pages of the sources
    fit: float = 4.0  # relevance of the best source: relevant if at least 0, clearly relevant if at least 1
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)  # synonyms of phrases of the question
    template: str = ""  # replaces the site's instructions, or extends them if it begins with >>>
    wish: str = ""  # the caller's preference for the form of the answer
    generation: Generation = field(default_factory=Generation)
    prefill: str = ""  # the beginning of the answer, which the model continues
    # By the id of a passage with only a part of a table: the rows of the whole table (negative if unknown).
    table_rows: Mapping[int, int] = field(default_factory=dict)
    narrowed: bool = False  # whether only a part of the readable documents was searched
    caller: str = ""  # to whom failures of the model are attributed; all guests count as one person

    @property
    def nothing_found(self) -> str:
        """The answer if none of the searched documents answers the question."""
        return NOTHING_IN_PART if self.narrowed else NOTHING_FITS


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search for.

    `context` has earlier questions that may contain the subject; their words count less. Of a compound
    question, the `parts` are searched for, and `text` only if one of them finds nothing. For a follow-up
    question such as “and for crews?”, `added` has additional searches that give more weight to the new term
    (“crews”); the first of them searches for the question by itself.
    """

    text: str
    context: str = ""
    parts: "tuple[SearchQuery, ...]" = ()
    added: "tuple[SearchQuery, ...]" = ()


@dataclass(frozen=True, slots=True)
class Text:
    """The next characters of the answer, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model is reasoning before its answer.

    The reasoning itself is neither shown nor stored.
    """


@dataclass(frozen=True, slots=True)
class TokenCount:
    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class End:
    """The end of the text: the finish reason (stop or length), and the grade of quotations.

    The grade is a value of history.tally.Grade.
    """

    reason: str
    grade: str = ""


Part = Text | Reasoning | TokenCount | End


class ModelError(Exception):
    """The model failed.

    `code` is one of chat.errors, `retry_after` the server's Retry-After in seconds. `detail` is for the log:
    a status or the name of an error, never the server's own message, which may contain the key or the prompt.
    """

    def __init__(self, code: str, retry_after: float | None = None, *, detail: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.retry_after = retry_after
        self.detail = detail

    @property
    def summary(self) -> str:
        """One line for the log."""
        return f"{self.code} ({self.detail})" if self.detail else self.code


class ServerUnavailable(ModelError):
    """The circuit breaker is open after failures.

    Nothing was sent, and an immediate retry is pointless.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__("upstream_unavailable", max(1.0, seconds), detail="paused after failures")


class ChatModel(Protocol):
    """A language model. Every method may raise ModelError; iterate streams under `aclosing`."""

    name: str
    writes_json: bool  # whether it can write answers that follow a JSON schema
    needs_sources: bool  # whether it needs sources for a question without context (see chat.engine.writing)
    works_in_team: bool  # whether it can act as several agents that build on each other's messages
    notices: tuple[str, ...]  # its fixed sentences, which make no statement about the documents

    def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        """Yield Reasoning and TokenCount (if any), Text, and End unless the stream ended early."""
        ...

    async def search_query(self, question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
        """The search query, with references to the conversation resolved."""
        ...

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        """Follow-up questions that the sources can answer, best first."""
        ...

    async def document_questions(self, title: str, text: str) -> list[str]:
        """Questions that a document answers; `text` is its beginning. May be empty."""
        ...

    async def title(self, question: str) -> str:
        """A short title for a conversation."""
        ...

    async def further_query(self, question: str, contributions: Sequence[Contribution]) -> str:
        """A search query for information that the contributions lack; empty if they lack nothing."""
        ...

    async def next_speaker(
        self, question: str, team: Sequence[tuple[str, str]], contributions: Sequence[Contribution]
    ) -> str:
        """The name of the next agent; any text that is not a name in `team` ends the answer.

        `team` has the (name, description) of each agent.
        """
        ...

    async def has_more(self, prompt: Prompt) -> bool:
        """Whether another agent of the team can add to the contributions in the prompt."""
        ...

    async def graded(self, question: str, passages: Sequence[str]) -> dict[int, float] | None:
        """The relevance (0 to 4) of passages by index; empty on failure, None if the model cannot grade."""
        ...

    async def supported(
        self, passages: Sequence[str], statements: Sequence[tuple[int, str]]
    ) -> dict[int, bool]:
        """For each statement, by index: whether its passage says the same.

        `statements` has (index of the passage, text) of each statement. Statements without a verdict are left
        out: all of them on failure, or if the model cannot compare texts.
        """
        ...


RERANKER = "chat.llm.reranking.rerank"  # a path, so that the module is loaded only if a reranker is used

_replacements: list[ChatModel] = []


def configured_model(name: str = "") -> ChatModel:
    """The configured model, or the model `name` of the same server.

    Its class is imported by path, so that the modules of unused models are not loaded.
    """
    if _replacements:
        return _replacements[-1]
    model: ChatModel = import_string(settings.CHAT_BACKEND)(name)
    return model


async def rerank(question: str, passages: Sequence[str]) -> dict[int, float]:
    """The relevance (0 to 4) of passages by index, from the reranking server; empty if it fails."""
    scores: dict[int, float] = await import_string(RERANKER)(question, passages)
    return scores


@contextmanager
def use_model(model: ChatModel) -> Iterator[None]:
    """Use `model` inside the block. For tests."""
    _replacements.append(model)
    try:
        yield
    finally:
        _replacements.remove(model)


def messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The prompt as chat messages: instructions, earlier messages, question with sources and images."""
    json = instructions("json") if prompt.generation.json else ""
    own = (answer_instructions(prompt.template), prompt.instructions, json)
    system = "\n\n".join(part for part in own if part)
    earlier: list[dict[str, Any]] = [{"role": "system", "content": system}]
    earlier += [{"role": turn.role, "content": turn.content} for turn in prompt.earlier]
    question = f"{wish_text(prompt.wish)}\n\nQuestion:\n{prompt.question}" if prompt.wish else prompt.question
    content = f"{question}\n\nSources:\n{sources_text(prompt.sources)}"
    if prompt.contributions:
        content += f"\n\nWhat the other agents have said:\n{contributions_text(prompt.contributions)}"
    if prompt.prefill:
        cut = [
            {"role": "assistant", "content": prompt.prefill},
            {"role": "user", "content": instructions("continue")},
        ]
        return [*earlier, {"role": "user", "content": content}, *cut]
    if not (prompt.images or prompt.pages):
        return [*earlier, {"role": "user", "content": content}]  # plain text, which every server supports
    parts: list[dict[str, Any]] = [{"type": "text", "text": content}]
    for page in prompt.pages:
        parts += [{"type": "text", "text": f"{page.label}: the page in this image"}, _image(page.url)]
    for image in prompt.images:
        parts.append(_image(f"data:{image.media_type};base64,{b64encode(image.data).decode()}"))
    return [*earlier, {"role": "user", "content": parts}]


def answer_instructions(template: str = "") -> str:
    """The site's instructions, those of the template, or both if the template begins with `>>>`."""
    own = site_texts.current().texts.prompt or instructions("answer")
    if template.startswith(APPEND_MARK):
        return f"{own}\n\n{template.removeprefix(APPEND_MARK).strip()}"
    return template.strip() or own


def wish_text(wish: str) -> str:
    """The caller's preference, as a quotation in the question, without the authority of instructions."""
    quoted = "\n".join(f"> {line}" for line in wish.splitlines())
    return f"{instructions('wish')}\n\n{quoted}"


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}


def contributions_text(contributions: Sequence[Contribution]) -> str:
    """The contributions, each below its agent's name."""
    return "\n\n".join(f"{item.agent}:\n{item.text}" for item in contributions)


def sources_text(sources: Sequence[SourceView]) -> str:
    """The sources, one per line, label first; without those that are sent as images."""
    as_text = [source for source in sources if source.given != "image"]
    return "\n".join(f"{source.label}: {' '.join(source.model_text.split())}" for source in as_text)
