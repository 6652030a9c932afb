"""Stored conversations for tests of the portal."""

from chatsite.accounts.principal import Principal
from history import recording
from history.models import Message, Source
from ingestion.models import Passage

LABEL = "guide.md#leave"
WORDS = "Employees may carry over five days of leave until 31 March."


def answered(user, document, question="May I carry leave over?", text=f"Five days [{LABEL}].", **values):
    """A conversation with one question, whose answer got one passage of `document`."""
    conversation = recording.open_conversation(Principal(user.pk, "command"))
    conversation.title = values.pop("title", "Carrying over leave")
    conversation.save()
    recording.append(conversation, Message.Role.USER, question)
    values = {
        "state": "complete",
        "finish_reason": "stop",
        "citations": [LABEL],
        "searched_count": 1,
    } | values
    answer = recording.append(conversation, Message.Role.ASSISTANT, text, **values)
    passage = Passage.objects.filter(document=document).first()
    Source.objects.create(
        message=answer,
        document=document,
        document_version=1,
        passage_id=passage.pk,
        rank=1,
        label=LABEL,
        title=document.title,
        content=WORDS,
        quotes=[[0, 9]],
        score=0.9,
        found_by="both",
    )
    return conversation, answer
