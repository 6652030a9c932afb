"""What happens in one exchange, in the words of the site.

The engine yields these, the journal keeps them, and each dialect puts them into its own words: a wire
field's name appears in no other place. All are frozen, and all survive a trip through JSON.

Order of a whole exchange: Started, Searching, ContextReady, TextDelta…, then MessageDone, FollowUps,
TitleChanged and Usage where there are any, and one of Finished or Failed at the end.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SourceView:
    """A passage given to the model, as a reader may see it."""

    rank: int  # from 1, best first
    label: str  # handbook.pdf#page=3: what an answer cites
    sourcefile: str
    title: str
    heading: str
    page: int | None
    category: str
    content: str
    score: float  # 0 to 1
    found_by: str  # words, meaning or both
    passage_id: int
    document_id: str  # the public one


@dataclass(frozen=True, slots=True)
class Thought:
    """One step of the work, for the thought process: `description` is text or a list."""

    title: str
    description: Any
    props: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The exchange is stored and somebody works on it."""

    run_id: str
    conversation_id: str
    question_id: str
    answer_id: str
    created_at: str  # ISO 8601, UTC
    model: str = ""  # the name of what answers


@dataclass(frozen=True, slots=True)
class Searching:
    """The search has begun, over so many documents that the caller may read."""

    readable: int


@dataclass(frozen=True, slots=True)
class ContextReady:
    """What was found, before the first word of the answer."""

    sources: tuple[SourceView, ...]
    thoughts: tuple[Thought, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next characters of the answer; its citations are verified already."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageDone:
    """The text is whole. `finish_reason` is the model's own: stop or length."""

    finish_reason: str
    citations: tuple[str, ...]  # labels in order of first use


@dataclass(frozen=True, slots=True)
class FollowUps:
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TitleChanged:
    title: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the model counted them."""

    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The end, with a state that is no error: complete or stopped."""

    state: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The end, with an error. `state` is failed, interrupted or blocked; `code` is one of chat.errors."""

    state: str
    code: str
    request_id: str = ""


Event = (
    Started
    | Searching
    | ContextReady
    | TextDelta
    | MessageDone
    | FollowUps
    | TitleChanged
    | Usage
    | Finished
    | Failed
)
TERMINAL = (Finished, Failed)

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}


def to_json(event: Event) -> list[Any]:
    """`[kind, members]`, or for the frequent text only `["TextDelta", text]`."""
    if isinstance(event, TextDelta):
        return ["TextDelta", event.text]
    return [type(event).__name__, asdict(event)]


def from_json(value: list[Any]) -> Event:
    """The inverse of :func:`to_json`. Raises KeyError or TypeError for what it did not write."""
    kind, members = value
    if kind == "TextDelta":
        return TextDelta(members)
    if kind == "ContextReady":
        return ContextReady(
            tuple(SourceView(**source) for source in members["sources"]),
            tuple(Thought(**thought) for thought in members["thoughts"]),
        )
    cls = _KINDS[kind]
    values = {name: tuple(item) if isinstance(item, list) else item for name, item in members.items()}
    event: Event = cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})
    return event


@dataclass(slots=True)
class Whole:
    """An exchange folded into one value: what a caller who does not stream is told."""

    started: Started | None = None
    context: ContextReady | None = None
    text: str = ""
    done: MessageDone | None = None
    followups: tuple[str, ...] = ()
    title: str = ""
    usage: Usage | None = None
    end: Finished | Failed | None = None
    _parts: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._parts.append(event.text)
            case Started():
                self.started = event
            case ContextReady():
                self.context = event
            case MessageDone():
                self.done = event
            case FollowUps():
                self.followups = event.questions
            case TitleChanged():
                self.title = event.title
            case Usage():
                self.usage = event
            case Finished() | Failed():
                self.end = event
                self.text = "".join(self._parts)
            case Searching():
                pass
