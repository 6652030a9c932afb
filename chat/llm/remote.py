"""Any OpenAI-compatible server as the model."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

import httpx2
import openai
from django.conf import settings

from chat.requests import Turn

from . import event_stream
from .event_stream import Deadlines
from .protocol import ModelError, Part, Prompt, Text, instructions, messages, sources_text

logger = logging.getLogger(__name__)

LONGEST_WAIT = 10.0  # seconds that a server may tell us to wait before the one repetition
SIDE_SECONDS = 10.0  # for titles, follow-ups and search queries, which an answer can do without
SIDE_TOKENS = 200
KEYLESS = "no-key"  # local servers want none, the client library insists on one

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI] = WeakKeyDictionary()


def client() -> openai.AsyncOpenAI:
    """One client for each event loop: its connections belong to the loop."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        timeout = httpx2.Timeout(settings.ANSWER_TOTAL_SECONDS, connect=settings.ANSWER_CONNECT_SECONDS)
        _clients[loop] = openai.AsyncOpenAI(
            api_key=settings.OPENAI_API_KEY or KEYLESS,
            base_url=settings.OPENAI_BASE_URL or None,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAsyncHttpx2Client(timeout=timeout, follow_redirects=False),
        )
    return _clients[loop]


class RemoteModel:
    """Streams answers of the server that the settings name."""

    def __init__(self) -> None:
        self.name: str = settings.CHAT_MODEL

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        """One repetition, only before the first piece of text, where the server says when to come again."""
        begun = False
        for attempt in (1, 2):
            try:
                async with aclosing(self._attempt(prompt)) as parts:
                    async for part in parts:
                        begun = begun or isinstance(part, Text)
                        yield part
                return
            except ModelError as error:
                if begun or attempt == 2:
                    raise
                prompt = await self._prepare_repetition(prompt, error)

    async def search_query(self, question: str, earlier: Sequence[Turn]) -> str:
        if not earlier:
            return question
        told = [{"role": turn.role, "content": turn.content} for turn in earlier]
        return await self._side("search_query", [*told, {"role": "user", "content": question}]) or question

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        content = (
            f"Question: {prompt.question}\n\nAnswer: {answer}\n\nSources:\n{sources_text(prompt.sources)}"
        )
        text = await self._side("followups", [{"role": "user", "content": content}])
        lines = (line.strip().lstrip("-*•0123456789.) ").strip('"“” ') for line in text.splitlines())
        return [line[:200] for line in lines if line.endswith(("?", "？", "؟"))][:3]

    async def title(self, question: str) -> str:
        text = await self._side("title", [{"role": "user", "content": question[:2000]}])
        return " ".join(text.split()).strip('"“”.')[:100]

    async def _attempt(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        deadlines = Deadlines(
            settings.ANSWER_FIRST_TOKEN_SECONDS, settings.ANSWER_IDLE_SECONDS, settings.ANSWER_TOTAL_SECONDS
        )
        conversation: Any = messages(prompt)
        request = client().chat.completions.with_streaming_response.create(
            model=self.name,
            messages=conversation,
            temperature=prompt.temperature,
            stream=True,
            stream_options={"include_usage": True},
        )
        try:
            async with asyncio.timeout(deadlines.first):
                response = await request.__aenter__()
        except TimeoutError:
            raise ModelError("upstream_timeout") from None
        except openai.APIError as error:
            raise _translated(error) from error
        try:
            async with aclosing(event_stream.parts(response.iter_bytes(), deadlines)) as parts:
                async for part in parts:
                    yield part
        except httpx2.TimeoutException as error:
            raise ModelError("upstream_timeout") from error
        except (httpx2.HTTPError, openai.APIError) as error:
            # Reset or cut: the engine sees that no end came, and keeps what had arrived.
            logger.warning("The model's stream broke: %s", type(error).__name__)
        finally:
            await request.__aexit__(None, None, None)

    async def _prepare_repetition(self, prompt: Prompt, error: ModelError) -> Prompt:
        """Wait, or shorten the prompt, as the error asks. Raises it where a repetition makes no sense."""
        if error.code == "context_overflow" and (prompt.earlier or len(prompt.sources) > 1):
            kept = max(1, len(prompt.sources) // 2)
            return Prompt(prompt.question, prompt.earlier[-2:], prompt.sources[:kept], prompt.temperature)
        if error.retry_after is None or error.retry_after > LONGEST_WAIT:
            raise error
        await asyncio.sleep(error.retry_after)
        return prompt

    async def _side(self, name: str, told: list[dict[str, str]]) -> str:
        """A short text beside the answer; empty where the model fails: the answer does not need it."""
        conversation: Any = [{"role": "system", "content": instructions(name)}, *told]
        try:
            async with asyncio.timeout(SIDE_SECONDS):
                completion = await client().chat.completions.create(
                    model=self.name, messages=conversation, temperature=0, max_tokens=SIDE_TOKENS
                )
                return (completion.choices[0].message.content or "").replace("\x00", "").strip()
        except (TimeoutError, openai.OpenAIError, httpx2.HTTPError, ValueError, IndexError, AttributeError):
            logger.warning("The model gave no %s", name, exc_info=True)
            return ""


def _translated(error: openai.APIError) -> ModelError:
    if isinstance(error, openai.APITimeoutError):
        return ModelError("upstream_unavailable" if _connecting(error) else "upstream_timeout")
    if not isinstance(error, openai.APIStatusError):
        return ModelError("upstream_unavailable")
    code = str(error.code or "") + str(error.body or "")
    if error.status_code == 429:
        return ModelError("rate_limited", _retry_after(error))
    if error.status_code in (400, 413) and ("context_length" in code or "context size" in code):
        return ModelError("context_overflow")
    if error.status_code == 400 and "content_filter" in code:
        return ModelError("content_filter")
    if error.status_code >= 500:
        return ModelError("upstream_unavailable", _retry_after(error))
    return ModelError("upstream_misconfigured")


def _connecting(error: openai.APIError) -> bool:
    return isinstance(error.__cause__, httpx2.ConnectTimeout)


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds, where the header gives them; a date or nonsense means that nobody told us to wait."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
