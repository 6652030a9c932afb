"""Links that share conversations and answers with others: create, open, revoke.

At each request, the reader's own rights decide what the reader sees (see chat.redaction.withholding).
"""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Prefetch, Q, Value
from django.db.models.functions import Coalesce, Concat, NullIf, Trim
from django.utils import timezone
from django.utils.translation import gettext

from chatsite.accounts.audit import Subject, record
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from ingestion.access.lists import Audience, access_list_for, readers_for_audit
from ingestion.access.models import AccessEntry

from . import recording
from .branches import START, Branches
from .invalid import Invalid
from .models import Conversation, Message, OpenedShare, Share, ShareQuerySet

DEFAULT_DAYS = 30
MAX_OPEN = 500  # per person
MAX_COUNTED = 99
MAX_NAMED = 20  # readers of a share whom a page lists by name
LONGEST = timedelta(days=3_660)
NO_SHARE = UUID(int=0)
# Whether a reader is on a share's access list, by the same rule as for documents. Without the token, an entry
# for everyone only counts if the reader has opened the share before. The statement takes the same time for
# every access list.
IS_OPEN_TO = """
SELECT %(list)s IN (
    SELECT mine.access_list_id FROM ingestion_readable_entries(%(reader)s) AS mine
    WHERE %(has_token)s OR mine.user_id IS NOT NULL OR mine.group_id IS NOT NULL OR EXISTS (
        SELECT FROM history_openedshare AS known
        WHERE known.share_id = %(share)s AND known.reader_id = %(reader)s
    )
)
"""


def new_token() -> str:
    """A new random token. It has 256 bits, so that its plain SHA-256 hash can be stored safely."""
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def draft(conversation: Conversation, answer: Message | None) -> Share:
    """An unsaved share of the conversation as it is now, or of one answer."""
    up_to = answer.position if answer else recording.last_position(conversation, chosen=True)
    return Share(conversation=conversation, answer=answer, up_to=max(up_to, 0))


@transaction.atomic
def create(
    principal: Principal,
    conversation_id: UUID,
    audience: Audience,
    *,
    answer_id: UUID | None = None,
    expires_at: datetime | None = None,
) -> tuple[Share, str]:
    """Share a conversation as it is now, or one finished answer.

    Returns the share and its token. Raises Conversation.DoesNotExist, Message.DoesNotExist and Invalid.
    """
    conversation = recording.lock_conversation(principal, conversation_id)
    answer = None
    if answer_id is not None:
        finished = conversation.messages.filter(role=Message.Role.ASSISTANT)
        answer = finished.exclude(state__in=Message.UNFINISHED).get(pk=answer_id)
    last = recording.last_position(conversation, chosen=True)
    if last == START:
        raise Invalid(gettext("This conversation is empty."), "conversation")
    if not (audience.everyone or audience.user_ids or audience.group_ids):
        raise Invalid(gettext("Choose a group, name a person, or select “Everyone”."), "everyone")
    if expires_at is not None and not timezone.now() < expires_at <= timezone.now() + LONGEST:
        raise Invalid(gettext("The end must be in the future, and within ten years."), "expires_at")
    if Share.objects.owned_by(principal).live().count() >= MAX_OPEN:
        words = gettext("You have %(number)s open links. Revoke some that are not needed.")
        raise Invalid(words % {"number": MAX_OPEN}, "conversation")
    token = new_token()
    share = draft(conversation, answer)
    share.title = "" if answer else share.title_from(Branches(conversation.pk).path_to(last)[0])
    share.access_list = access_list_for(audience, principal.user_id)
    share.digest, share.expires_at = digest_of(token), expires_at
    share.save(force_insert=True)
    part = "one answer" if answer else "all messages so far"
    end = f"until {expires_at.isoformat(timespec='minutes')}" if expires_at else "without an end"
    about = f"{share.pk} ({part} of conversation {conversation.pk}, {end}), for "
    readers = readers_for_audit(share.access_list, besides=principal.user_id)
    _record(AuditEntry.Action.SHARE_CREATED, principal, [about, *readers])
    return share, token


def _record(action: AuditEntry.Action, owner: Principal, subject: Subject) -> None:
    """Write an audit entry about an owner's link.

    The entry has ids, dates and readers, but no content.
    """
    person = User.objects.get(pk=owner.user_id)
    record(action, actor=person, person=person, subject=subject)


@transaction.atomic
def renew(principal: Principal, share_id: UUID) -> tuple[Share, str]:
    """Give an open share a new URL; the old one stops working. Raises Share.DoesNotExist."""
    token = new_token()
    mine = Share.objects.owned_by(principal).live()
    share = mine.select_related("conversation__owner").get(pk=share_id)
    # Update only the digest, so that a share that is revoked at the same time remains revoked.
    Share.objects.filter(pk=share.pk).update(digest=digest_of(token))
    if share.access_list.entries.filter(user=None, group=None).exists():
        # Forget who has opened the share: readers whom its list does not name need the new URL.
        OpenedShare.objects.filter(share=share).delete()
    _record(AuditEntry.Action.SHARE_RENEWED, principal, str(share.pk))
    return share, token


@transaction.atomic
def revoke(principal: Principal, share_id: UUID) -> None:
    """Revoke a share, unless it is revoked already. Raises Share.DoesNotExist."""
    share = Share.objects.owned_by(principal).get(pk=share_id)
    if Share.objects.filter(pk=share.pk).revoke():
        _record(AuditEntry.Action.SHARE_REVOKED, principal, str(share.pk))


def opened(principal: Principal, address: str) -> Share | None:
    """The share with this token or id; None if it does not exist or is not open to this reader.

    An id opens only shares in the reader's list of received shares, and the owner's own shares. The function
    always makes the same three queries, so that the response time does not reveal why there is no share.
    """
    try:
        by_id, has_token = UUID(address), False
    except ValueError:
        by_id, has_token = NO_SHARE, True
    addressed = Share.objects.filter(Q(digest=digest_of(address)) if has_token else Q(pk=by_id))
    share_id, list_id = addressed.values_list("pk", "access_list_id").first() or (NO_SHARE, 0)
    asked: dict[str, Any] = {
        "list": list_id,
        "share": share_id,
        "reader": principal.user_id,
        "has_token": has_token,
    }
    with connection.cursor() as cursor:
        cursor.execute(IS_OPEN_TO, asked)
        is_open: bool = cursor.fetchone()[0]
    live = Share.objects.live().filter(pk=share_id if is_open else NO_SHARE)
    return live.select_related("conversation__owner").first()


def record_opening(principal: Principal, share: Share) -> None:
    """Store when a reader other than the owner opened the share for the first time."""
    if share.conversation.owner_id != principal.user_id:
        opening = OpenedShare(share=share, reader_id=principal.user_id)
        OpenedShare.objects.bulk_create([opening], ignore_conflicts=True)


def unopened(principal: Principal) -> int:
    """The number of received shares that the caller has not opened, at most MAX_COUNTED."""
    opened = OpenedShare.objects.filter(reader=principal.user_id)
    received = Share.objects.received_by(principal).exclude(pk__in=opened.values("share"))
    return received[:MAX_COUNTED].count()


def of_conversation(principal: Principal, conversation: Conversation) -> list[Share]:
    """The open shares of the caller's conversation, newest first, with their readers."""
    return list(with_readers(Share.objects.owned_by(principal).live().filter(conversation=conversation)))


def with_readers(shares: ShareQuerySet) -> ShareQuerySet:
    """Annotate shares for :func:`readers_of`.

    Names are loaded as arrays instead of objects, because a share has up to 400 readers.
    """
    entries = AccessEntry.objects.filter(access_list=OuterRef("access_list"))
    people = entries.filter(user__isnull=False).exclude(user=OuterRef("conversation__owner"))
    full_name = NullIf(Trim(Concat("user__first_name", Value(" "), "user__last_name")), Value(""))
    return shares.select_related("conversation__owner").annotate(
        for_everyone=Exists(entries.filter(user=None, group=None)),
        group_names=ArraySubquery(entries.filter(group__isnull=False).values("group__name")),
        user_names=ArraySubquery(people.values("user__username")),
        display_names=ArraySubquery(people.values(name=Coalesce(full_name, "user__username"))),
    )


def with_own_groups(shares: ShareQuerySet, own_groups: Collection[int]) -> ShareQuerySet:
    """Prefetch the entries that :func:`shared_with` needs.

    A share's other readers, up to 400, are not loaded.
    """
    entries = AccessEntry.objects.filter(Q(user=None, group=None) | Q(group__in=own_groups))
    own = Prefetch("access_list__entries", entries.select_related("group"))
    return shares.select_related("conversation__owner", "access_list").prefetch_related(own)


def readers_of(share: Any) -> str:
    """The audience of a share as text for its owner, such as “Pursers, Ines Calder”.

    The share must come from :func:`with_readers`.
    """
    if share.for_everyone:
        return gettext("everyone who signs in")
    names = [*sorted(share.group_names), *sorted(share.display_names)]
    if len(names) <= MAX_NAMED:
        return ", ".join(names) or gettext("nobody else")
    more = gettext(" and %(count)s more") % {"count": len(names) - MAX_NAMED}
    return ", ".join(names[:MAX_NAMED]) + more


def groups_of(reader: User) -> frozenset[int]:
    return frozenset(reader.groups.values_list("pk", flat=True))


def shared_with(share: Share, own_groups: Collection[int]) -> str:
    """The audience of a share as text for a reader, which names only the reader's own groups."""
    entries = share.access_list.entries.all()
    if any(entry.user_id is None and entry.group_id is None for entry in entries):
        return gettext("everyone who signs in")
    groups = sorted(entry.group.name for entry in entries if entry.group and entry.group_id in own_groups)
    return ", ".join(groups) or gettext("you")
