"""Finds the document to which an upload belongs, and decides whether to insert, replace or keep it."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from django.core.files import File
from django.db import IntegrityError, transaction
from django.db.models import F

from chatsite.accounts.models import User
from chatsite.db.threads import reading_everything
from ingestion.access.lists import audience_of, change_rights, narrowed
from ingestion.parsing.formats import FORMATS, ending_of

from .file_names import UploadRefused
from .models import Document, DocumentQuerySet, ExternalId
from .queue.fair_queue import enqueue, last_queued_file, next_position, requeue
from .storage import files

NAME_TAKEN = (
    "Another document of yours has this name and folder. Choose another folder, or replace that document."
)


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """The outcome of an upload: the document, and the `replacement` for `read_document`."""

    document: Document
    outcome: Literal["added", "replaced", "unchanged"]
    replacement: dict[str, str | int] | None = None


def origin_of(owner: User | None) -> str:
    """Return the namespace in which folder and name identify an uploaded document.

    A document keeps its origin after its owner's account is deleted, so that documents of two deleted
    accounts may have the same name.
    """
    return f"user:{owner.pk}" if owner else "shared"


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload without its file: a row for a new document, an external id, and details.

    `replaces` is the primary key of the document that the upload replaces, whatever the name of the file.
    """

    document: Document
    external_id: str
    details: Mapping[str, Any]
    replaces: int | None = None

    def existing(self) -> DocumentQuerySet:
        """The document that this upload replaces, if there is one and it still has this owner."""
        mine = Document.objects.filter(owner=self.document.owner)
        if self.replaces:
            return mine.filter(pk=self.replaces)
        if self.external_id:
            named = ExternalId.objects.filter(owner=self.document.owner, external_id=self.external_id)
            return mine.filter(pk__in=named.values("document"))
        return mine.filter(origin=self.document.origin, folder=self.document.folder, name=self.document.name)

    def unchanged(self, file: "File[bytes]") -> UpsertResult | None:
        """Apply audience, place, category and details to a document that already has this file.

        The place is the folder and the name. Returns None if there is no such document. If reading the
        document failed before, or its title changes, it is read again.
        """
        with reading_everything():  # the owner identifies the document, regardless of its access list
            existing = self.existing()
            if not existing.exists():
                return None
            sha256 = sha256_of(file)
            with transaction.atomic():
                known = existing.select_for_update(no_key=True).first()
                return self.keep(known, sha256) if known else None

    def keep(self, known: Document, sha256: str) -> UpsertResult | None:
        """Like :meth:`unchanged`, for a locked document and the uploaded file's digest.

        If a newer file is queued for the document, the upload is compared with that file and its readers.
        """
        pending = last_queued_file(known.pk)
        queued = FORMATS.get(pending.get("ending", "")) if pending else None
        if (queued.media_type if queued else known.media_type) != self.document.media_type:
            return None  # the new name has another extension, and therefore another format
        if pending is None:
            if known.sha256 != sha256:
                return None
            same = known.access_list_id == self.document.access_list_id
            if not same:
                change_rights(self.document.owner, known, audience_of(self.document))
        else:
            same = pending.get("access_list_id", known.access_list_id) == self.document.access_list_id
            if pending["sha256"] != sha256 or not same:
                return None
        changed = self._move(known)
        if known.status == Document.Status.FAILED or "given_title" in changed:
            requeue(known, None)
            return UpsertResult(known, "replaced")
        return UpsertResult(known, "unchanged" if same and not changed & self.details.keys() else "replaced")

    def replace(self, known: Document, stored: files.StoredFile) -> UpsertResult:
        """Queue the stored file as the next version of `known`, whose row is locked."""
        replacement: dict[str, str | int] = asdict(stored) | {"ending": ending_of(self.document.name)}
        # Readers who may only see the new file must not see the earlier contents. They are added when the new
        # file replaces the old one, unless the audience is changed again before.
        wanted = audience_of(self.document)
        change_rights(self.document.owner, known, narrowed(audience_of(known), wanted))
        rows = Document.objects.filter(pk=known.pk)
        rows.update(audience_version=F("audience_version") + 1)
        if known.access_list_id != self.document.access_list_id:
            version = rows.values_list("audience_version", flat=True).get()
            replacement |= {"access_list_id": self.document.access_list_id, "audience_version": version}
        self._move(known)
        requeue(known, replacement)
        return UpsertResult(known, "replaced", replacement)

    def _move(self, known: Document) -> set[str]:
        """Set place, details, and the category (if given) on `known`. Returns the changed columns.

        Raises UploadRefused if another document has the new place.
        """
        # The media type does not change yet: the former file is served until the new file has been read.
        wanted = {name: getattr(self.document, name) for name in ("folder", "name")}
        wanted |= {"category": self.document.category or known.category, **self.details}
        changed = {name: value for name, value in wanted.items() if getattr(known, name) != value}
        if changed:
            for name, value in changed.items():
                setattr(known, name, value)
            try:
                with transaction.atomic():
                    Document.objects.filter(pk=known.pk).update(**changed)
            except IntegrityError as error:
                raise UploadRefused("name_taken", NAME_TAKEN) from error
        return set(changed)

    def insert(self) -> bool:
        """Insert the document and queue its reading; False if another transaction was first."""
        document = self.document
        try:
            with transaction.atomic():
                # Earlier versions of the software left the identity with a document that got another owner.
                if self.external_id:
                    ids = ExternalId.objects.filter(owner=document.owner, external_id=self.external_id)
                    ids.exclude(document__owner=document.owner).delete()
                if document.origin is not None:
                    identity = {"origin": document.origin, "folder": document.folder, "name": document.name}
                    Document.objects.filter(**identity).exclude(owner=document.owner).update(origin=None)
                document.queue_position = next_position(document)
                document.save(force_insert=True)
                if self.external_id and document.owner:
                    ExternalId.objects.create(
                        owner=document.owner, external_id=self.external_id, document=document
                    )
                enqueue(document)
        except IntegrityError:
            document.pk = None
            return False
        return True


def sha256_of(upload: "File[bytes]") -> str:
    """The SHA-256 of a file; rewinds the file."""
    digest = hashlib.sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()
