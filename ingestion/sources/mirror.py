"""Mirrors a folder tree: compares it with its documents and applies the differences.

Documents of other sources are not changed; `SourceFile` lists the documents of each source.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.core.files import File
from django.db import transaction

from chatsite.accounts.holds import DOCUMENT_ON_HOLD, OnHold, is_on_hold
from chatsite.accounts.models import User
from ingestion import documents, file_names
from ingestion.access.lists import (
    Audience,
    audience_of,
    set_audience,
    widens,
)
from ingestion.file_names import UploadRefused
from ingestion.models import Document, SourceFile

from .folder_rights import (
    FolderRights,
    Rights,
    RightsError,
)
from .tree import (
    TreeFile,
    open_below,
    scan_tree,
)

# A file that was changed this recently may change again without a new modification time.
UNSURE_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """A folder to mirror: its name in the database, and the settings for its documents."""

    root: Path
    name: str
    prefix: str
    owner: User | None
    rights: FolderRights

    def folder_of(self, found: TreeFile) -> str:
        """The folder of a file's document. Raises UploadRefused if the path is too long."""
        return file_names.folder_name(f"{self.prefix}/{found.folder}")


@dataclass(frozen=True, slots=True)
class Difference:
    """A file in the tree, its rights, and its document, if any."""

    found: TreeFile
    rights: Rights
    known: SourceFile | None = None


@dataclass(slots=True)
class Differences:
    """Differences between a tree and its documents.

    Files in `stamped` have another modification time, but the same contents; they may also be in `moved` or
    `changed`.
    """

    new: list[Difference] = field(default_factory=list)
    changed: list[Difference] = field(default_factory=list)
    # Files whose readers, owner, folder or category differ.
    moved: list[Difference] = field(default_factory=list)
    stamped: list[Difference] = field(default_factory=list)
    gone: list[SourceFile] = field(default_factory=list)
    unchanged: int = 0
    failed: int = 0  # number of unchanged documents whose reading has failed
    files: int = 0
    documents: int = 0
    hidden: int = 0
    links: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of steps that `follow` will yield."""
        changes = len(self.new) + len(self.changed) + len(self.moved)
        return changes + len(self.stamped) + len(self.gone)

    def add(self, source: Source, each: Difference) -> None:
        """Add the file to the lists for its differences, or count it as unchanged."""
        row = each.known
        folder = source.folder_of(each.found)
        if row is None:
            self.new.append(each)
            return
        if (row.size, row.modified_ns) != (each.found.size, each.found.modified_ns):
            try:
                with open_below(source.root, each.found.path) as file:
                    same = hashlib.file_digest(file, "sha256").hexdigest() == row.sha256
            except OSError:
                if not _widened(source, each):
                    self.moved.append(each)  # removed readers lose access even if the file cannot be read
                raise
            if not same:
                self.changed.append(each)
                return
            self.stamped.append(each)
        document = row.document
        if document.sha256 != row.sha256 and _widened(source, each):
            # The newest contents have not been read successfully yet, so additional readers would see the
            # former contents.
            self.changed.append(each)
            return
        placed = (document.folder, document.category, document.owner_id) == (
            folder, each.rights.category, source.owner.pk if source.owner else None,
        )  # fmt: skip
        if placed and _readers(source, each.rights) == _current_readers(document):
            self.unchanged += 1
            self.failed += document.status == Document.Status.FAILED
        else:
            self.moved.append(each)


@dataclass(frozen=True, slots=True)
class SyncedDocument:
    """A document to be read, with its replacement for `documents.read_document`."""

    document: Document
    replacement: dict[str, str | int] | None = None


def compare(source: Source) -> Differences:
    """Compare the tree with its documents. Read-only."""
    tree = scan_tree(source.root)
    source.rights.expected = tree.with_rights
    rows = SourceFile.objects.filter(source=source.name).select_related("document__access_list")
    known = {row.path: row for row in rows.prefetch_related("document__access_list__entries")}
    result = Differences(
        files=len(tree.files), documents=len(known), hidden=tree.hidden, links=tree.links,
        problems=list(tree.problems),
    )  # fmt: skip
    unseen = [path for path, _ in tree.problems]
    refused: set[str] = set()
    for found in tree.files:
        row = known.pop(found.path, None)
        try:
            result.add(source, Difference(found, source.rights.of(found.folder), row))
        except RightsError as error:
            if found.folder not in refused:
                refused.add(found.folder)
                result.problems.append((found.folder or ".", f"{error} The folder is not changed."))
        except OSError as error:
            result.problems.append((found.path, f"It cannot be opened: {error.strerror or error}."))
        except UploadRefused as refusal:
            result.problems.append((found.path, refusal.message))
    # Paths with problems, and the files below them, do not count as deleted.
    result.gone = [
        row
        for row in known.values()
        if not any(each in (".", row.path) or row.path.startswith(f"{each}/") for each in unseen)
    ]
    return result


def follow(source: Source, differences: Differences) -> Iterator[SyncedDocument | None]:
    """Apply the differences; for each, yield the document to be read, or None.

    Deletions come first, all at once. Differences that cannot be applied are added to the problems.
    """
    kept = [row for row in differences.gone if is_on_hold(row.document.owner_id)]
    differences.problems += [(row.path, DOCUMENT_ON_HOLD) for row in kept]
    documents.delete_documents(row.document for row in differences.gone if row not in kept)
    yield from (None for _ in differences.gone)
    for each in differences.moved:
        with transaction.atomic():
            handed_over = _move(source, each)
        if not handed_over:
            differences.problems.append((each.found.path, DOCUMENT_ON_HOLD))
        yield None
    for each in differences.stamped:
        assert each.known
        _update_row(each.known, each.found, each.known.sha256)
        yield None
    for difference in [*differences.changed, *differences.new]:
        each = difference
        if each.known and _widened(source, each):
            # Remove the former contents, because additional readers must not see them.
            try:
                documents.delete_document(each.known.document)
            except OnHold:
                differences.problems.append((each.found.path, DOCUMENT_ON_HOLD))
                yield None
                continue
            each = replace(each, known=None)
        elif each.known:
            with transaction.atomic():
                _move(source, each)  # removed readers lose access at once, before the new contents are read
        try:
            with open_below(source.root, each.found.path) as file:
                yield _take(source, each, File(file, each.found.name))
        except UploadRefused as refusal:
            differences.problems.append((each.found.path, refusal.message))
            yield None
        except OSError as error:
            differences.problems.append((each.found.path, f"It cannot be opened: {error.strerror or error}."))
            yield None


def _readers(source: Source, rights: Rights) -> Audience:
    """The readers that `rights` name, and the owner."""
    owner = {source.owner.pk} if source.owner else set()
    return replace(rights.audience, user_ids=rights.audience.user_ids | owner)


def _current_readers(document: Document) -> Audience:
    current = audience_of(document)
    owner = {document.owner_id} if document.owner_id else set()
    return replace(current, user_ids=current.user_ids | owner)


def _widened(source: Source, each: Difference) -> bool:
    assert each.known
    return widens(_current_readers(each.known.document), _readers(source, each.rights))


def _move(source: Source, each: Difference) -> bool:
    """Set the document's readers, folder, category and owner. False if a legal hold keeps its owner."""
    assert each.known
    document = each.known.document
    is_kept = document.owner != source.owner and is_on_hold(document.owner_id)
    if not is_kept:
        document.owner = source.owner
    set_audience(document, each.rights.audience)
    Document.objects.filter(pk=document.pk).update(
        owner=document.owner, folder=source.folder_of(each.found), category=each.rights.category
    )
    return not is_kept


def _take(source: Source, each: Difference, file: "File[bytes]") -> SyncedDocument:
    """Add the file as a document, or queue it as the new file of its document."""
    row = each.known
    with transaction.atomic():
        if row:
            replacement = documents.replace_file(row.document, file)
            if _update_row(row, each.found, str(replacement["sha256"])):
                return SyncedDocument(row.document, replacement)
            # The document was deleted on the site meanwhile: the queued job removes the replacement.
        document = documents.upsert(
            file, each.found.name, owner=source.owner, audience=each.rights.audience,
            folder=source.folder_of(each.found), category=each.rights.category, mirrored=True,
        ).document  # fmt: skip
        SourceFile.objects.create(
            document=document,
            source=source.name,
            path=each.found.path,
            **_columns(each.found, document.sha256),
        )
        return SyncedDocument(document)


def _update_row(row: SourceFile, found: TreeFile, sha256: str) -> bool:
    """Store the state of a known file. False if its document was deleted meanwhile."""
    return bool(SourceFile.objects.filter(pk=row.pk).update(**_columns(found, sha256)))


def _columns(found: TreeFile, sha256: str) -> dict[str, Any]:
    unsure = time.time_ns() - found.modified_ns < UNSURE_NS
    return {"size": found.size, "modified_ns": 0 if unsure else found.modified_ns, "sha256": sha256}
