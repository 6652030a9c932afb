"""Webhook events of answers and of unanswered questions.

Answers are announced to the people who asked, and unanswered questions to staff who may see them.
"""

from collections.abc import Collection, Mapping
from uuid import UUID

from chat import pleasantries
from chat.llm.chat_model import NOTHING_FOUND
from chatsite.accounts import webhooks
from chatsite.accounts.models import User, WebhookDelivery
from history import feedback  # noqa: F401  (registers its webhook events, in workers too)
from history.models import Message
from history.recording import AnswerOutcome
from history.tally import UNSURE

Event = webhooks.Event
ANNOUNCED = [Event.ANSWER_COMPLETED.value, Event.QUESTION_UNANSWERED.value]
MAY_SEE_UNANSWERED = "chat.view_unanswered"


def announce_end(owner_id: int, closings: Mapping[UUID, AnswerOutcome]) -> None:
    """Announce the end of a run, and its question if the last answer leaves it unanswered.

    The announced state is that of the last answer. Call in the transaction that stores the answers.
    """
    if not closings:
        return
    last_id, last = list(closings.items())[-1]

    def asker(candidates: Collection[int]) -> Mapping[int, webhooks.Data]:
        answer = Message.objects.filter(pk=last_id).first() if owner_id in candidates else None
        if answer is None:
            return {}
        ids = {"conversation_id": answer.conversation_id, "message_id": answer.pk, "run_id": answer.run_id}
        return {owner_id: {name: str(value) for name, value in ids.items()} | {"state": last.state.value}}

    webhooks.announce(Event.ANSWER_COMPLETED, asker)

    # The rules are those of judge_questions.sql, without ratings and repeated questions.
    uncited = last.state == Message.State.COMPLETE and last.content and not last.citations
    if last.content in pleasantries.ANSWERS:
        return
    if last.content in NOTHING_FOUND:
        reason = "refused"
    elif uncited or last.content.startswith(UNSURE):
        reason = "unsure"
    else:
        return
    listed = Message.objects.filter(pk=last_id, conversation__listed=True)

    def managers(candidates: Collection[int]) -> Mapping[int, webhooks.Data]:
        staff = User.objects.filter(pk__in=candidates) if listed.exists() else User.objects.none()
        return {each.pk: {"reason": reason} for each in staff if each.may_as_staff(MAY_SEE_UNANSWERED)}

    webhooks.announce(Event.QUESTION_UNANSWERED, managers)


def _unanswered_now(owner_id: int, delivery: WebhookDelivery) -> webhooks.Data | None:
    """The recorded data, if the webhook's owner may still see unanswered questions."""
    allowed = User.objects.get(pk=owner_id).may_as_staff(MAY_SEE_UNANSWERED)
    return dict(delivery.data) if allowed else None


webhooks.register("question", _unanswered_now)
