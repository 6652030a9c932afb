"""The Chat UI protocol, its minimal format, and the responses for its client, ChatUI.

In a stream, each event contains the whole text so far; there are at most ten events a second. The minimal
format has one event for each finished message.
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from chat import errors
from chat.events import (
    ContextReady,
    Event,
    Failed,
    Finished,
    Json,
    MessageDone,
    MessageStarted,
    Rechecked,
    RunResult,
    Started,
    TextDelta,
)
from chat.requests import RunRequest
from chat.sources import SourceView
from chat.statements import Statement, after_edits, to_api

from . import validators
from .ai_chat_protocol import AiChatProtocol
from .answer_context import graded, verified
from .rag_chat import whole_context
from .request_body import (
    body_object,
    conversation,
    images,
    session,
)

INTERVAL = 0.1  # minimum seconds between two events of a stream
SNIPPET = 300  # characters of a source's excerpt
# The client shows text as Markdown, so citations are sent as links; the client sends these back unchanged.
_CITATION = re.compile(r"\[([^\[\]\n]+)\](?!\()")
_CITATION_LINK = re.compile(r"\[([^\[\]\n]+)\]\(/content/[0-9a-f-]{36}/[^()\[\]\s]*\)")
CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    500: "internal",
    503: "busy",
}


class ChatUi:
    """The protocol. The site lists a conversation only if the body names it.

    Otherwise each request contains the earlier messages, and the client itself saves them at /chat-history.
    """

    stream_type = "text/event-stream"
    gap = INTERVAL  # some clients treat data that arrives together as a single event
    team = False

    def parse(self, body: Any) -> RunRequest:
        members = body_object(body)
        # Ignore system messages: the client shows each error as a system message, and sends it back.
        earlier, question = conversation(members, dropped_role="system")
        images(members)  # raises InvalidRequest for images, which this protocol does not support
        conversation_id = members.get("conversationId")
        if conversation_id is not None:
            validators.require_text(conversation_id, "conversationId")
        named = session(conversation_id, "conversationId")
        said = tuple(replace(turn, content=_CITATION_LINK.sub(r"[\1]", turn.content)) for turn in earlier)
        return RunRequest(question, named, earlier=said, listed=named is not None, team=self.team)

    def encoder(self) -> "ChatUiEncoder":
        return ChatUiEncoder(team=self.team)

    def full_response(self, result: RunResult) -> tuple[int, Any]:
        if result.end is None or (isinstance(result.end, Failed) and not result.text):
            code = result.end.code if result.end else "internal"
            return errors.status(code), self.error(errors.words(code), code)
        return 200, self.body(result)

    def body(self, result: RunResult) -> Any:
        """The body of an answer; if the run failed, it has the text so far."""
        return _messages(ChatUiEncoder(lambda: 0.0), result)[-1]

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        return {"error": {"message": message, "code": code or CODES.get(status, "invalid_request")}}


class ChatUiWithMessage(ChatUi):
    """Chat UI's answer, with `message` and `context` of the AI Chat Protocol added.

    A request without a session does not say which of these protocols its client uses. The answer has no
    `sessionState` either, so a client of the AI Chat Protocol sends the whole conversation again.
    """

    def full_response(self, result: RunResult) -> tuple[int, Any]:
        status, answer = super().full_response(result)
        if status != 200:
            return status, answer
        # Built from the result: for a run that failed, the AI Chat Protocol itself sends only the error.
        members = AiChatProtocol().answer(result.text)
        if result.context or not isinstance(result.end, Failed):
            members["context"] = whole_context(result)
        return status, answer | members


class TeamChatUi(ChatUi):
    """The multi-agent mode: each agent's answer is a separate message.

    A response that is not streamed is an array of messages.
    """

    team = True

    def body(self, result: RunResult) -> Any:
        return _messages(ChatUiEncoder(lambda: 0.0, team=True), result)


def _messages(encoder: "ChatUiEncoder", result: RunResult) -> list[Json]:
    """The last state of each message.

    An error after a complete message belongs to that message. Without any message, it is the only element.
    """
    latest: dict[str, Json] = {}
    error: Json = {}
    for event in result.as_events():
        for chunk in encoder.encode(event):
            if "messageId" in chunk:
                latest[chunk["messageId"]] = chunk
            else:
                error = chunk
    states = list(latest.values())
    if error and states:
        states[-1] |= {"status": "failed"} | error
    return states or ([error] if error else [])


class ChatUiMessages(ChatUi):
    """The response for ChatUI since May 2025: an object with `messages`, never a stream."""

    stream_type = "application/json"

    def body(self, result: RunResult) -> Any:
        messages: list[Json] = []
        for message in _messages(ChatUiEncoder(lambda: 0.0, team=self.team), result):
            # `astimezone` uses the site's time zone, which Django sets for the process. The client stores the
            # messages, and later reads some values under the names that are added here.
            clock = datetime.fromisoformat(message["createdAt"]).astimezone().strftime("%I:%M %p")
            agent = {"agentIdentifier": message["agentName"]} if "agentName" in message else {}
            messages.append(message | {"id": message["messageId"], "timestamp": clock} | agent)
        return {"messages": messages}

    def error(self, message: str, code: str = "", *, status: int = 400, member: str = "") -> Json:
        """The body of a refusal: `error` from the specification, and `message`, which the client shows."""
        return super().error(message, code, status=status, member=member) | {"message": message}


class TeamChatUiMessages(ChatUiMessages):
    """Like ChatUiMessages, with a separate message for each agent's answer."""

    team = True


class _MessageEncoder:
    """The state of the message that is being encoded."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._begin_message(MessageStarted("", "", ""))

    def _begin_message(self, message: MessageStarted) -> None:
        self._message = message
        self._text: list[str] = []
        self._sources: tuple[SourceView, ...] = ()
        self._cited: tuple[str, ...] = ()
        self._statements: tuple[Statement, ...] = ()
        self._verified: Json = {}
        self._graded: Json = {}

    def _withdraw(self, end: Failed) -> None:
        """Reduce the message to what its reader may see, if the run ended because of a withdrawn source."""
        rest = next(
            (each for each in end.remaining or () if each.message_id == self._message.message_id), None
        )
        if rest:
            self._text, self._sources = [rest.text], rest.context.sources if rest.context else ()
            self._finish(rest.done)

    def _finish(self, done: MessageDone | None) -> None:
        self._cited, self._statements = (done.citations, done.verification) if done else ((), ())
        self._graded = graded(done.grade) if done else {}


class ChatUiEncoder(_MessageEncoder):
    """Encodes messages one after the other.

    A team's first message begins when its agent is known. `clock` returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, team: bool = False) -> None:
        super().__init__()
        self._clock = clock
        self._team = team
        self._open = False
        self._sent_at = float("-inf")

    def encode(self, event: Event) -> list[Json]:
        match event:
            case Started():
                self._started = event
                return (
                    [] if self._team else self._begin(MessageStarted(event.answer_id, "", event.created_at))
                )
            case MessageStarted():
                return self._begin(event)
            case ContextReady():
                self._sources, self._verified = event.sources, verified(event)
            case TextDelta():
                if self._team and not self._open and self._started:
                    # Without active agents, the site answers by itself.
                    self._begin(MessageStarted(self._started.answer_id, "", self._started.created_at))
                self._text.append(event.text)
                if self._clock() - self._sent_at >= INTERVAL:
                    self._sent_at = self._clock()
                    return [self._state("processing")]
            case MessageDone():
                self._finish(event)
                return self._end("completed") if self._message.agent else []
            case Rechecked():
                self._statements = event.verification
                if self._message.message_id and not self._open:
                    return [self._state("completed")]  # an agent's message has ended before
            case Finished():
                return self._end("completed")
            case Failed():
                self._withdraw(event)
                error = ChatUi().error(errors.words(event.code), event.code)
                return self._end("failed", error["error"]) or [error]
        return []

    def _begin(self, message: MessageStarted) -> list[Json]:
        # Without agents, a team's context comes before its only message begins, so it is kept.
        if self._message.message_id and message.message_id != self._message.message_id:
            self._begin_message(message)
        self._message, self._open, self._sent_at = message, True, self._clock()
        return [self._state("processing")]

    def _end(self, status: str, error: Json | None = None) -> list[Json]:
        if not self._open:
            return []
        self._open = False
        return [self._state(status, error)]

    def _state(self, status: str, error: Json | None = None) -> Json:
        assert self._started is not None
        text = "".join(self._text)
        more: Json = {"agentName": self._message.agent} if self._message.agent else {}
        if self._statements:
            more["verification"] = verification(text, self._sources, self._statements)
        cited = [
            {
                "id": f"{source.document_id}-{source.passage_id}",
                "title": source.title,
                "url": source.address,
                "snippet": " ".join(source.content.split())[:SNIPPET],
            }
            for source in self._sources
            if source.label in self._cited
        ]
        return {
            "messageId": self._message.message_id,
            "conversationId": self._started.conversation_id,
            "status": status,
            "role": "assistant",
            "content": with_links(text, self._sources),
            "contentType": "markdown",
            **more,
            **self._graded,
            **self._verified,
            "sources": cited,
            "error": error,
            "createdAt": self._message.created_at,
        }


class ChatUiMinimal(ChatUi):
    """The "Minimal Response Format": an array of messages, or a stream of them.

    A stream has one event for each message.
    """

    def encoder(self) -> "MinimalEncoder":  # type: ignore[override]
        return MinimalEncoder()

    def body(self, result: RunResult) -> Any:
        encoder = MinimalEncoder()
        return [chunk for event in result.as_events() for chunk in encoder.encode(event)]


class TeamChatUiMinimal(ChatUiMinimal):
    """Like ChatUiMinimal, with a separate message for each agent's answer."""

    team = True


class MinimalEncoder(_MessageEncoder):
    """One event for each finished message, because the client shows every event as a new message."""

    def __init__(self) -> None:
        super().__init__()
        self._sent_id = ""  # of the last message that was sent

    def encode(self, event: Event) -> list[Json]:
        match event:
            case Started():
                self._started = event
                self._message = MessageStarted(event.answer_id, "", event.created_at)
            case MessageStarted():
                self._begin_message(event)
            case ContextReady():
                self._sources, self._verified = event.sources, verified(event)
            case TextDelta():
                self._text.append(event.text)
            case MessageDone():
                self._finish(event)
                return self._whole_message() if self._message.agent else []
            case Rechecked():
                self._statements = event.verification
            case Finished():
                return self._whole_message() if self._text else []
            case Failed():
                if self._started is None or self._message.message_id == self._sent_id:
                    return [ChatUi().error(errors.words(event.code), event.code)]
                self._withdraw(event)
                return self._whole_message(event)
        return []

    def _whole_message(self, failed: Failed | None = None) -> list[Json]:
        """The message; an error is its last item: the client supports no other form of errors."""
        assert self._started is not None
        self._sent_id = self._message.message_id
        plain, self._text = "".join(self._text), []
        text = with_links(plain, self._sources)
        texts = [text] if text or not failed else []
        agent = self._message.agent
        extra: Json = {"AuthorName": agent, "authorName": agent} if agent else {}
        if self._statements:
            extra["verification"] = verification(plain, self._sources, self._statements)
        if failed:
            texts.append(errors.words(failed.code))
            extra |= ChatUi().error(errors.words(failed.code), failed.code)
        return [
            {
                "Role": {"Label": "Assistant"},
                "Items": [{"$type": "TextContent", "Text": item} for item in texts],
                # ChatUI has read `content` since April 2025, together with `authorName`.
                "content": "\n".join(texts),
                "ModelId": self._started.model,
                "Metadata": {"Id": self._message.message_id, "CreatedAt": self._message.created_at},
                **extra,
                **self._graded,
                **self._verified,
            }
        ]


def with_links(text: str, sources: Iterable[SourceView]) -> str:
    """The text, in which citations of the sources are Markdown links to their documents."""
    addresses = {source.label: source.address for source in sources}

    def link(match: re.Match[str]) -> str:
        address = addresses.get(match[1])
        return f"{match[0]}({address})" if address else match[0]

    return _CITATION.sub(link, text) if addresses else text


def verification(text: str, sources: Iterable[SourceView], statements: Iterable[Statement]) -> list[Json]:
    """The statements, with their positions in the text that :func:`with_links` returns."""
    addresses = {source.label: source.address for source in sources}
    edits = [
        (match.end(), match.end(), len(address) + 2)
        for match in _CITATION.finditer(text)
        if (address := addresses.get(match[1]))
    ]
    place = after_edits(edits)
    return to_api([statement.placed(place) for statement in statements])
