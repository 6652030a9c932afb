"""Scopes: the part of the readable documents to which a search is limited.

A scope is a string in requests, rows and forms: "all", "own" (documents added by the caller),
"folder:path/of/it" (with subfolders), "category:Name", or "document:<public id>", where several ids are
separated by commas. It narrows a search and never extends what the caller may read: a scope that the caller
may not read finds nothing, just like a scope that does not exist.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import prepared, rows, rows_of_each
from ingestion.access.lists import private_digest
from ingestion.attachment_folder import ATTACHED, INSIDE, as_shown
from ingestion.models import Document, DocumentQuerySet, FormerId

ATTACHED_FOLDERS = (("attached", ATTACHED), ("inside", INSIDE))
ALL, OWN = "all", "own"
FOLDER, CATEGORY, DOCUMENT = "folder", "category", "document"
CLOSED = f"{DOCUMENT}:{UUID(int=0)}"  # replaces a folder or category whose name must not be revealed


def documents_in(principal: Principal, scope: str) -> list[int] | None:
    """The ids of the readable documents of a scope; None for everything."""
    if scope in ("", ALL):
        return None
    return list(_with_parts(principal, scope).values_list("pk", flat=True))


def kept_apart(principal: Principal, besides: Iterable[str] = ()) -> list[int]:
    """The ids of files that the caller attached to questions and that nobody else can read.

    A search of everything leaves them out, because they would crowd out the documents of the organisation.
    Files in a scope of `besides`, such as the scope of an earlier question, are searched nevertheless.
    """
    wanted = {"user_id": principal.user_id, "private": private_digest(principal.user_id)}
    found = rows_of_each([prepared("kept_apart", constants=ATTACHED_FOLDERS)], wanted)[0]
    apart = {row["id"] for row in found}
    if apart:
        for scope in set(besides):
            apart.difference_update(documents_in(principal, scope) or ())
    return sorted(apart)


def searched_parameters(principal: Principal) -> dict[str, Any]:
    """The parameters of the statement `count_searched`."""
    return {
        "user_id": principal.user_id,
        "private": private_digest(principal.user_id),
        "today": timezone.localdate(),
        **dict(ATTACHED_FOLDERS),
    }


def count_searched(principal: Principal) -> int:
    """The number of documents that a search of everything covers, without the files of `kept_apart`."""
    return int(rows("count_searched", searched_parameters(principal))[0]["count"])


def count_attached(principal: Principal, scopes: Iterable[str]) -> int:
    """How many more documents are searched if attached files in `scopes` are included."""
    searched = set(kept_apart(principal)).difference(kept_apart(principal, scopes))
    current = Q(valid_until=None) | Q(valid_until__gte=timezone.localdate())
    return Document.objects.filter(current, pk__in=searched, version__gt=0, passage_count__gt=0).count()


def count_named(principal: Principal, scope: str) -> int:
    """The number of readable documents in a scope, except those whose first processing failed."""
    return _with_parts(principal, scope).exclude(status=Document.Status.FAILED, version=0).count()


def count_unread(principal: Principal, scope: str) -> int:
    """How many of the caller's own documents in a document scope are still being read; 0 for other scopes."""
    if not scope.startswith(f"{DOCUMENT}:"):
        return 0
    found = _with_parts(principal, scope)
    return found.owned_by(principal).filter(status__in=Document.UNFINISHED).count()


def named(principal: Principal, scope: str) -> list[Document]:
    """The readable documents that a scope names one by one, in order; empty for other scopes."""
    kind, _, value = scope.partition(":")
    if kind != DOCUMENT:
        return []
    order = {each: place for place, each in enumerate(value.split(","))}
    found = _within(principal, scope)
    return sorted(found, key=lambda each: order.get(str(each.public_id), len(order)))


def is_closed(principal: Principal, scope: str) -> bool:
    """Whether a scope names a folder or category with nothing that the caller may read."""
    kind, _, _ = scope.partition(":")
    return kind in (FOLDER, CATEGORY) and not _within(principal, scope).exists()


def describe(principal: Principal, scope: str) -> str:
    """The scope as text for this reader, to use within a sentence; empty for everything."""
    kind, _, value = scope.partition(":")
    if kind in ("", ALL):
        return ""
    if kind == OWN:
        return gettext("what you added")
    if scope == CLOSED:
        return gettext("documents that you cannot read")
    if kind in (FOLDER, CATEGORY):
        # Hide the name if the reader can read nothing in it: a person with more rights may have chosen it.
        found = _within(principal, scope).exists()
        if kind == FOLDER:
            open_, closed = (
                gettext("the folder “%(name)s”"),
                gettext("a folder with nothing that you can read"),
            )
        else:
            open_, closed = (
                gettext("the category “%(name)s”"),
                gettext("a category with nothing that you can read"),
            )
        return open_ % {"name": as_shown(value)} if found else closed
    readable = _within(principal, scope)
    # Some of the chosen documents may be deleted or not readable for this reader.
    if "," in value and (number := readable.count()) > 1:
        return gettext("%(number)s chosen documents") % {"number": number}
    document = readable.first()
    if "," in value and document is None:
        return gettext("documents that you cannot read")
    return (
        gettext("“%(name)s”") % {"name": document} if document else gettext("a document that you cannot read")
    )


def _with_parts(principal: Principal, scope: str) -> DocumentQuerySet:
    """The readable documents of a scope; a scope of documents includes their parts."""
    found = _within(principal, scope)
    if scope.startswith(f"{DOCUMENT}:"):
        return found.with_parts().visible_to(principal)
    return found


def _within(principal: Principal, scope: str) -> DocumentQuerySet:
    kind, _, value = scope.partition(":")
    readable = Document.objects.visible_to(principal)
    if kind == OWN:
        return readable.owned_by(principal)
    if kind == FOLDER:
        folder = value.strip("/")
        return readable.filter(Q(folder=folder) | Q(folder__startswith=f"{folder}/"))
    if kind == CATEGORY:
        return readable.filter(category=value)
    if kind != DOCUMENT:
        return readable.none()
    ids = [UUID(each) for each in value.split(",")]
    merged = FormerId.objects.filter(public_id__in=ids).values("document")
    return readable.filter(Q(public_id__in=ids) | Q(pk__in=merged))
