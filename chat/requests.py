"""What a caller asks for, whatever protocol it spoke. No wire names, no Django."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

RetrievalMode = Literal["hybrid", "text", "vectors"]
Pages = Literal["", "textAndImages", "images"]
VectorFields = Literal["", "text", "pages", "both"]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one exchange; the defaults are the portal's."""

    retrieval_mode: RetrievalMode = "hybrid"
    top: int = 5  # passages given to the model, 1 to 50
    temperature: float = 0.3  # 0 to 2
    followups: bool = True
    include_category: str = ""
    exclude_category: str = ""
    minimum_score: float = 0.0  # of a passage, 0 to 1
    to_person: bool = False  # look only at what the caller owns or was given by name
    to_groups: bool = False  # or only at what a group of theirs was given; both: at either
    vector_fields: VectorFields = "text"  # what the vectors stand for
    ranker: bool = False  # order a deeper list of candidates once more
    minimum_ranker_score: float = 0.0  # of a passage that the ranker scored, 0 to 4
    captions: bool = False  # the best sentences of a passage stand for it
    pages: Pages = ""  # give the model images of the pages found, beside or instead of their text
    prompt_template: str = ""  # instead of the site's own instructions; after >>> added to them
    unknown: tuple[str, ...] = ()  # names of members that this site does not know; reported as a thought


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier message, as the caller tells it; only used where there is no stored conversation."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ImageInput:
    """An image for the model to look at; its bytes were seen to be of this type."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The answer is one JSON object; without a schema, any."""

    schema: Mapping[str, Any] | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """How the model writes, as far as the caller has a say in it. None leaves it to the model."""

    max_tokens: int | None = None
    stop: tuple[str, ...] = ()  # the answer ends before the first of these
    json: JsonFormat | None = None
    # Hints from here on: a model that does not take one answers without it.
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question."""

    question: str
    conversation_id: UUID | None = None  # None opens a new conversation
    earlier: tuple[Turn, ...] = ()
    alone: bool = False  # what was said before is not told to the model
    team: bool = False  # a new conversation is answered by the team of agents
    listed: bool = True  # False: the caller keeps the conversation itself, and the site shows it nowhere
    options: Options = field(default_factory=Options)
    images: tuple[ImageInput, ...] = ()  # given to the model with the question, and not stored
    wish: str = ""  # how the caller would like the answer; it has no more authority than the question
    generation: Generation = field(default_factory=Generation)
    echo: Mapping[str, Any] = field(
        default_factory=dict
    )  # JSON stored with the run, for the protocol's own use


class InvalidRequest(Exception):
    """The request is not well formed; `member` names what is wrong, `message` says why, in a sentence."""

    def __init__(self, message: str, member: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.member = member
        self.status = status
