"""All data of one person as a zip file, written to a path or streamed."""

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.cache import cache
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from chat.evaluation.models import ProofQuestion, ProofRun
from chat.models import VerifiedAnswer
from chatsite.accounts import staff_access
from chatsite.accounts.api.authentication import session_principal
from chatsite.accounts.audit import record_before
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal, still_valid
from chatsite.db.threads import reading_everything, request_may_wait
from chatsite.http.checked_transfer import while_allowed
from history import conversation_export, projects
from history.models import Conversation, Feedback, OpenedShare, Project, Share
from ingestion.models import Document, FormerVersion
from ingestion.storage import files

logger = logging.getLogger(__name__)

CHUNK_BYTES = 65_536
MAX_SECONDS = 600  # after this time, an unfinished export no longer blocks another


class ExportRunning(Exception):
    """The caller's last export is still running."""


def export_response(
    request: HttpRequest, person: User, *, actor: User, name: str, reason: str = ""
) -> HttpResponseBase:
    """A response with the file for `actor`, who can run only one (expensive) export at a time.

    For another person's data, `reason` is recorded first. Raises ExportRunning and StorageFault.
    """
    request_may_wait()
    principal = session_principal(request)
    if not cache.add(f"export:{actor.pk}", True, MAX_SECONDS):
        raise ExportRunning
    try:
        if actor.pk != person.pk:
            staff_access.begin_export(actor, person, reason)
        with tempfile.TemporaryDirectory(
            dir=settings.FILE_UPLOAD_TEMP_DIR, ignore_cleanup_errors=True
        ) as folder:
            path = Path(folder) / "export.zip"
            export(person, path, actor=actor)
            file = path.open("rb")
        # The file has no name any more, so the system frees it after it has been sent.
        response = FileResponse(file, as_attachment=True, filename=name)
        if isinstance(request, ASGIRequest):
            # Under ASGI, Django would otherwise load the whole file into memory.
            may_have = partial(_may_have, principal, actor.pk == person.pk)
            response.streaming_content = while_allowed(_pieces(file), may_have)
        return response
    except files.StorageFault as fault:
        logger.error("The storage failed during an export: %s", type(fault.__cause__ or fault).__name__)
        raise
    finally:
        cache.delete(f"export:{actor.pk}")


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while piece := await read(CHUNK_BYTES):
        yield piece


def _may_have(principal: Principal, is_own: bool) -> bool:
    """Whether the session is still valid and, for another person's data, the caller may still export it."""
    if not still_valid(principal):
        return False
    if is_own:
        return True
    actor = User.objects.get(pk=principal.user_id)
    return actor.is_staff and actor.has_perm(staff_access.EXPORT_PERMISSION)


def export(person: User, path: Path, *, actor: User | None) -> None:
    """Write all data of the person to a new zip file with mode 0600.

    The command's export has all audit entries about the person. An export by the person or by staff (`actor`)
    only has entries about the person's own actions: the person may get this file, and actions of others are
    disclosed by `staff_access.access_to_disclose`. Staff must have given a reason
    (`staff_access.begin_export`). Raises FileExistsError and StorageFault. An incomplete file is removed.
    """
    about = Q(actor_id=person.pk)
    if actor is None:
        about |= Q(person_id=person.pk)
    if actor is None or actor.pk == person.pk:
        record_before(AuditEntry.Action.PERSON_EXPORTED, actor=actor, person=person)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as target,
            ZipFile(target, "w", ZIP_DEFLATED) as archive,
            reading_everything(),
        ):
            for name, content in _records(person, about):
                archive.writestr(name, _json(content))
            _export_conversations(person, archive)
            _export_files(person, archive)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _records(person: User, about: Q) -> Iterator[tuple[str, Any]]:
    """File names and JSON of everything except conversations and files.

    The JSON contains no secrets and no hashes of secrets. `about` selects the person's entries of the audit
    log.
    """
    yield "profile.json", _profile(person)
    keys = person.api_keys.values(
        "prefix", "name", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at"
    )
    yield "api-keys.json", list(keys)
    yield "devices.json", list(person.devices.values("browser", "system", "signed_in_at"))
    disclosed = staff_access.access_to_disclose(person.pk)
    yield "staff-access.json", list(disclosed.values("begun_at", "conversation", "searched", "reason"))
    yield "webhooks.json", list(person.webhooks.values("id", "name", "url", "events", "active", "created_at"))
    yield "feedback.json", list(Feedback.objects.filter(message__conversation__owner=person).values())
    yield "projects.json", [_project(each, person) for each in Project.objects.filter(owner=person)]
    shares = Share.objects.filter(conversation__owner=person).values(
        "id", "conversation_id", "answer_id", "title", "up_to", "created_at", "expires_at", "revoked_at"
    )
    yield "shared-links.json", list(shares)
    opened = OpenedShare.objects.filter(reader=person)
    yield "opened-links.json", list(opened.values("share_id", "opened_at"))
    documents = Document.objects.filter(owner=person).values(
        "public_id", "folder", "name", "title", "category", "labels", "source_url", "valid_until",
        "media_type", "size", "status", "reason", "created_at", "changed_at",
    )  # fmt: skip
    yield "documents.json", list(documents)
    answers = VerifiedAnswer.objects.filter(owner=person).prefetch_related("questions", "citations")
    written = [
        {
            "text": answer.text,
            "questions": [question.text for question in answer.questions.all()],
            "sources": [citation.words for citation in answer.citations.all()],
            "validUntil": answer.valid_until,
            "inUse": answer.active,
        }
        for answer in answers
    ]
    yield "verified-answers.json", written
    evaluations = {
        "questions": list(ProofQuestion.objects.filter(added_by=person).values("text", "place", "origin")),
        "runs": list(ProofRun.objects.filter(started_by=person).values("created_at", "note", "state")),
    }
    yield "evaluations.json", evaluations
    entries = AuditEntry.objects.filter(about).order_by("pk")
    yield "audit.json", list(entries.values("created_at", "action", "actor", "person", "subject"))


def _profile(person: User) -> dict[str, Any]:
    return {
        "number": person.pk,
        "username": person.username,
        "firstName": person.first_name,
        "lastName": person.last_name,
        "email": person.email,
        "wish": person.wish,
        "active": person.is_active,
        "staff": person.is_staff,
        "superuser": person.is_superuser,
        "joinedAt": person.date_joined,
        "lastSignIn": person.last_login,
        "groups": sorted(person.groups.values_list("name", flat=True)),
        "permissions": sorted(person.get_user_permissions()),
        "identities": list(person.identities.values("issuer", "claim", "subject", "created_at")),
    }


def _project(project: Project, owner: User) -> dict[str, Any]:
    """The project with its owner's conversations, without those of members."""
    conversations = project.conversations.filter(owner=owner).order_by("pk")
    return {
        "id": project.pk,
        "name": project.name,
        "instructions": project.instructions,
        "scope": project.scope,
        "createdAt": project.created_at,
        "updatedAt": project.updated_at,
        "members": projects.member_names(project),
        "conversations": list(conversations.values_list("pk", flat=True)),
    }


def _export_conversations(person: User, archive: ZipFile) -> None:
    """Write each conversation as JSON and as Markdown, including deleted ones that can be restored."""
    principal = Principal(person.pk, "command")
    conversations = Conversation.objects.filter(owner=person).order_by("created_at", "pk")
    for number, conversation in enumerate(conversations, start=1):
        name = f"conversations/{number:05}"
        archive.writestr(f"{name}.json", _json(conversation_export.as_json(principal, conversation)))
        archive.writestr(f"{name}.md", conversation_export.as_markdown(principal, conversation))


def _export_files(person: User, archive: ZipFile) -> None:
    for document in Document.objects.filter(owner=person).order_by("pk"):
        name = f"documents/{document.public_id}/{document.name}"
        try:
            source = files.open_file(document)
        except FileNotFoundError:
            archive.writestr(f"{name}.missing.txt", "The file is missing on the server.")
            continue
        with source, archive.open(name, "w", force_zip64=True) as target:
            digest = hashlib.sha256()
            while piece := files.read_piece(source, CHUNK_BYTES):
                digest.update(piece)
                target.write(piece)
        if digest.hexdigest() != document.sha256:
            archive.writestr(f"{name}.damaged.txt", "The file on the server is not the one that was added.")
    for former in FormerVersion.objects.filter(document__owner=person).select_related("document"):
        name = f"documents/{former.document.public_id}/version-{former.version}.txt"
        archive.writestr(name, former.content)


def _json(content: Any) -> str:
    return json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2)
