"""OpenAI's chat completions, for any client of that API.

The responses have additional members: `sources`, `verification` and, in some cases, `grade` and `verified`.
"""

import re
from collections.abc import Mapping
from typing import Any

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    Json,
    MessageDone,
    RunResult,
    Started,
    TextDelta,
    Usage,
)
from chat.protocols import validators
from chat.protocols.answer_context import envelope, usage, verification, verified
from chat.protocols.request_body import body_object
from chat.protocols.single_message import SingleMessageEncoder
from chat.protocols.validators import Reader
from chat.requests import InvalidRequest, RunRequest

from . import openai_members as shared
from .openai_members import (
    RequestMessages,
)

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
DONE = "[DONE]"
BRACKET = re.compile(r"\[([^\[\]\n]{1,400})\]")  # pattern of a citation
FILTERED = "content_filter"
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
# Request members that chat completions and completions share, in addition to CHAT_HARMLESS.
WRITING: Mapping[str, Reader | None] = {
    **shared.SAMPLING,
    "temperature": shared.TEMPERATURE,
    "max_tokens": shared.MAX_OUTPUT,
    "stop": shared.stop_sequences,
    "model": validators.require_text,
    "stream": validators.require_boolean,
    "stream_options": validators.require_object,
}
KNOWN: Mapping[str, Reader | None] = {
    **WRITING,
    **shared.CHAT_HARMLESS,
    "messages": None,
    "max_completion_tokens": shared.MAX_OUTPUT,
    "response_format": None,
    "reasoning_effort": shared.EFFORT,
    "verbosity": shared.VERBOSITY,
    "chat_template_kwargs": validators.require_object,  # of vLLM: a hint such as `enable_thinking`
    "tools": None,
    "tool_choice": None,
    "functions": None,
    "function_call": None,
}


class OpenAI:
    """The protocol. Each request contains the whole conversation, which the history does not list."""

    stream_type = "text/event-stream"
    gap = 0.0
    images_member = "messages"
    site = ""  # the site's URL, prepended to the paths of documents
    # The request member to which a failure of the model is attributed, by error code.
    members: Mapping[str, str] = {"format_refused": "response_format", "length_refused": "max_tokens"}

    def __init__(self, *, counts: bool = False, json: bool = False) -> None:
        """`counts` is `stream_options.include_usage`: whether a stream ends with its token counts.

        With `json`, the answer is a JSON object, and the site's own sentence that nothing was found is sent
        as a refusal.
        """
        self._counts = counts
        self._json = json

    @classmethod
    def of(cls, body: Any) -> "OpenAI":
        """The protocol with the settings of this request body. Raises InvalidRequest."""
        members = body_object(body)
        return cls(counts=counts_usage(members), json=_format(members) is not None)

    def parse(self, body: Any) -> RunRequest:
        members = body_object(body)
        found = shared.read_members(members, KNOWN)
        shared.check_tools(members)
        shared.check_tools(members, "functions", "function_call")
        limits = [found[name] for name in ("max_tokens", "max_completion_tokens") if name in found]

        messages = validators.require_list(members.get("messages"), "messages")
        if not messages:
            raise InvalidRequest("“messages” must not be empty.", "messages")
        collected = RequestMessages()
        for place, message in enumerate(messages):
            member = f"messages[{place}]"
            if not isinstance(message, dict):
                raise InvalidRequest(f"“{member}” must be an object.", member)
            role = validators.require_choice(message.get("role"), f"{member}.role", ROLES)
            text = collected.text(role, message.get("content"), f"{member}.content", _part)
            collected.add(role, text, member)

        return collected.request(
            "messages",
            options=shared.options(found),
            listed=False,
            generation=shared.generation(
                found,
                max_tokens=min(limits, default=None),
                stop=found.get("stop", ()),
                json=_format(members),
                reasoning_effort=found.get("reasoning_effort"),
                verbosity=found.get("verbosity"),
            ),
        )

    def streams(self, body: Any) -> bool:
        return validators.optional_boolean(body_object(body).get("stream"), "stream")

    def encoder(self) -> SingleMessageEncoder:
        return SingleMessageEncoder(OpenAIEncoder(self, counts=self._counts).encode)

    def full_response(self, result: RunResult) -> tuple[int, Json]:
        code = "internal" if result.end is None else ""
        if isinstance(result.end, Failed):
            code = result.end.code
        if code and code != FILTERED:
            return errors.status(code), self.failure(code)
        assert result.started is not None
        reason = code or (result.done.finish_reason if result.done else "stop")
        return 200, self.envelope(result.started, streamed=False) | {
            "choices": [
                self.choice(
                    result.text,
                    reason,
                    refused=bool(code) and not result.text,
                    noted=self.annotations(result.text, result.context),
                )
            ],
            "usage": usage(result.usage),
            "sources": sources(result.context),
            **verification(result.verification, result.grade),
            **verified(result.context),
        }

    def failure(self, code: str) -> Json:
        """The body of an error of :mod:`chat.errors`."""
        member = self.members.get(code, "")
        return self.error(errors.words(code), code, status=errors.status(code), member=member)

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": member or None, "code": code or None}}

    def envelope(self, started: Started, *, streamed: bool) -> Json:
        """The members of a response or chunk except its choices."""
        return envelope(started, "chat.completion.chunk" if streamed else "chat.completion")

    def annotations(self, text: str, context: ContextReady | None) -> list[Json]:
        """One annotation for each citation, with the URL of its document.

        Empty if the answer is JSON.
        """
        if context is None or self._json:
            return []
        known = {source.label: source for source in context.sources}
        return [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": match.start(),
                    "end_index": match.end(),
                    "title": source.label,
                    "url": self.site + source.address,
                },
            }
            for match in BRACKET.finditer(text)
            if (source := known.get(match[1]))
        ]

    def choice(self, text: str, reason: str, *, refused: bool, noted: list[Json]) -> Json:
        """The choice for a complete answer; if `refused`, `reason` is the code of an error."""
        content = {"refusal": errors.words(reason)} if refused else self._content(text)
        message = {"role": "assistant", "content": None, "refusal": None, "annotations": noted} | content
        return {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}

    def piece(self, text: str | None, reason: str | None) -> Json:
        """The choice of a chunk: the role, the next text, or the end."""
        delta = (
            {} if reason else {"role": "assistant", "content": ""} if text is None else self._content(text)
        )
        return {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}

    def _content(self, text: str) -> Json:
        return {"refusal" if self._json and is_refusal(text) else "content": text}


class OpenAIEncoder:
    """Encodes the chunks of a stream.

    The chunk with the finish reason also has the sources. [DONE] comes last, unless the run failed for
    a reason other than the content filter.
    """

    def __init__(self, form: OpenAI, *, counts: bool = False) -> None:
        self._form = form
        self._counts = counts
        self._started: Started | None = None
        self._context: ContextReady | None = None
        self._usage: Usage | None = None
        self._text: list[str] = []
        self._refusing: bool | None = None  # whether the answer is a refusal; None before the first text
        self._ended = False

    def encode(self, event: Event) -> list[Any]:
        match event:
            case Started():
                self._started = event
                return [self._chunk(None)]
            case ContextReady():
                self._context = event
            case TextDelta():
                self._text.append(event.text)
                return [self._chunk(event.text)]
            case MessageDone():
                return [self._end(event.finish_reason) | verification(event.verification, event.grade)]
            case Usage():
                self._usage = event
            case Finished():
                return [*([] if self._ended else [self._end("stop")]), *self._count(), DONE]
            case Failed(code=code) if code == FILTERED and self._started:
                return [self._end(FILTERED), *self._count(), DONE]
            case Failed():
                return [self._form.failure(event.code)]
        return []

    def _end(self, reason: str) -> Json:
        self._ended = True
        chunk = self._chunk(None, reason)
        noted = self._form.annotations("".join(self._text), self._context)
        if noted and "delta" in chunk["choices"][0]:
            chunk["choices"][0]["delta"] = {"annotations": noted}
        return chunk | {"sources": sources(self._context)} | verified(self._context)

    def _count(self) -> list[Json]:
        """A chunk with the token counts and no choices, if the client requested it."""
        if not self._counts or self._started is None:
            return []
        last = self._form.envelope(self._started, streamed=True)
        return [last | {"choices": [], "usage": usage(self._usage)}]

    def _chunk(self, text: str | None, reason: str | None = None) -> Json:
        assert self._started is not None
        choice = self._form.piece(text, reason)
        if text is not None:
            if self._refusing is None:
                self._refusing = "refusal" in choice.get("delta", {})
            elif "delta" in choice:  # the first text decides whether the answer is a refusal
                choice["delta"] = {"refusal" if self._refusing else "content": text}
        return self._form.envelope(self._started, streamed=True) | {"choices": [choice]}


def is_refusal(text: str) -> bool:
    """Whether an answer that should be JSON is the site's sentence that nothing was found."""
    return not text.startswith("{")


def model(name: str, created: int) -> Json:
    """The body of `GET /v1/models/{id}`."""
    return {"id": name, "object": "model", "created": created, "owned_by": "chatsite"}


def models(name: str, created: int) -> Json:
    """The body of `GET /v1/models`."""
    return {"object": "list", "data": [model(name, created)]}


def sources(context: ContextReady | None) -> list[Json]:
    """The passages from which an answer is written."""
    if context is None:
        return []
    return [
        {"sourcepage": source.label, "title": source.title, "content": source.content, "score": source.score}
        for source in context.sources
    ]


def counts_usage(members: Mapping[str, Any]) -> bool:
    wanted = validators.require_object(members.get("stream_options"), "stream_options")
    for name, value in wanted.items():
        member = f"stream_options.{name[:100]}"
        if name not in ("include_usage", "include_obfuscation") and value is not None:
            raise InvalidRequest(f"“{member}” is not supported here.", member)
        validators.require_boolean(False if value is None else value, member)
    return bool(wanted.get("include_usage"))


def _format(members: Mapping[str, Any]) -> Any:
    given = members.get("response_format")
    return None if given is None else shared.json_format(given, "response_format", nested=True)


def _part(collected: RequestMessages, role: str, part: Any, member: str) -> str | None:
    """The text of one part of a message; None for an image, which is added to `collected`."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" or (kind == "refusal" and role == "assistant"):
        return validators.require_text(part.get(kind), f"{member}.{kind}")
    if kind == "image_url" and role == "user":
        given = validators.require_object(part.get("image_url"), f"{member}.image_url")
        collected.add_image(given.get("url"), f"{member}.image_url.url")
        return None
    raise InvalidRequest(f"“{member}” must be a text part or, in a user message, an image_url part.", member)
