"""What the engine is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from chat.requests import ChatRequest, Turn
from chatsite.accounts.principal import Principal


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent as the engine needs it."""

    name: str
    description: str
    instructions: str
    may_search: bool
    model: str  # empty for the site's


@dataclass(frozen=True, slots=True)
class Exchange:
    """A stored question that wants its answer; with `team`, an answer of each of several agents."""

    principal: Principal
    request: ChatRequest
    earlier: Sequence[Turn]
    conversation_id: UUID
    run_id: UUID
    answer_id: UUID
    request_id: str = ""
    untitled: bool = False  # a title of the conversation is looked for
    team: tuple[Speaker, ...] = ()
