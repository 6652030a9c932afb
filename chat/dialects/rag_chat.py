"""The RAG chat HTTP protocol: `message`, `delta`, `context`, `session_state`."""

from typing import Any
from uuid import UUID

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    FollowUps,
    Json,
    SourceView,
    Started,
    TextDelta,
    Thought,
    Whole,
)
from chat.requests import ChatRequest, InvalidRequest, Turn

from . import reading
from .overrides import options

ROLES = ("user", "assistant")
RESULTS_BEFORE = "Prompt"  # the step before which the results are told


class RagChat:
    """`decided` is False where the request names no session at all: the answer then names it both ways."""

    stream_type = "application/json-lines"

    def __init__(self, *, decided: bool = True) -> None:
        self._decided = decided

    def parse(self, body: Any) -> ChatRequest:
        if not isinstance(body, dict):
            raise InvalidRequest("The body must be a JSON object.")
        *earlier, last = _turns(body.get("messages"))
        if last.role != "user":
            raise InvalidRequest("The last message must be the user’s.", "messages")
        context = reading.an_object(body.get("context"), "context")
        overrides = reading.an_object(context.get("overrides"), "context.overrides")
        return ChatRequest(
            question=last.content,
            conversation_id=_session(body.get("session_state")),
            earlier=tuple(earlier),
            options=options(overrides),
        )

    def encoder(self) -> "RagChatEncoder":
        return RagChatEncoder(self._session_members)

    def whole(self, whole: Whole) -> tuple[int, Json]:
        if whole.end is None or isinstance(whole.end, Failed):
            code = whole.end.code if whole.end else "internal"
            return errors.ERRORS.get(code, errors.ERRORS["internal"]).status, self.error(errors.words(code))
        assert whole.started is not None
        context = _context(whole.context) if whole.context else {}
        if whole.followups:
            context["followup_questions"] = list(whole.followups)
        message = {"content": whole.text, "role": "assistant", "function_call": None, "tool_calls": None}
        return 200, {
            "message": message,
            "context": context,
            **self._session_members(whole.started.conversation_id),
        }

    def error(self, message: str) -> Json:
        return {"error": message}

    def _session_members(self, session: str) -> Json:
        members: Json = {"session_state": session}
        return members if self._decided else members | {"sessionState": session}


class RagChatEncoder:
    """The first chunk carries the context, the others parts of the answer."""

    def __init__(self, session_members: Any) -> None:
        self._session_members = session_members
        self._session: Json = {}

    def encode(self, event: Event) -> list[Json]:
        match event:
            case Started():
                self._session = self._session_members(event.conversation_id)
                return []
            case ContextReady():
                first = {"delta": {"role": "assistant"}, "context": _context(event), **self._session}
                return [first, {"delta": _delta(role="assistant")}]
            case TextDelta():
                return [{"delta": _delta(content=event.text)}]
            case FollowUps():
                context = {"followup_questions": list(event.questions)}
                return [{"delta": _delta(role="assistant"), "context": context, **self._session}]
            case Failed():
                return [{"error": errors.words(event.code)}]
        return []


def _turns(messages: Any) -> list[Turn]:
    turns: list[Turn] = []
    for index, message in enumerate(reading.a_list(messages, "messages")):
        member = f"messages[{index}]"
        if not isinstance(message, dict):
            raise InvalidRequest(f"“{member}” must be an object.", member)
        role = reading.one_of(message.get("role"), f"{member}.role", ROLES)
        content = reading.a_text(message.get("content"), f"{member}.content")
        turns.append(Turn("user" if role == "user" else "assistant", content))
    if not turns:
        raise InvalidRequest("“messages” must not be empty.", "messages")
    return turns


def _session(value: Any) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(reading.a_text(value, "session_state"))
    except ValueError:
        # Not an id of ours: told as any other conversation that the caller does not have.
        raise InvalidRequest(errors.words("not_found"), "session_state", status=404) from None


def _delta(content: str | None = None, role: str | None = None) -> Json:
    return {"content": content, "function_call": None, "role": role, "tool_calls": None}


def _context(context: ContextReady) -> Json:
    texts = [f"{source.label}: {' '.join(source.content.split())}" for source in context.sources]
    return {"data_points": {"text": texts}, "thoughts": _thoughts(context)}


def _thoughts(context: ContextReady) -> list[Json]:
    told: list[Json] = []
    for thought in context.thoughts:
        if thought.title == RESULTS_BEFORE:
            told.append(_thought(Thought("Results", [_result(source) for source in context.sources])))
            told.append(_thought(_with_sources(thought, context)))
        else:
            told.append(_thought(thought))
    return told


def _with_sources(prompt: Thought, context: ContextReady) -> Thought:
    question = str(context.thoughts[0].description)
    lines = "\n".join(f"{source.label}: {' '.join(source.content.split())}" for source in context.sources)
    text = repr(question + "\n\nSources:\n" + lines)
    return Thought(
        prompt.title, [*prompt.description, f"{{'role': 'user', 'content': {text}}}"], prompt.props
    )


def _thought(thought: Thought) -> Json:
    props = dict(thought.props) if thought.props else None
    return {"title": thought.title, "description": thought.description, "props": props}


def _result(source: SourceView) -> Json:
    return {
        "id": f"file-{source.document_id}-passage-{source.passage_id}",
        "content": source.content,
        "embedding": None,
        "imageEmbedding": None,
        "category": source.category or None,
        "sourcepage": source.label,
        "sourcefile": source.sourcefile,
        "oids": [],
        "groups": [],
        "captions": [],
        "score": source.score,
    }
