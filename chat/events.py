"""The events of one run.

The engine publishes them, the journal stores them, and each protocol module translates them into its own
members; apart from the props of thoughts, events contain no names of wire fields. All events are frozen and
can be converted to JSON and back. The order in a run is: Started, Searching (not for small talk),
ContextReady, Thinking (if the model reasons), TextDelta…, MessageDone, then Usage, Rechecked, FollowUps and
TitleChanged, if any, and finally Finished or Failed. In a team's run, each message begins with
MessageStarted, before its ContextReady.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, get_args

from .sources import PageImage, SourceView, source_from_json
from .statements import Statement, from_rows

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Thought:
    """One step behind an answer; `description` is text or a list."""

    title: str
    description: Any
    props: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The run is stored and has been started."""

    run_id: str
    conversation_id: str
    question_id: str
    answer_id: str
    created_at: str  # ISO 8601, UTC
    model: str = ""  # the name of the site's model, even for a verified answer


@dataclass(frozen=True, slots=True)
class Searching:
    """The search has started.

    `readable` is the number of documents in its scope that the caller may read. `awaited` is the number of
    the caller's own documents among them that the site is still processing.
    """

    readable: int
    awaited: int = 0


@dataclass(frozen=True, slots=True)
class Verified:
    """Who verified an answer that a person wrote, and until which day (ISO 8601) it is valid.

    `question` is the question for which the answer was written, if it has other words than the one asked.
    `person` is the id of the account that `by` names; None for a team. `groups` has the ids of the groups
    that get the answer; empty if everybody does. `person` and `groups` are stored, but never sent.
    """

    by: str
    until: str
    question: str = ""
    person: int | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextReady:
    """The results of the search, before the answer's text.

    `images` are rendered for each reader with that reader's rights, and never stored. `verified` is set for
    an answer that a person wrote.
    """

    sources: tuple[SourceView, ...]
    thoughts: tuple[Thought, ...]
    message_id: str = ""
    images: tuple[PageImage, ...] = ()
    verified: Verified | None = None


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """The next agent of a team starts its message; the following events belong to that message."""

    message_id: str
    agent: str
    created_at: str  # ISO 8601, UTC


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model reasons before its answer. The reasoning itself is neither shown nor stored."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next characters of the answer, with verified citations."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageDone:
    """The text is complete. `finish_reason` is stop, or length if the text was cut off."""

    finish_reason: str
    citations: tuple[str, ...]  # labels in order of first use
    verification: tuple[Statement, ...] = ()  # statements of this message's text
    grade: str = ""  # a value of history.tally.Grade; empty for generated, verified or fixed text


@dataclass(frozen=True, slots=True)
class Rechecked:
    """The language model's second look changed some verdicts of the last message."""

    verification: tuple[Statement, ...]  # all statements of that message, with positions in its text


@dataclass(frozen=True, slots=True)
class FollowUps:
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TitleChanged:
    title: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens that the model has reported."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended without an error. `state` is complete or stopped."""

    state: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The run has ended with an error.

    `state` is failed, interrupted or blocked; `code` is a key of chat.errors.ERRORS. `retry_after` is the
    number of seconds until a retry, if the model's server gave one. If the run may have ended because a
    source was withdrawn, `remaining`, which is never stored, has the messages as the reader may see them now.
    They replace everything that was sent before, because a protocol may repeat the messages at the end.
    """

    state: str
    code: str
    request_id: str = ""
    retry_after: int | None = None
    remaining: "tuple[RunMessage, ...] | None" = None


Event = (
    Started
    | Searching
    | ContextReady
    | MessageStarted
    | Thinking
    | TextDelta
    | MessageDone
    | Rechecked
    | FollowUps
    | TitleChanged
    | Usage
    | Finished
    | Failed
)
TERMINAL = (Finished, Failed)

_SCALARS = frozenset({str, int, float, bool, type(None)})
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}


def to_json(event: Event) -> list[Any]:
    """`[kind, members]`; for the frequent TextDelta only `["TextDelta", text]`."""
    if isinstance(event, TextDelta):
        return ["TextDelta", event.text]
    return [type(event).__name__, members(event)]


def members(value: Any) -> Json:
    """The fields of (nested) dataclasses for JSON; unlike `asdict`, without deep copies."""
    found = {}
    for name in value.__dataclass_fields__:
        each = getattr(value, name)
        found[name] = each if type(each) in _SCALARS else _plain(each)  # avoids a call for most values
    return found


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return members(value) if is_dataclass(value) else value


def list_to_json(events: Iterable[Event]) -> list[list[Any]]:
    """Events as the journal stores them.

    Consecutive texts become `["Texts", [text, …]]`, because an event for each would be larger than its text.
    """
    values: list[list[Any]] = []
    texts: list[str] | None = None
    for event in events:
        if not isinstance(event, TextDelta):
            texts = None
            values.append(to_json(event))
        elif texts is None:
            texts = [event.text]
            values.append(["Texts", texts])
        else:
            texts.append(event.text)
    return values


def list_from_json(values: Iterable[list[Any]]) -> Iterator[Event | None]:
    """The inverse of :func:`list_to_json`, with None for each event that only later versions know."""
    for value in values:
        if value[0] == "Texts":
            yield from map(TextDelta, value[1])
        else:
            yield from_json(value)


def from_json(value: list[Any]) -> Event | None:
    """The inverse of :func:`to_json`; None for an event that only later versions know.

    Ignores members of later versions. Malformed values raise errors such as KeyError.
    """
    kind, members = value
    if kind not in _KINDS:
        return None
    if kind == "TextDelta":
        return TextDelta(members)
    if kind == "ContextReady":
        return ContextReady(
            tuple(source_from_json(source) for source in members["sources"]),
            tuple(thought_from_json(thought) for thought in members["thoughts"]),
            members["message_id"],
            verified=verified_from_json(members.get("verified")),
        )
    if kind == "MessageDone":
        verification = from_rows(members.get("verification", ()))
        citations, grade = tuple(members["citations"]), members.get("grade", "")
        return MessageDone(members["finish_reason"], citations, verification, grade)
    if kind == "Rechecked":
        return Rechecked(from_rows(members["verification"]))
    cls = _KINDS[kind]
    values = {name: tuple(item) if isinstance(item, list) else item for name, item in members.items()}
    event: Event = cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})
    return event


def verified_from_json(members: Mapping[str, str] | None) -> Verified | None:
    return Verified(members["by"], members["until"], members.get("question", "")) if members else None


def thought_from_json(members: Mapping[str, Any]) -> Thought:
    return Thought(members["title"], members["description"], members.get("props"))


@dataclass(slots=True)
class RunMessage:
    """One message of a run."""

    message_id: str
    agent: str = ""
    created_at: str = ""
    context: ContextReady | None = None
    text: str = ""
    done: MessageDone | None = None


@dataclass(slots=True)
class RunResult:
    """A run folded into one value, for callers that do not stream."""

    started: Started | None = None
    messages: list[RunMessage] = field(default_factory=list)
    followups: tuple[str, ...] = ()
    title: str = ""
    usage: Usage | None = None
    end: Finished | Failed | None = None
    _parts: list[str] = field(default_factory=list)

    @property
    def context(self) -> ContextReady | None:
        """The context of the first message."""
        return self.messages[0].context if self.messages else None

    @property
    def done(self) -> MessageDone | None:
        """The end of the last message."""
        return self.messages[-1].done if self.messages else None

    @property
    def sources(self) -> "list[SourceView]":
        """The sources of all messages."""
        return [source for message in self.messages if message.context for source in message.context.sources]

    @property
    def text(self) -> str:
        """The texts of all messages in order."""
        return "\n\n".join(message.text for message in self.messages if message.text)

    @property
    def verification(self) -> tuple[Statement, ...]:
        """Statements with positions in :attr:`text`."""
        found: list[Statement] = []
        before = 0
        for message in self.messages:
            if message.done:
                found += [statement.moved(before) for statement in message.done.verification]
            before += len(message.text) + 2 if message.text else 0
        return tuple(found)

    @property
    def grade(self) -> str:
        """The grade of the last message."""
        return self.done.grade if self.done else ""

    def as_events(self) -> "list[Event]":
        """The start, the messages and the end of the run as a short stream of events."""
        events: list[Event] = [self.started] if self.started else []
        for message in self.messages:
            if message.agent:
                events.append(MessageStarted(message.message_id, message.agent, message.created_at))
            events += [event for event in (message.context, TextDelta(message.text), message.done) if event]
        if self.end:
            events.append(self.end)
        return events

    def text_of(self, message_id: str) -> str:
        """The text of one message, even if it is still being written."""
        if self.messages and self.messages[-1].message_id == message_id and self._parts:
            return "".join(self._parts)
        return next((message.text for message in self.messages if message.message_id == message_id), "")

    def add(self, event: Event) -> None:
        match event:
            case Started():
                self.started = event
            case MessageStarted():
                self._end_text()
                self.messages.append(RunMessage(event.message_id, event.agent, event.created_at))
            case ContextReady():
                self._current().context = event
            case TextDelta():
                self._current()
                self._parts.append(event.text)
            case MessageDone():
                self._current().done = event
            case Rechecked(verification):
                message = self._current()
                if message.done:
                    message.done = replace(message.done, verification=verification)
            case FollowUps():
                self.followups = event.questions
            case TitleChanged():
                self.title = event.title
            case Usage():
                self.usage = event
            case Finished() | Failed():
                self._end(event)
            case Searching() | Thinking():
                pass

    def _current(self) -> RunMessage:
        """The message that is being written; created here if no MessageStarted came before."""
        if not self.messages:
            started = self.started
            self.messages.append(
                RunMessage(started.answer_id, created_at=started.created_at) if started else RunMessage("")
            )
        return self.messages[-1]

    def _end(self, event: Finished | Failed) -> None:
        self._end_text()
        self.end = event
        if isinstance(event, Failed) and event.remaining is not None:
            self.messages = list(event.remaining)

    def _end_text(self) -> None:
        if self._parts:
            self._current().text = "".join(self._parts)
            self._parts.clear()
