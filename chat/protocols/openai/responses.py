"""OpenAI's Responses: a response is a run.

`previous_response_id` names the response whose conversation continues. A response's id is `resp_` with
the id of the run; a message's id is `msg_` with the id of the answer. Event numbers are computed from the
numbers of the run's events, so that any process can resume a stream after any event.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

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
from chat.protocols.answer_context import verification, verified
from chat.protocols.request_body import body_object
from chat.protocols.single_message import SingleMessageEncoder
from chat.protocols.validators import Reader
from chat.requests import InvalidRequest, RunRequest
from chat.sources import SourceView

from . import openai_members as shared
from .openai_chat import BRACKET, FILTERED, OpenAI, is_refusal, sources
from .openai_members import (
    RequestMessages,
)

STEP = 1_000  # event numbers of the protocol that are reserved for each event of the run
ITEM, PART = 2, 3  # numbers of the two events before the first text, independent of the run's events
MAX_ANNOTATION_EVENTS = 900  # annotation events in one response; the message itself contains all annotations
# Values of `include` that have no effect: the site sends no reasoning, and calls no tools that have results.
INCLUDED = (
    "reasoning.encrypted_content",
    "web_search_call.results",
    "web_search_call.action.sources",
    "file_search_call.results",
    "code_interpreter_call.outputs",
)
# The only accepted values of members of `reasoning` besides `effort`. They have no effect: a summary may be
# requested, but none is written.
REASONING = {"summary": "auto", "generate_summary": "auto", "context": "auto", "mode": "standard"}
# OpenAI's error codes by the site's; all other codes become server_error.
CODES = {"rate_limited": "rate_limit_exceeded"}
STATUSES = {"complete": "completed", "stopped": "cancelled"}  # by the state of Finished

KNOWN: Mapping[str, Reader | None] = {
    **shared.HARMLESS,
    "top_p": shared.SAMPLING["top_p"],
    "temperature": shared.TEMPERATURE,
    "max_output_tokens": shared.MAX_OUTPUT,
    "max_tool_calls": shared.MAX_OUTPUT,
    "model": validators.require_text,
    "instructions": validators.require_text,
    "stream": validators.require_boolean,
    "store": validators.require_boolean,
    "background": validators.require_boolean,
    "truncation": lambda value, member: validators.require_choice(value, member, ("auto", "disabled")),
    "input": None,
    "previous_response_id": None,
    "stream_options": None,
    "text": None,
    "reasoning": None,
    "include": None,
    "tools": None,
    "tool_choice": None,
}
# Request members that the response repeats, with their defaults.
ECHO: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
_ID = re.compile(r"(resp|msg)_([0-9a-f]{32})")
_TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output")
# Items that other models have produced. What a hosted tool found is also in the answer after its call.
_IGNORED_ITEMS = (
    "function_call",
    "custom_tool_call",
    "reasoning",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
)


def response_id(run_id: str) -> str:
    return f"resp_{UUID(run_id).hex}"


def message_id(answer_id: str) -> str:
    return f"msg_{UUID(answer_id).hex}"


def row_id(value: Any, kind: str, member: str) -> UUID:
    """The row's id in a prefixed id. If it is malformed, raises the same error as for a missing row."""
    found = _ID.fullmatch(validators.require_text(value, member))
    if found is None or found[1] != kind:
        raise InvalidRequest(errors.words("answer_not_found"), member, status=404)
    return UUID(found[2])


class Responses(OpenAI):
    """The protocol for one request or one stored response."""

    images_member = "input"
    members: Mapping[str, str] = {"format_refused": "text.format", "length_refused": "max_output_tokens"}

    def __init__(self, echo: Mapping[str, Any] | None = None, *, after: int = -1) -> None:
        """`echo` has the stored members of the request. A stream contains events numbered above `after`."""
        self.echo = dict(echo or {})
        self.previous: UUID | None = None
        self.references: tuple[UUID, ...] = ()  # ids of the site's messages that the input refers to
        self.known: Mapping[UUID, str] = {}  # the texts of these messages
        self._after = after

    @classmethod
    def of(cls, body: Any) -> "Responses":
        members = body_object(body)
        found = shared.read_members(members, KNOWN)
        _check_members(members, found)
        protocol = cls()
        protocol.echo = {name: found[name] for name in ECHO if name in found}
        for name in ("text", "reasoning"):
            if members.get(name) is not None:
                given = {key: value for key, value in members[name].items() if value is not None}
                protocol.echo[name] = {**ECHO[name], **given}
        if members.get("previous_response_id") is not None:
            member = "previous_response_id"
            protocol.previous = row_id(members[member], "resp", member)
            protocol.echo[member] = members[member]
        given_input = members.get("input")
        protocol.references = tuple(
            row_id(item.get("id"), "msg", f"input[{place}].id")
            for place, item in enumerate(given_input if isinstance(given_input, list) else ())
            if isinstance(item, dict) and item.get("type") == "item_reference"
        )
        shared.storable(protocol.echo, "metadata")
        return protocol

    @property
    def background(self) -> bool:
        return bool(self.echo.get("background"))

    def parse(self, body: Any) -> RunRequest:
        members = body_object(body)
        found = shared.read_members(members, KNOWN)
        collected = RequestMessages()
        if "instructions" in found:
            collected.add("system", found["instructions"], "instructions")
        self._read_input(collected, members.get("input"))
        text, effort = members.get("text") or {}, (members.get("reasoning") or {}).get("effort")
        request = collected.request(
            "input",
            options=shared.options(found),
            listed=found.get("store", True) and not any(turn.role == "assistant" for turn in collected.turns),
            generation=shared.generation(
                found,
                max_tokens=found.get("max_output_tokens"),
                json=_format(text),
                reasoning_effort=effort,
                verbosity=text.get("verbosity"),
            ),
            echo=self.echo,
        )
        if self.previous is None:
            return request
        if any(turn.role != "user" for turn in collected.turns):
            words = "With “previous_response_id”, “input” must contain only user messages."
            raise InvalidRequest(words, "input")
        # All input messages are new, and together form the question.
        return replace(request, question="\n\n".join(turn.content for turn in collected.turns), earlier=())

    def encoder(self) -> "ResponsesEncoder":  # type: ignore[override]
        return ResponsesEncoder(self, self._after)

    def full_response(self, result: RunResult) -> tuple[int, Json]:
        if result.end is None or (isinstance(result.end, Failed) and result.end.code != FILTERED):
            code = result.end.code if result.end else "internal"
            return errors.status(code), self.failure(code)
        return 200, self.response(result)

    def response(self, result: RunResult, *, queued: bool = False) -> Json:
        """The response object for any state of its run."""
        assert result.started is not None
        status, error, incomplete = _outcome(result)
        if result.end is None:
            status = "queued" if queued else "in_progress"
        found = [
            source for message in result.messages if message.context for source in message.context.sources
        ]
        output = []
        if result.end and result.text:
            state = "completed" if result.done else "incomplete"
            output = [self.message(result.started, result.text, found, state)]
        counted = result.usage or Usage(0, 0)
        usage = {
            "input_tokens": counted.prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": counted.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": counted.prompt + counted.completion,
        }
        return {
            "id": response_id(result.started.run_id),
            "object": "response",
            "created_at": int(datetime.fromisoformat(result.started.created_at).timestamp()),
            "status": status,
            "error": error,
            "incomplete_details": incomplete,
            "model": result.started.model,
            "output": output,
            "usage": usage if result.end else None,
            **ECHO,
            **self.echo,
            "sources": sources(result.context),
            **verification(result.verification, result.grade),
            **verified(result.context),
        }

    def message(self, started: Started, text: str, found: Iterable[SourceView], status: str) -> Json:
        return {
            "id": message_id(started.answer_id),
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [self.part(text, annotations(text, found))],
        }

    def part(self, text: str, noted: list[Json]) -> Json:
        """The text with its annotations as a part of a message; a refusal if :meth:`refuses` is true."""
        if self.refuses(text):
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": noted, "logprobs": []}

    def refuses(self, text: str) -> bool:
        """Whether JSON was requested and the text is the site's sentence that nothing was found."""
        kind = self.echo.get("text", ECHO["text"])["format"]["type"]
        return kind != "text" and bool(text) and is_refusal(text)

    def _read_input(self, collected: RequestMessages, given: Any) -> None:
        if isinstance(given, str):
            collected.add("user", validators.require_text(given, "input"), "input")
            return
        items = validators.require_list(given, "input")
        if not items:
            raise InvalidRequest("“input” must not be empty.", "input")
        for place, item in enumerate(items):
            self._read_item(collected, item, f"input[{place}]")

    def _read_item(self, collected: RequestMessages, item: Any, member: str) -> None:
        if not isinstance(item, dict):
            raise InvalidRequest(f"“{member}” must be an object.", member)
        kind = item.get("type")
        if kind == "item_reference":
            text = self.known.get(row_id(item.get("id"), "msg", f"{member}.id"))
            if text is None:
                raise InvalidRequest(errors.words("answer_not_found"), f"{member}.id", status=404)
            collected.add("assistant", text, member)
        elif kind in _TOOL_OUTPUTS:
            collected.add(
                "tool", collected.text("tool", item.get("output"), f"{member}.output", _part), member
            )
        elif kind in (None, "message"):
            role = validators.require_choice(
                item.get("role"), f"{member}.role", ("user", "assistant", "system", "developer")
            )
            collected.add(role, collected.text(role, item.get("content"), f"{member}.content", _part), member)
        elif kind not in _IGNORED_ITEMS:
            raise InvalidRequest(f"“{member}” is of a type that is not supported here.", member)


class ResponsesEncoder:
    """Encodes a stream in the published sequence of events."""

    def __init__(self, form: Responses, after: int) -> None:
        self._form = form
        self._after = after
        self._single = SingleMessageEncoder(self._events)
        self._result = RunResult()
        self._sources: list[SourceView] = []
        self._text: list[str] = []
        self._number, self._count = 1, 0
        self._open = self._refusing = self._item_done = False

    def encode(self, event: Event) -> list[Any]:
        """The error event for a run that can no longer be followed, although it may continue."""
        assert isinstance(event, Failed)
        words = errors.words(event.code)
        return [self._event("error", code=event.code, message=words, param=None)]

    def numbered(self, number: int, event: Event) -> list[Any]:
        """The protocol events for the run's event with this number."""
        self._number, self._count = number, 0
        self._result.add(event)
        if isinstance(event, ContextReady):
            self._sources += event.sources
        if isinstance(event, Failed) and event.remaining is not None:
            self._sources, self._text = self._result.sources, [self._result.text]
        return [each for each in self._single.encode(event) if each["sequence_number"] > self._after]

    def ending(self, result: RunResult, number: int) -> list[Json]:
        """The final events of a response whose run has ended; `number` is that of the run's last event."""
        self._result, self._number, self._count = result, number, 0
        found = [
            source for message in result.messages if message.context for source in message.context.sources
        ]
        self._sources, self._text = found, [result.text]
        # A response that ended before its first word has no item.
        self._open, self._refusing = bool(result.text), self._form.refuses(result.text)
        return self._ended()

    def _events(self, event: Event) -> list[Json]:
        match event:
            case Started():
                first = self._form.response(self._result, queued=self._form.background)
                return [
                    self._event("response.created", response=first),
                    self._event("response.in_progress", response=self._form.response(self._result)),
                ]
            case TextDelta(text):
                before = self._opened(text)
                self._text.append(text)
                kind = "refusal" if self._refusing else "output_text"
                delta = self._event(f"response.{kind}.delta", **self._place(), delta=text)
                return [*before, delta if self._refusing else delta | {"logprobs": []}]
            case MessageDone():
                return [*self._opened(""), *self._done("completed")]
            case Finished() | Failed():
                return self._ended()
        return []

    def _opened(self, text: str) -> list[Json]:
        """The protocol's events before the first text."""
        if self._open:
            return []
        self._open, self._refusing = True, self._form.refuses(text)
        part = self._form.part(text, []) | {"refusal" if self._refusing else "text": ""}
        item = self._item("in_progress") | {"content": []}
        return [
            self._event("response.output_item.added", ITEM, output_index=0, item=item),
            self._event("response.content_part.added", PART, **self._place(), part=part),
        ]

    def _done(self, status: str) -> list[Json]:
        """The protocol's events after the last text."""
        self._item_done = True
        item = self._item(status)
        part = item["content"][0]
        events = []
        for place, note in enumerate(part.get("annotations", [])[:MAX_ANNOTATION_EVENTS]):
            where = self._place() | {"annotation_index": place}
            events.append(self._event("response.output_text.annotation.added", **where, annotation=note))
        if self._refusing:
            events.append(self._event("response.refusal.done", **self._place(), refusal=part["refusal"]))
        else:
            text = {"text": part["text"], "logprobs": []}
            events.append(self._event("response.output_text.done", **self._place(), **text))
        events.append(self._event("response.content_part.done", **self._place(), part=part))
        events.append(self._event("response.output_item.done", output_index=0, item=item))
        return events

    def _ended(self) -> list[Json]:
        before = []
        if self._open and not self._item_done:
            before = self._done("completed" if self._result.done else "incomplete")
        response = self._form.response(self._result)
        kind = {"completed": "completed", "failed": "failed"}.get(response["status"], "incomplete")
        return [*before, self._event(f"response.{kind}", response=response)]

    def _item(self, status: str) -> Json:
        assert self._result.started is not None
        return self._form.message(self._result.started, "".join(self._text), self._sources, status)

    def _place(self) -> Json:
        assert self._result.started is not None
        return {"item_id": message_id(self._result.started.answer_id), "output_index": 0, "content_index": 0}

    def _event(self, kind: str, number: int | None = None, **members: Any) -> Json:
        if number is None:
            number = (self._number - 1) * STEP + self._count
            self._count += 1
        return {"type": kind, **members, "sequence_number": number}


def annotations(text: str, found: Iterable[SourceView]) -> list[Json]:
    """The citations in a text as annotations; `index` is the position of the opening bracket."""
    known = {source.label: source for source in found}
    return [
        {
            "type": "file_citation",
            "file_id": source.document_id,
            "filename": source.sourcefile,
            "index": match.start(),
        }
        for match in BRACKET.finditer(text)
        if (source := known.get(match[1]))
    ]


def _outcome(result: RunResult) -> tuple[str, Json | None, Json | None]:
    """The members `status`, `error` and `incomplete_details` of a response."""
    end = result.end
    if isinstance(end, Failed):
        if end.code == FILTERED:
            return "incomplete", None, {"reason": "content_filter"}
        error = {"code": CODES.get(end.code, "server_error"), "message": errors.words(end.code)}
        return "failed", error, None
    if result.done and result.done.finish_reason == "length":
        return "incomplete", None, {"reason": "max_output_tokens"}
    return STATUSES.get(end.state if end else "", "completed"), None, None


def _check_members(members: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Check the members of a request. Raises InvalidRequest for features that this site lacks."""
    shared.check_tools(members, form="text.format")
    OpenAI.of({"stream_options": members.get("stream_options")})
    text = _known(members, "text", ("format", "verbosity"))
    _format(text)
    if text.get("verbosity") is not None:
        shared.VERBOSITY(text["verbosity"], "text.verbosity")
    reasoning = _known(members, "reasoning", ("effort", *REASONING))
    if reasoning.get("effort") is not None:
        shared.EFFORT(reasoning["effort"], "reasoning.effort")
    for name, neutral in REASONING.items():
        if reasoning.get(name) not in (None, neutral):
            member = f"reasoning.{name}"
            raise InvalidRequest(f"“{member}” must be “{neutral}”: nothing else is supported here.", member)
    for place, item in enumerate(validators.require_list(members.get("include") or [], "include")):
        validators.require_choice(item, f"include[{place}]", INCLUDED)
    if found.get("background") and found.get("store") is False:
        raise InvalidRequest("“background” needs “store”: the response is retrieved later.", "background")


def _known(members: Mapping[str, Any], name: str, names: Iterable[str]) -> dict[str, Any]:
    value = validators.require_object(members.get(name), name)
    for inner in value:
        if inner not in names and value[inner] is not None:
            member = f"{name}.{inner[:100]}"
            raise InvalidRequest(f"“{member}” is not supported here.", member)
    return value


def _format(text: Mapping[str, Any]) -> Any:
    given = text.get("format")
    return None if given is None else shared.json_format(given, "text.format", nested=False)


def _part(collected: RequestMessages, role: str, part: Any, member: str) -> str | None:
    """The text of one part of an item; None for an image, which is added to `collected`."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_text", "output_text", "text"):
        return validators.require_text(part.get("text"), f"{member}.text")
    if kind == "refusal" and role == "assistant":
        return validators.require_text(part.get("refusal"), f"{member}.refusal")
    if kind == "input_image" and role == "user":
        collected.add_image(part.get("image_url"), f"{member}.image_url")
        return None
    raise InvalidRequest(f"“{member}” must be a text part or, in a user message, an input_image.", member)
