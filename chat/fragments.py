"""Pieces of the conversation page, rendered for the socket by the templates that render the page."""

from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from chatsite.accounts.principals import Principal
from history.models import Conversation, Message

from .models import Run
from .threads import Answer, Exchange, answers_of, exchanges_of

Json = dict[str, Any]


def place_of_run(principal: Principal, conversation_id: UUID, run_id: UUID) -> int | None:
    """The position of the answer that a run writes; None where it is not in the caller's conversation."""
    rows = Run.objects.owned_by(principal).filter(pk=run_id, conversation=conversation_id)
    return rows.values_list("answer__position", flat=True).first()


def labels_of_message(principal: Principal, message_id: UUID) -> list[str]:
    """What the caller's answer may cite, whether the source can still be opened or not."""
    answers = Message.objects.owned_by(principal).filter(pk=message_id)
    return answers.values_list("labels", flat=True).first() or []


def next_answer(principal: Principal, conversation_id: UUID, message_id: UUID) -> tuple[int, str]:
    """The position of a team's next message, and its empty answer."""
    message = Message.objects.filter(conversation=conversation_id).get(pk=message_id)
    answer = answers_of(principal, [message])[0]
    answer.newest = True
    context = {"answer": answer, "conversation": message.conversation}
    return message.position, render_to_string("chat/answer.html", context)


def new_exchange(principal: Principal, run_id: UUID) -> str:
    """The question that was just accepted, with its empty answer."""
    run = Run.objects.owned_by(principal).select_related("conversation", "question", "answer").get(pk=run_id)
    answer = answers_of(principal, [run.answer])[0]
    answer.newest = True
    exchange = Exchange(run.question, [answer])
    return render_to_string("chat/exchange.html", {"exchange": exchange, "conversation": run.conversation})


def asked_after(principal: Principal, conversation_id: UUID, first: int) -> tuple[UUID | None, str] | None:
    """The run that writes, and what the conversation has from that position on; None where it has nothing."""
    conversation = Conversation.objects.owned_by(principal).filter(pk=conversation_id).first()
    if conversation is None or not conversation.messages.filter(position__gte=first).exists():
        return None
    newer = [each for each in exchanges_of(principal, conversation) if each.last >= first]
    context = {"conversation": conversation}
    html = "\n".join(render_to_string("chat/exchange.html", context | {"exchange": each}) for each in newer)
    running = [answer.run for each in newer for answer in each.answers if answer.running and answer.run]
    return running[-1].pk if running else None, html


def ended(principal: Principal, conversation_id: UUID, place: int, shown: str | None) -> Json | None:
    """The message about the end of an answer, from its row and under the rights of this moment.

    It has the text only where that is not what the reader has been shown (None: not known).
    """
    conversation = Conversation.objects.owned_by(principal).filter(pk=conversation_id).first()
    message = Message.objects.owned_by(principal).filter(conversation=conversation_id, position=place).first()
    if conversation is None or message is None:
        return None
    answer: Answer = answers_of(principal, [message])[0]
    answer.newest = not conversation.messages.filter(position__gt=place).exists()
    context = {"answer": answer, "conversation": conversation}
    told: Json = {
        "type": "done",
        "state": message.state,
        "sources": len(answer.cited),
        "note": answer.note.text if answer.note else "",
        "failed": bool(answer.note and answer.note.kind != "plain"),
        "steps": render_to_string("chat/steps.html", context),
        "end": render_to_string("chat/end.html", context),
    }
    if shown != answer.html:
        told["body"] = answer.html
    return told
