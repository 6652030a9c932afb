"""Idempotency keys: a repeated request gets the run of the earlier request with the same key."""

import hashlib
import json
from dataclasses import replace

from chat.events import members
from chat.models import Run
from chat.requests import Generation, RunRequest
from chatsite.accounts.principal import Principal
from history.models import Conversation, Message

from .finish import UNWRITTEN


def digest_of(request: RunRequest) -> str:
    """The digest by which repeated requests are recognised."""
    images = [[image.media_type, hashlib.sha256(image.data).hexdigest()] for image in request.images]
    values = members(replace(request, images=())) | {
        "conversation_id": str(request.conversation_id or ""),
        "project_id": str(request.project_id or ""),
        "images": images,
    }
    if request.echo.get("previous_response_id"):
        # A repeated request names the same response, which may no longer be the newest of its conversation.
        values |= {"conversation_id": "", "earlier": [], "copies_to": ""}
        request = replace(request, copies_to="")
    del values["seen"]  # this may differ if the same form is sent again from a reloaded page
    # Omit these if empty, so that the digest is the same as in versions without these members.
    for name, nothing in (
        ("wish", ""),
        ("generation", Generation()),
        ("echo", {}),
        ("instead_of", None),
        ("project_id", None),
        ("copies_to", ""),
        ("continues", ""),
    ):
        if getattr(request, name) == nothing:
            del values[name]
    if not request.options.scope:
        del values["options"]["scope"]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def run_of_key(principal: Principal, key: str | None) -> Run | None:
    """The caller's run with this idempotency key, with its messages."""
    if key is None:
        return None
    return (
        Run.objects.filter(owner_id=principal.user_id, idempotency_key=key)
        .select_related("answer", "question", "conversation")
        .first()
    )


def was_never_executed(run: Run) -> bool:
    """Whether no process executed a run, and its question has not been answered since.

    The question must be on the chosen branch of a conversation that was not deleted; only empty answers that
    failed or were interrupted may follow it.

    If PostgreSQL hangs during a commit, the caller is refused, but PostgreSQL may still store the run later.
    No process executes such a run, so its lease expires with an empty journal, and the event that ends it has
    the number UNWRITTEN.
    """
    if run.finished_at is None or run.last_event != UNWRITTEN or not run.question.chosen:
        return False
    later = Message.objects.filter(conversation_id=run.conversation_id, position__gt=run.question.position)
    return (
        Conversation.objects.filter(pk=run.conversation_id, deleted_at=None).exists()
        and not later.exclude(
            role=Message.Role.ASSISTANT,
            state__in=(Message.State.FAILED, Message.State.INTERRUPTED),
            content="",
        ).exists()
    )
