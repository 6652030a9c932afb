"""The team of agents, as rows."""

from chat.engine.exchange import Speaker
from chat.models import Agent


def team() -> tuple[Speaker, ...]:
    """The active agents in their order."""
    return tuple(
        Speaker(row.name, row.description, row.instructions, row.may_search, row.model)
        for row in Agent.objects.team()
    )
