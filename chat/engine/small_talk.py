"""One-line answers, without a search, to greetings, thanks and questions about the site."""

from chat.pleasantries import answer_to
from chat.quoting.quoting_model import QuotingModel

from .run import AcceptedRun
from .searching import Search


class SmallTalkModel(QuotingModel):
    """A model that returns one fixed line, which states nothing about the documents."""

    name = "none"
    needs_sources = False

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.notices = (text,)

    def text_for(self, sources: int) -> str:
        return self._text


def small_talk(run: AcceptedRun) -> tuple[SmallTalkModel, Search] | None:
    """The answer to small talk, as a model and an empty search; None for other messages."""
    request = run.request
    if request.continues or request.images or request.generation.json:
        return None
    text = answer_to(request.question)
    return (SmallTalkModel(text), Search(request.question, (), (), (), ())) if text else None
