"""The earlier messages of a conversation that are sent to the model."""

from uuid import UUID

from django.db.models import QuerySet, Subquery

from chat.engine import AcceptedRun
from chat.requests import EarlierMessage
from chatsite.accounts.principal import Principal
from history.citation_text import without
from history.models import Message
from history.withheld import withheld_labels

EARLIER_MESSAGES = 12


def messages_of_request(run: AcceptedRun) -> tuple[EarlierMessage, ...]:
    """The newest earlier messages in the request itself; empty if the model must not get any."""
    return () if run.request.alone else run.request.earlier[-EARLIER_MESSAGES:]


def earlier_messages(run: AcceptedRun) -> tuple[EarlierMessage, ...]:
    """The earlier messages: the stored ones, or those of the request if none are stored."""
    if run.request.alone:
        return ()
    position = Message.objects.filter(pk=run.question_id).values("position")
    rows = Message.objects.filter(conversation_id=run.conversation_id, position__lt=Subquery(position))
    rows = rows.chosen().exclude(state__in=Message.UNFINISHED)
    return stored_messages(run.principal, run.conversation_id, rows) or messages_of_request(run)


def stored_messages(
    principal: Principal, conversation_id: UUID, messages: QuerySet[Message]
) -> tuple[EarlierMessage, ...]:
    """The newest of `messages`, oldest first, without citations of sources that the caller may not open."""
    said = messages.order_by("-position").values_list("role", "content")[:EARLIER_MESSAGES]
    gone: frozenset[str] | None = None
    turns: list[EarlierMessage] = []
    for role, content in said:
        text = content
        if role == Message.Role.ASSISTANT and "[" in text:
            if gone is None:
                gone = withheld_labels(principal, conversation_id)
            text = without(text, gone)
        if text:
            turns.append(EarlierMessage("user" if role == Message.Role.USER else "assistant", text))
    return tuple(reversed(turns))
