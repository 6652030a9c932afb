"""What the engine knows about a run and its agents."""

from dataclasses import dataclass

from chat.events import Started
from chat.limits import Allowance
from chat.requests import RunRequest
from history.recording import TurnIds, timestamp


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent, as far as the engine needs it."""

    name: str
    description: str
    instructions: str
    may_search: bool
    model: str  # empty for the site's model


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRun(TurnIds):
    """A stored question with its queued answer; a team's further messages are added later.

    It is created when the request is accepted. `is_new` is False if the request repeats an earlier one, whose
    run may already have ended.
    """

    request: RunRequest
    by_team: bool  # whether the team of agents answers
    allowance: Allowance | None  # the owner's remaining messages for today
    readable: int = 0  # number of documents that a search of everything covers
    attached: tuple[str, ...] = ()  # scopes of the conversation's questions that name documents or files
    owner_instructions: str = ""  # wishes of the project and owner; only for questions asked in the portal
    is_new: bool = True
    is_first: bool = False  # whether this is the first turn of the conversation
    may_be_verified: bool = True  # whether the site has any active verified answers
    # Whether the model writes a title: in the first turn of a branch, unless the owner chose one.
    is_untitled: bool = False
    team: tuple[Speaker, ...] = ()  # the agents that were active when the answer began

    def started(self, model: str) -> Started:
        """The run's first event."""
        return Started(
            run_id=str(self.run_id),
            conversation_id=str(self.conversation_id),
            question_id=str(self.question_id),
            answer_id=str(self.answer_id),
            created_at=timestamp(self.created_at),
            model=model,
        )
