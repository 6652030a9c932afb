"""Who of a team speaks next: by order, or as a coordinator decides."""

from collections.abc import Sequence

from django.conf import settings

from chat.llm import ChatModel, Said

from .run import AcceptedRun, Speaker


async def next_speaker(run: AcceptedRun, model: ChatModel, said: Sequence[Said]) -> Speaker | None:
    """The next agent, or None when the team has finished. Never more turns than the site allows."""
    if len(said) >= settings.AGENT_TURNS:
        return None
    if settings.AGENT_COORDINATOR and said:
        return await _coordinated(run, model, said)
    return run.team[len(said)] if len(said) < len(run.team) else None


async def _coordinated(run: AcceptedRun, model: ChatModel, said: Sequence[Said]) -> Speaker | None:
    """The one that the model names; where it names nobody known, the question counts as answered."""
    team = {_plain(speaker.name): speaker for speaker in run.team}
    descriptions = [(speaker.name, speaker.description) for speaker in run.team]
    name = await model.next_speaker(run.request.question, descriptions, said)
    return team.get(_plain(name))


def _plain(name: str) -> str:
    """Models write a name as a sentence, too."""
    return name.rstrip(" .:!").casefold()
