"""The form of a request that is common to all protocols; this module does not use Django."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

RetrievalMode = Literal["hybrid", "text", "vectors"]
Pages = Literal["", "textAndImages", "images"]
VectorFields = Literal["", "text", "pages", "both"]


SCOPE_CHARACTERS = 600
MAX_SCOPE_DOCUMENTS = 15
_ID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SCOPE = re.compile(
    rf"all|own|(folder|category):[^\0\ud800-\udfff]+|document:{_ID}(,{_ID}){{0,{MAX_SCOPE_DOCUMENTS - 1}}}"
)


def is_scope(text: str) -> bool:
    """Whether the text has the syntax of a scope (see ingestion.search.scopes).

    The folder, category or documents that it names need not exist.
    """
    return len(text) <= SCOPE_CHARACTERS and _SCOPE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run; the defaults are the portal's."""

    retrieval_mode: RetrievalMode = "hybrid"
    top: int = 5  # passages given to the model, 1 to 50
    temperature: float = 0.3  # 0 to 2
    followups: bool = True
    include_category: str = ""
    exclude_category: str = ""
    scope: str = ""  # the searched part of the documents; empty: that of the conversation or project
    minimum_score: float = 0.0  # of a passage, 0 to 1
    to_person: bool = False  # only documents of the caller, or shared with the caller by name
    # Only documents shared with one of the caller's groups; with `to_person`, either condition suffices.
    to_groups: bool = False
    vector_fields: VectorFields = "text"  # what the searched vectors represent; empty: search by words only
    ranker: bool = False  # rerank a longer list of candidates
    minimum_ranker_score: float = 0.0  # 0 to 4
    captions: bool = False  # give the model the best sentences of each passage
    pages: Pages = ""  # give the model images of pages, with or instead of their text
    prompt_template: str = ""  # replaces the site's own instructions, or extends them if it begins with >>>
    unknown: tuple[str, ...] = ()  # names of the request's unknown members, shown as a step

    @property
    def narrowed(self) -> bool:
        """Whether the search covers only some of the documents that the caller may read."""
        of_category = self.include_category or self.exclude_category
        return self.scope not in ("", "all") or bool(of_category) or self.to_person or self.to_groups


@dataclass(frozen=True, slots=True)
class EarlierMessage:
    """An earlier message of the conversation, stored or sent with the request."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ImageInput:
    """An image for the model; its type was detected from its bytes."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Asks for an answer that is one JSON object, which must follow `schema` if that is given."""

    schema: Mapping[str, Any] | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """Generation options of the caller; None leaves a value to the model."""

    max_tokens: int | None = None
    stop: tuple[str, ...] = ()  # the answer ends before the first occurrence of any of these
    json: JsonFormat | None = None
    # Hints: if a model refuses one, the site repeats the request without it.
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A validated request: one question with its options."""

    question: str
    conversation_id: UUID | None = None  # None opens a new conversation
    earlier: tuple[EarlierMessage, ...] = ()  # used only if the conversation has no stored ones
    alone: bool = False  # whether the model gets no earlier messages
    team: bool = False  # whether the team of agents answers; also the mode of a new conversation
    project_id: UUID | None = None  # the project of a new conversation
    listed: bool = True  # False if the caller stores the conversation itself; the site then lists it nowhere
    options: Options = field(default_factory=Options)
    images: tuple[ImageInput, ...] = ()  # given to the model, not stored
    # The form of the answer that the caller asks for, for example in system messages. It has no more
    # authority than the question.
    wish: str = ""
    generation: Generation = field(default_factory=Generation)
    # JSON stored with the run, for the protocol's own use.
    echo: Mapping[str, Any] = field(default_factory=dict)
    instead_of: int | None = None  # position of the question that this one replaces in a new branch
    copies_to: str = ""  # id of the last message that is copied into the new conversation
    continues: str = ""  # id of the truncated answer that this one continues
    seen: int | None = None  # position of the last answer that the asker saw, which determines the branch


class InvalidRequest(Exception):
    """A malformed request; `member` names the member at fault, `message` is a sentence for people."""

    def __init__(self, message: str, member: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.member = member
        self.status = status
