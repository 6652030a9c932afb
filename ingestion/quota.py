"""Quotas of bytes and documents for each person, from the settings. Staff have none."""

from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.db.models import Count, Q, Sum
from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

from chatsite.accounts.models import User

from .file_names import UploadRefused
from .models import Document, FormerVersion

# Queued replacement files count too: they are stored in addition to current files.
INCOMING = """
    SELECT coalesce(sum((job.args -> 'replacement' ->> 'size')::bigint), 0)
    FROM procrastinate_jobs AS job
    JOIN ingestion_document AS document ON document.id = (job.args ->> 'document_id')::bigint
    WHERE job.status IN ('todo', 'doing') AND document.owner_id = %s
      AND job.args -> 'replacement' ->> 'name' <> document.file
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """The stored documents of a person, and their limits; 0 means no limit."""

    size: int
    documents: int
    max_size: int
    max_documents: int
    unread: int = 0  # documents that could not be read and were never searchable

    # Unread files count, too: they are stored for another attempt, and otherwise there would be no limit for
    # broken files.

    @property
    def limited(self) -> bool:
        return bool(self.max_size or self.max_documents)

    def __str__(self) -> str:
        """A text like “3 of 50 documents, 12 MB of 4.7 GB”."""
        parts = []
        if self.max_documents:
            words = gettext("%(number)s of %(most)s documents")
            numbers = (number_format(n, force_grouping=True) for n in (self.documents, self.max_documents))
            parts.append(words % dict(zip(("number", "most"), numbers, strict=True)))
        if self.max_size:
            words = gettext("%(size)s of %(most)s")
            parts.append(words % {"size": filesizeformat(self.size), "most": filesizeformat(self.max_size)})
        return ", ".join(parts)

    @property
    def words(self) -> str:
        """A sentence about the usage, and a second one if it includes unread documents."""
        sentences = [gettext("You are using %(use)s.") % {"use": self}]
        if self.unread:
            words = ngettext(
                "%(count)s of these documents could not be read.",
                "%(count)s of these documents could not be read.",
                self.unread,
            )
            sentences.append(words % {"count": number_format(self.unread, force_grouping=True)})
        return " ".join(sentences)


def usage_of(user: User) -> Usage:
    """The usage of a person; zeros without a quota.

    Its size includes former versions and waiting replacements.
    """
    if user.is_staff or not (settings.USER_MAX_BYTES or settings.USER_MAX_DOCUMENTS):
        return Usage(0, 0, 0, 0)
    mine = Document.objects.filter(owner=user)
    unread = Q(status=Document.Status.FAILED, version=0, part_of=None)
    kept = mine.aggregate(
        size=Sum("size", default=0), documents=Count("pk"), unread=Count("pk", filter=unread)
    )
    former = FormerVersion.objects.filter(document__owner=user).aggregate(size=Sum("size", default=0))
    with connection.cursor() as cursor:
        cursor.execute(INCOMING, [user.pk])
        incoming: int = cursor.fetchone()[0]
    size = kept["size"] + former["size"] + int(incoming)
    limits = settings.USER_MAX_BYTES, settings.USER_MAX_DOCUMENTS
    return Usage(size, kept["documents"], *limits, unread=kept["unread"])


def has_room(user: User, size: int) -> bool:
    """Whether `size` more bytes fit. Takes no lock, so it is only suitable for optional content."""
    use = usage_of(user)
    return not use.max_size or use.size + size <= use.max_size


def lock(user: User) -> None:
    """Serialize the claims of this user until the caller's transaction ends."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)


def claim(user: User, size: int, *, documents: int = 1, instead_of: int | None = None) -> None:
    """Raise UploadRefused unless `size` more bytes and `documents` more documents are allowed.

    The bytes are those of new documents, or of a file that replaces one of `instead_of` bytes.
    Other claims of this user wait until the caller's transaction, which saves the document, has ended; the
    limit therefore holds for any number of concurrent uploads.
    """
    lock(user)
    use = usage_of(user)
    if instead_of is None and 0 < use.max_documents < use.documents + documents:
        more = f", and this file holds {documents:,} more" if documents > 1 else ""
        raise UploadRefused(
            "too_many_documents",
            f"You may keep {use.max_documents:,} documents and have {use.documents:,}{more}."
            " Delete some first.",
        )
    if use.max_size and use.size - (instead_of or 0) + size > use.max_size:
        what = "the files in it have" if documents > 1 else "this file has"
        raise UploadRefused(
            "quota_exceeded",
            f"Your documents may take {filesizeformat(use.max_size)}."
            f" They take {filesizeformat(use.size)}, and {what} {filesizeformat(size)}."
            " Delete some first.",
        )
