"""Writing conversations: the only module that changes their rows.

All functions are synchronous and work in the caller's transaction where there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.utils import timezone

from chatsite.accounts.principals import Principal

from .citing import without
from .indexing import search_vector
from .models import Conversation, Message, Source

TITLE_LENGTH = 200
RESTORABLE = timedelta(hours=1)  # after deleting
KEPT_FOR_REPETITION = timedelta(hours=1)  # for the same idempotency key


@dataclass(frozen=True, slots=True)
class Closing:
    """How an answer ended, for :func:`close_answer`."""

    state: Message.State
    content: str
    finish_reason: str = ""
    error_code: str = ""
    citations: Sequence[str] = ()
    followups: Sequence[str] = ()
    usage: dict[str, int] | None = None


def open_conversation(
    principal: Principal, mode: str = Conversation.Mode.STANDARD, *, title: str = "", listed: bool = True
) -> Conversation:
    """A new one; not listed, it is shown nowhere and purged soon: its caller keeps it elsewhere."""
    return Conversation.objects.create(
        owner_id=principal.user_id, mode=mode, listed=listed, **_titled(principal.user_id, title)
    )


def lock_conversation(principal: Principal, conversation_id: UUID) -> Conversation:
    """The caller's conversation, locked until the transaction ends: whoever asks next waits for its turn.

    Raises Conversation.DoesNotExist for any other id.
    """
    return Conversation.objects.owned_by(principal).select_for_update(of=("self",)).get(pk=conversation_id)


def append(conversation: Conversation, role: str, content: str = "", **values: Any) -> Message:
    """Add the next message; the caller holds the conversation's lock."""
    last = conversation.messages.aggregate(last=Max("position"))["last"]
    position = 0 if last is None else last + 1
    message = Message.objects.create(
        conversation=conversation,
        role=role,
        content=content,
        position=position,
        search=search_vector(conversation.owner_id, without(content, values.get("citations", ()))),
        **values,
    )
    Conversation.objects.filter(pk=conversation.pk).update(updated_at=message.created_at)
    return message


def append_answer(conversation_id: UUID, exchange: UUID, agent_name: str, *, request_id: str = "") -> Message:
    """The next message of a team's exchange."""
    with transaction.atomic():
        conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
        return append(
            conversation,
            Message.Role.ASSISTANT,
            state=Message.State.QUEUED,
            exchange=exchange,
            agent_name=agent_name,
            request_id=request_id,
        )


def name_speaker(answer_id: UUID, agent_name: str) -> Message:
    """Say which agent writes a queued answer."""
    Message.objects.filter(pk=answer_id).update(agent_name=agent_name)
    return Message.objects.get(pk=answer_id)


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds, as all protocols here write it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record_context(
    answer_id: UUID, sources: Sequence[Source], thoughts: Sequence[Any], readable: int | None
) -> None:
    """Keep what the answer is written from, before its first word is shown."""
    with transaction.atomic():
        Source.objects.filter(message=answer_id).delete()
        Source.objects.bulk_create(sources)
        Message.objects.filter(pk=answer_id, state__in=Message.UNFINISHED).update(
            state=Message.State.STREAMING, thoughts=list(thoughts), searched_count=readable
        )


def record_quotes(answer_id: UUID, quotes: dict[int, list[tuple[int, int]]]) -> None:
    """Keep which characters of each source (by rank) the answer's words come from."""
    if not quotes:
        return
    changed = []
    for source in Source.objects.filter(message=answer_id, rank__in=quotes):
        source.quotes = quotes[source.rank]
        changed.append(source)
    Source.objects.bulk_update(changed, ["quotes"])


def close_answer(answer_id: UUID, closing: Closing) -> bool:
    """End an answer. False, and nothing is changed, where it has ended already: no state changes back."""
    now = timezone.now()
    owner_id = Conversation.objects.values_list("owner_id", flat=True).filter(messages=answer_id).first()
    if owner_id is None:
        return False
    changed = Message.objects.filter(pk=answer_id, state__in=Message.UNFINISHED).update(
        state=closing.state,
        content=closing.content,
        search=search_vector(owner_id, without(closing.content, closing.citations)),
        finish_reason=closing.finish_reason,
        error_code=closing.error_code,
        citations=list(closing.citations),
        followups=list(closing.followups),
        usage=closing.usage or {},
        finished_at=now,
    )
    if changed:
        Conversation.objects.filter(messages=answer_id).update(updated_at=now)
    return bool(changed)


def set_title(conversation_id: UUID, title: str) -> bool:
    """Give a title found by the site; one that the owner chose stays."""
    rows = Conversation.objects.filter(pk=conversation_id, title_by_owner=False)
    owner_id = rows.values_list("owner_id", flat=True).first()
    return owner_id is not None and bool(rows.update(**_titled(owner_id, title)))


def rename(principal: Principal, conversation_id: UUID, title: str) -> None:
    """Raises Conversation.DoesNotExist, or ValueError for a title without visible text."""
    words = " ".join(title.replace("\x00", " ").split())[:TITLE_LENGTH]
    if not words:
        raise ValueError("A title needs at least one character.")
    titled = _titled(principal.user_id, words)
    _change(Conversation.objects.owned_by(principal), conversation_id, title_by_owner=True, **titled)


def delete(principal: Principal, conversation_id: UUID) -> None:
    """Hide it at once everywhere; :func:`restore` brings it back until it is purged."""
    _change(Conversation.objects.owned_by(principal), conversation_id, deleted_at=timezone.now())


def restore(principal: Principal, conversation_id: UUID) -> None:
    _change(Conversation.objects.deleted_by(principal), conversation_id, deleted_at=None)


def purge() -> int:
    """Remove what nobody can bring back any more: deleted conversations, and those kept elsewhere."""
    now = timezone.now()
    gone = Q(deleted_at__lt=now - RESTORABLE) | Q(listed=False, updated_at__lt=now - KEPT_FOR_REPETITION)
    finished = ~Exists(Message.objects.filter(conversation=OuterRef("pk"), state__in=Message.UNFINISHED))
    return Conversation.objects.filter(gone, finished).delete()[0]


def _titled(owner_id: int, title: str) -> dict[str, Any]:
    """What a conversation with this title has in its columns."""
    title = title[:TITLE_LENGTH]
    return {"title": title, "search": search_vector(owner_id, title)}


def _change(conversations: Any, conversation_id: UUID, **values: Any) -> None:
    if not conversations.filter(pk=conversation_id).update(**values):
        raise Conversation.DoesNotExist
