"""Chooses the next agent of a team: in order, or as a coordinator decides."""

from collections.abc import Sequence

from django.conf import settings

from chat.llm import ChatModel, Contribution

from .run import AcceptedRun, Speaker


async def next_speaker(
    run: AcceptedRun, model: ChatModel, contributions: Sequence[Contribution]
) -> Speaker | None:
    """The next agent, or None when the team has finished or used up its turns."""
    if len(contributions) >= settings.AGENT_TURNS:
        return None
    if not (settings.AGENT_COORDINATOR and contributions):
        return run.team[len(contributions)] if len(contributions) < len(run.team) else None
    team = {_plain(speaker.name): speaker for speaker in run.team}
    descriptions = [(speaker.name, speaker.description) for speaker in run.team]
    name = await model.next_speaker(run.request.question, descriptions, contributions)
    return team.get(_plain(name))  # any other name ends the answer


def _plain(name: str) -> str:
    """A name for comparison: models may write it as a sentence."""
    return name.rstrip(" .:!").casefold()
