"""An OpenAI-compatible server as the model."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx2
import openai
from django.conf import settings

from chat.requests import EarlierMessage
from chatsite.http.outgoing.circuit_breaker import CircuitBreaker, CircuitOpen
from chatsite.http.outgoing.model_server import pieces
from ingestion.search.form_wishes import without_form_wishes

from . import (
    completion_stream,
    side_texts,
)
from .chat_model import (
    Contribution,
    ModelError,
    Part,
    Prompt,
    Reasoning,
    SearchQuery,
    ServerUnavailable,
    Text,
    contributions_text,
    instructions,
    messages,
    sources_text,
)
from .completion_stream import (
    Clock,
    Deadlines,
    GatheredBody,
    content_parts,
)
from .connections import COMPLETIONS, HINTS, OWN, MemberRefused, connection, describe_error, translated

logger = logging.getLogger(__name__)

PROBE_SECONDS = 2.0  # how long a question waits while another one probes the server
PROBE_POLL_SECONDS = 0.05
MAX_WAIT_SECONDS = 10.0  # if the server's Retry-After is longer, the request is not retried
SIDE_SECONDS = 10.0  # time limit for each short text besides the answer, such as a title
SIDE_TOKENS = 200
GRADE_TOKENS = 8  # tokens of the response for each passage or statement


class RemoteModel:
    """A model of the configured server."""

    writes_json = True
    needs_sources = True
    works_in_team = True
    notices = ()

    def __init__(self, name: str = "") -> None:
        self.name: str = name or settings.CHAT_MODEL

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Part, None]:
        """Stream an answer.

        Until text or reasoning arrives, the request is retried at most once, if the error suggests it.
        In addition, optional members that the server refuses are dropped one by one.
        """
        clock = Clock(
            Deadlines(
                settings.ANSWER_FIRST_TOKEN_SECONDS,
                settings.ANSWER_IDLE_SECONDS,
                settings.ANSWER_TOTAL_SECONDS,
            )
        )
        started = retried = False
        dropped: set[str] = set()  # members that the server has refused in this request
        while True:
            try:
                async with aclosing(self._attempt(prompt, clock, dropped)) as parts:
                    async for part in parts:
                        if not started and "max_tokens" in dropped:
                            connection().refused.add("max_tokens")  # the server expects the newer name
                        started = started or isinstance(part, Text | Reasoning)
                        yield part
                return
            except MemberRefused as error:
                if started or error.name in dropped | connection().refused:
                    raise
                dropped.add(error.name)
                logger.warning("The request to the model is retried: %s", error.summary)
                if error.name in OWN:
                    connection().refused.add(error.name)
            except ModelError as error:
                if started or retried:
                    raise
                prompt = await self._prepare_retry(prompt, error)
                retried = True
                logger.warning("The request to the model is retried: %s", error.summary)
            clock.start_again()

    async def search_query(self, question: str, earlier: Sequence[EarlierMessage]) -> SearchQuery:
        if not earlier:
            return SearchQuery(without_form_wishes(question))
        messages = [{"role": turn.role, "content": turn.content} for turn in earlier]
        text = await self._side("search_query", [*messages, {"role": "user", "content": question}])
        return SearchQuery(side_texts.search_query(text) or question)

    async def followups(self, prompt: Prompt, answer: str) -> list[str]:
        content = (
            f"Question: {prompt.question}\n\nAnswer: {answer}\n\nSources:\n{sources_text(prompt.sources)}"
        )
        text = await self._side("followups", [{"role": "user", "content": content}])
        asked = [prompt.question, *(turn.content for turn in prompt.earlier if turn.role == "user")]
        return side_texts.followups(text, asked)

    async def document_questions(self, title: str, text: str) -> list[str]:
        messages = [{"role": "user", "content": f"Title: {title}\n\n{text}"}]
        return side_texts.questions(await self._side("document_questions", messages))

    async def title(self, question: str) -> str:
        text = await self._side("title", [{"role": "user", "content": question[:2000]}])
        return side_texts.title(text) or side_texts.title_of(question)

    async def further_query(self, question: str, contributions: Sequence[Contribution]) -> str:
        content = f"Question: {question}\n\n{contributions_text(contributions)}"
        query = side_texts.search_query(
            await self._side("further_query", [{"role": "user", "content": content}])
        )
        return "" if query.upper().startswith("NONE") else query

    async def next_speaker(
        self, question: str, team: Sequence[tuple[str, str]], contributions: Sequence[Contribution]
    ) -> str:
        agents = "\n".join(f"{name}: {description}" for name, description in team)
        content = (
            f"Question: {question}\n\nAgents:\n{agents}\n\nSaid so far:\n{contributions_text(contributions)}"
        )
        return side_texts.search_query(
            await self._side("next_speaker", [{"role": "user", "content": content}])
        )

    async def has_more(self, prompt: Prompt) -> bool:
        return True

    async def graded(self, question: str, passages: Sequence[str]) -> dict[int, float] | None:
        numbered = "\n\n".join(f"{number}. {text}" for number, text in enumerate(passages, start=1))
        content = f"Question: {question}\n\nPassages:\n\n{numbered}"
        tokens = SIDE_TOKENS + GRADE_TOKENS * len(passages)
        text = await self._side("grades", [{"role": "user", "content": content}], tokens)
        return side_texts.grades(text, len(passages))

    async def supported(
        self, passages: Sequence[str], statements: Sequence[tuple[int, str]]
    ) -> dict[int, bool]:
        # Put each passage and statement on one line, so that its text cannot pretend to be the next one.
        given = "\n".join(
            f"Passage {number}: {' '.join(text.split())}" for number, text in enumerate(passages, start=1)
        )
        asked = "\n".join(
            f"Statement {number} (passage {passage + 1}): {' '.join(text.split())}"
            for number, (passage, text) in enumerate(statements, start=1)
        )
        content = f"{given}\n\n{asked}"
        tokens = SIDE_TOKENS + GRADE_TOKENS * len(statements)
        text = await self._side("second_look", [{"role": "user", "content": content}], tokens)
        return side_texts.supported(text, len(statements))

    async def _attempt(self, prompt: Prompt, clock: Clock, dropped: Set[str]) -> AsyncGenerator[Part, None]:
        breaker = connection().breaker(self.name)
        # If another question is probing the server, the probe's result decides whether this one is sent.
        time = asyncio.get_running_loop().time
        deadline = time() + PROBE_SECONDS
        while breaker.is_probing(prompt.caller) and time() < deadline:  # noqa: ASYNC110 (a breaker serves threads too)
            await asyncio.sleep(PROBE_POLL_SECONDS)
        try:
            with breaker.request(prompt.caller):
                async with asyncio.timeout_at(clock.by):
                    members = self._request_members(prompt, dropped)
                    response = await connection().server.stream(COMPLETIONS, members)
        except CircuitOpen as error:
            raise ServerUnavailable(error.seconds) from None
        except TimeoutError:
            raise ModelError("upstream_timeout", detail="no response in time") from None
        except openai.APIError as error:
            raise self._recorded(breaker, translated(error), prompt.caller) from None
        except (httpx2.InvalidURL, ValueError) as error:
            # The configured URL or key is unusable in a request.
            raise ModelError("upstream_misconfigured", detail=type(error).__name__) from None
        breaker.record_success()
        try:
            body = GatheredBody(pieces(response))
            async with aclosing(completion_stream.parts(body, clock)) as parts:
                async for part in parts:
                    yield part
        finally:
            response.release()

    def _request_members(self, prompt: Prompt, dropped: Set[str]) -> dict[str, Any]:
        wanted = prompt.generation
        members: dict[str, Any] = {
            "temperature": prompt.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        hints = {name: getattr(wanted, name) for name in HINTS}
        members |= {name: value for name, value in hints.items() if value is not None}
        if wanted.stop:
            members["stop"] = list(wanted.stop)
        if wanted.max_tokens is not None:
            refused = "max_tokens" in dropped | connection().refused
            members["max_completion_tokens" if refused else "max_tokens"] = wanted.max_tokens
        if (form := wanted.json) and form.schema is None:
            members["response_format"] = {"type": "json_object"}
        elif form and form.schema is not None:
            described: dict[str, Any] = {"name": form.name, "schema": dict(form.schema)}
            if form.description:
                described["description"] = form.description
            if form.strict is not None:
                described["strict"] = form.strict
            members["response_format"] = {"type": "json_schema", "json_schema": described}
        accepted = {name: value for name, value in members.items() if name not in dropped}
        return self._members(messages(prompt), **accepted)

    @staticmethod
    def _recorded(breaker: CircuitBreaker, error: ModelError, caller: str) -> ModelError:
        if error.code == "upstream_unavailable":
            breaker.record_failure(error.retry_after, caller)
        elif error.code != "upstream_timeout":
            breaker.record_success()
        return error

    async def _prepare_retry(self, prompt: Prompt, error: ModelError) -> Prompt:
        """Wait, or shorten the request, as the error suggests.

        Raises the error if a retry is pointless.
        """
        if error.code == "context_overflow" and (prompt.earlier or len(prompt.sources) > 1):
            kept = max(1, len(prompt.sources) // 2)
            labels = {source.label for source in prompt.sources[:kept]}
            pages = [page for page in prompt.pages if page.label in labels]
            return replace(prompt, earlier=prompt.earlier[-2:], sources=prompt.sources[:kept], pages=pages)
        if (
            error.retry_after is None
            or error.retry_after > MAX_WAIT_SECONDS
            or isinstance(error, ServerUnavailable)
        ):
            raise error
        await asyncio.sleep(error.retry_after)
        return prompt

    def _members(self, conversation: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
        """The members of a request, without those that this server has refused."""
        refused = connection().refused
        accepted = {name: value for name, value in members.items() if name not in refused}
        return {"model": self.name, "messages": conversation, **accepted}

    async def _side(self, name: str, messages: list[dict[str, str]], tokens: int = SIDE_TOKENS) -> str:
        """Ask for a short text in addition to the answer; return an empty text if the model fails."""
        if connection().breaker(self.name).is_open():
            return ""
        conversation = [{"role": "system", "content": instructions(name)}, *messages]
        members = self._members(conversation, temperature=0, max_tokens=tokens)
        try:
            async with asyncio.timeout(SIDE_SECONDS):
                data = await connection().server.post(COMPLETIONS, members)
            content = json.loads(data)["choices"][0]["message"]["content"]
            text = "".join(part.text for part in content_parts(content) if isinstance(part, Text))
            return completion_stream.storable(text)
        except openai.APIStatusError as error:
            refused = translated(error)
            # Check whether this request contained the member, not whether `connection().refused` lacks it: a
            # concurrent request may have added it meanwhile.
            if isinstance(refused, MemberRefused) and refused.name in members.keys() - {"model", "messages"}:
                connection().refused.add(refused.name)
                return await self._side(name, messages, tokens)
            logger.warning("The model gave no %s: %s", name, describe_error(error))
        except (TimeoutError, ModelError, openai.OpenAIError) as error:
            logger.warning("The model gave no %s: %s", name, describe_error(error))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            logger.warning("The model's %s cannot be read: %s", name, type(error).__name__)
        return ""
