"""A file that may be there already: the same is left alone, a changed one becomes a new version.

The same document is one of the same owner, folder and name, with the same rights: with other rights it is
another document, so that nobody's rights change because somebody else's file has the same name.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

from django.core.files import File
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import User

from . import naming, pipeline
from .acl import Audience, access_list_for
from .models import Document


@dataclass(frozen=True, slots=True)
class Put:
    """The document, what became of the file, and what `pipeline.read_document` takes for a replacement."""

    document: Document
    outcome: Literal["added", "replaced", "unchanged"]
    replacement: dict[str, str | int] | None = None


def put_document(
    upload: "File[bytes]",
    name: str,
    *,
    owner: User | None,
    audience: Audience,
    folder: str = "",
    category: str = "",
    within_quota: bool = False,
) -> Put:
    """Add the file, or put it in the place of its earlier version. Raises pipeline.UploadRefused."""
    owner_id = owner.pk if owner else None
    known = Document.objects.filter(
        folder=naming.folder_name(folder),
        name=naming.file_name(name),
        owner=owner_id,
        access_list=access_list_for(audience, owner_id),
    ).first()
    if known is None:
        document = pipeline.add_document(
            upload,
            name,
            owner=owner,
            audience=audience,
            folder=folder,
            category=category,
            within_quota=within_quota,
        )
        return Put(document, "added")
    if known.sha256 != _digest(upload) or _another_comes(known):
        return Put(known, "replaced", pipeline.replace_file(known, upload, within_quota=within_quota))
    if known.status == Document.Status.READY:
        return Put(known, "unchanged")
    pipeline.retry(known)
    return Put(known, "replaced")


def _another_comes(known: Document) -> bool:
    """Whether a file waits, or is being read, to take the document's place: the last one given is to stay."""
    jobs = ProcrastinateJob.objects.filter(
        lock=pipeline.lock_name(known.pk), status__in=("todo", "doing")
    ).exclude(args__replacement=None)
    return known.status in Document.UNFINISHED and jobs.exists()


def _digest(upload: "File[bytes]") -> str:
    digest = hashlib.sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()
