"""Feedback on answers: good or bad, the reasons, and sources that do not support the answer."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction
from django.utils.formats import number_format
from django.utils.translation import gettext

from chatsite.accounts import webhooks
from chatsite.accounts.holds import demand_no_hold
from chatsite.accounts.models import User, WebhookDelivery
from chatsite.accounts.principal import Principal

from .invalid import Invalid
from .models import Feedback, Message

MAY_SEE_FEEDBACK = "history.view_feedback"


@dataclass(frozen=True, slots=True)
class Opinion:
    """A rating of an answer. `wrong_sources` are labels that the answer cites."""

    rating: str
    reasons: Collection[str] = ()
    wrong_sources: Collection[str] = ()
    comment: str = ""
    shared: bool = False  # whether content managers may read the question and the answer


def rated(principal: Principal, message_id: UUID) -> Message:
    """An answer of the caller that can be rated, with its feedback. Raises Message.DoesNotExist."""
    answers = Message.objects.owned_by(principal).filter(role=Message.Role.ASSISTANT)
    return answers.exclude(state__in=Message.UNFINISHED).select_related("feedback").get(pk=message_id)


def give(principal: Principal, message_id: UUID, opinion: Opinion) -> Feedback:
    """Store feedback, which replaces earlier feedback.

    A good rating loses its reasons and wrong sources. Raises Message.DoesNotExist if the answer is not the
    caller's or is unfinished, Invalid if the opinion is not valid, and OnHold if a legal hold keeps the
    earlier comment.
    """
    if opinion.rating == Feedback.Rating.GOOD:
        opinion = replace(opinion, reasons=(), wrong_sources=())
    answer = rated(principal, message_id)
    if opinion.rating not in Feedback.Rating.values:
        raise Invalid(
            gettext("“rating” must be one of {names}.").format(names=", ".join(Feedback.Rating.values)),
            "rating",
        )
    reasons = [reason for reason in Feedback.Reason.values if reason in opinion.reasons]
    if unknown := set(opinion.reasons).difference(reasons):
        known = ", ".join(Feedback.Reason.values)
        raise Invalid(
            gettext("“reasons” contains “{name}”; it may contain {known}.").format(
                name=min(unknown)[:40], known=known
            ),
            "reasons",
        )
    wrong = [label for label in answer.citations if label in opinion.wrong_sources]
    if set(opinion.wrong_sources).difference(wrong):
        raise Invalid(gettext("“wrong_sources” has a label that the answer does not cite."), "wrong_sources")
    if wrong and Feedback.Reason.WRONG_SOURCE not in reasons:
        reasons.append(Feedback.Reason.WRONG_SOURCE)
    comment = opinion.comment.replace("\r\n", "\n").replace("\0", "\ufffd").strip()
    if len(comment) > Feedback.MAX_COMMENT_CHARACTERS:
        most = number_format(Feedback.MAX_COMMENT_CHARACTERS, force_grouping=True)
        raise Invalid(gettext("“comment” has more than {most} characters.").format(most=most), "comment")
    with transaction.atomic():
        Message.objects.select_for_update(of=("self",)).get(pk=answer.pk)  # concurrent calls wait here
        if Feedback.objects.filter(message=answer).exclude(comment__in=["", comment]).exists():
            demand_no_hold(principal.user_id)
        given, _ = Feedback.objects.update_or_create(
            message=answer,
            defaults={
                "rating": opinion.rating,
                "reasons": reasons,
                "wrong_sources": wrong,
                "comment": comment,
                "shared": opinion.shared,
            },
        )
        _announce(principal, answer, {"rating": given.rating, "reasons": given.reasons})
    return given


def take_back(principal: Principal, message_id: UUID) -> None:
    """Delete feedback, if any. Raises Message.DoesNotExist like :func:`give`, or OnHold."""
    answer = rated(principal, message_id)
    with transaction.atomic():
        if of(answer):
            demand_no_hold(principal.user_id)
        deleted, _ = Feedback.objects.filter(message=answer).delete()
        if deleted:
            _announce(principal, answer, {"rating": None, "reasons": []})


def _announce(principal: Principal, answer: Message, opinion: webhooks.Data) -> None:
    """Notify the webhooks of the person who asked, and those of staff who may see feedback.

    Staff do not get the id of the conversation.
    """

    def listeners(candidates: Collection[int]) -> Mapping[int, webhooks.Data]:
        data = {"message_id": str(answer.pk), **opinion}
        staff = User.objects.filter(pk__in=candidates)
        recipients = {each.pk: data for each in staff if each.may_as_staff(MAY_SEE_FEEDBACK)}
        own = {principal.user_id: {"conversation_id": str(answer.conversation_id), **data}}
        return recipients | {owner: said for owner, said in own.items() if owner in candidates}

    webhooks.announce(webhooks.Event.ANSWER_FEEDBACK, listeners)


def _feedback_now(owner_id: int, delivery: WebhookDelivery) -> webhooks.Data | None:
    """The data of a delivery; None for staff who may no longer see feedback.

    Data with a `conversation_id` is for the person who asked.
    """
    if delivery.event != webhooks.Event.ANSWER_FEEDBACK or "conversation_id" in delivery.data:
        return dict(delivery.data)
    allowed = User.objects.get(pk=owner_id).may_as_staff(MAY_SEE_FEEDBACK)
    return dict(delivery.data) if allowed else None


webhooks.register("answer", _feedback_now)


def of(message: Message) -> Feedback | None:
    """The feedback on an answer. Makes no query if the feedback was selected with the message."""
    try:
        return message.feedback
    except Feedback.DoesNotExist:
        return None
