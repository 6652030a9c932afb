"""Texts of former versions of documents.

A text is kept when a file is replaced, and purged by number and age.
"""

from datetime import timedelta

from django.conf import settings
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Length
from django.utils import timezone

from chatsite.accounts.principal import Principal
from ingestion import quota
from ingestion.access.models import AccessEntry
from ingestion.models import Document, FormerVersion

MAX_CHARACTERS = 1_000_000  # characters of a version; a longer text is neither kept nor compared
PURGE_BATCH = 1_000


def text_of(document: Document) -> str:
    """The current text of a document, from its passages.

    Each heading precedes its first passage, unless the passage begins with it. Blank lines separate passages.
    Empty if the text is longer than MAX_CHARACTERS.
    """
    passages = document.passages.order_by()
    length = passages.aggregate(length=Sum(Length("content") + Length("heading")))["length"] or 0
    if length > MAX_CHARACTERS:
        return ""
    paragraphs: list[str] = []
    former = ""
    for heading, content in passages.order_by("position").values_list("heading", "content"):
        if heading != former and not content.startswith(heading):
            paragraphs.append(heading)
        paragraphs.append(content)
        former = heading
    return "\n\n".join(filter(None, paragraphs))


def keep(document: Document) -> None:
    """Keep the text of a document whose file is being replaced, in the caller's transaction.

    Keeps nothing if KEPT_VERSIONS is 0, if there is no text, or if the text would exceed the owner's quota.
    Deletes the texts of older versions beyond KEPT_VERSIONS.
    """
    if not settings.KEPT_VERSIONS or not document.version or not (text := text_of(document)):
        return
    size = len(text.encode())
    if document.owner and not quota.has_room(document.owner, size - document.size):
        return
    since = document.version
    for entry in reversed(document.versions):  # the file may have been read several times
        if entry["sha256"] != document.sha256:
            break
        since = min(since, entry["version"])
    FormerVersion.objects.create(
        document=document,
        access_list_id=document.access_list_id,
        since=since,
        version=document.version,
        content=text,
        size=size,
    )
    former = FormerVersion.objects.filter(document=document).values_list("pk", flat=True)
    FormerVersion.objects.filter(pk__in=list(former[settings.KEPT_VERSIONS :])).delete()


def visible(principal: Principal, document: Document) -> QuerySet[FormerVersion]:
    """The kept versions of a document that the caller may read, newest first.

    The caller must be a reader of the document, and in the access list that the document had when the version
    was replaced.
    """
    return FormerVersion.objects.filter(
        document__in=Document.objects.visible_to(principal).filter(pk=document.pk),
        access_list__in=AccessEntry.lists_of(principal.user_id),
    )


def with_number(former: QuerySet[FormerVersion], version: int) -> FormerVersion | None:
    """The row of `former` with the text of this version; None if the text was not kept."""
    return former.filter(since__lte=version, version__gte=version).first()


def purge() -> int:
    """Delete texts beyond the limits of number and age; return how many.

    Texts of documents whose owner is under a legal hold are kept.
    """
    surplus = (
        FormerVersion.objects.filter(document=OuterRef("document"))
        .order_by("-version")
        .values("version")[settings.KEPT_VERSIONS : settings.KEPT_VERSIONS + 1]
    )
    due = Q(version__lte=F("first_surplus"))
    if settings.KEPT_VERSION_DAYS:
        due |= Q(replaced_at__lt=timezone.now() - timedelta(days=settings.KEPT_VERSION_DAYS))
    expired = (
        FormerVersion.objects.annotate(first_surplus=Subquery(surplus))
        .filter(due)
        .filter(Q(document__owner=None) | Q(document__owner__legal_hold=""))
        .values_list("pk", flat=True)
    )
    purged = 0
    while batch := list(expired[:PURGE_BATCH]):
        purged += FormerVersion.objects.filter(pk__in=batch).delete()[0]
    return purged
