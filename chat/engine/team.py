"""Chooses the next agent of a team: in order, or as a coordinator decides."""

from collections.abc import Sequence

from django.conf import settings

from chat.llm import ChatModel, Said

from .run import AcceptedRun, Speaker


async def next_speaker(run: AcceptedRun, model: ChatModel, said: Sequence[Said]) -> Speaker | None:
    """The next agent, or None when the team has finished or used up its turns."""
    if len(said) >= settings.AGENT_TURNS:
        return None
    if not (settings.AGENT_COORDINATOR and said):
        return run.team[len(said)] if len(said) < len(run.team) else None
    team = {_plain(speaker.name): speaker for speaker in run.team}
    descriptions = [(speaker.name, speaker.description) for speaker in run.team]
    name = await model.next_speaker(run.request.question, descriptions, said)
    return team.get(_plain(name))  # any other name ends the answer


def _plain(name: str) -> str:
    """A name for comparison: models may write it as a sentence."""
    return name.rstrip(" .:!").casefold()
