"""The parts of an archive or a message: a document for each file in it.

The enclosing document and the path in it identify a part. When the enclosing document changes, a
database trigger copies its owner, readers, category, labels and last day to the parts, and adapts their
folders, which begin with the path of the enclosing document.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from django.conf import settings
from django.core.files import File
from django.db.models import Count, Sum

from ingestion import quota
from ingestion.deletion import delete_rows
from ingestion.file_names import FOLDER_CHARACTERS, UploadRefused, file_name
from ingestion.models import Document, SourceFile
from ingestion.parsing import process
from ingestion.parsing.containers import MAX_FILES
from ingestion.parsing.formats import format_of
from ingestion.parsing.sections import Unreadable
from ingestion.queue import fair_queue
from ingestion.storage import files

MAX_DEPTH = 2  # maximum of `depth_of` for a part
MAX_LEFT_OUT = 200  # files that are listed as left out
TOO_LARGE = "it is larger than {most:g} MB"
TOO_MANY = "With the archives and messages in it, the file holds more than {most:,} files."
TOO_MUCH = "With the archives and messages in it, the file unpacks to more than {most:g} MB."


@dataclass(slots=True)
class NewParts:
    """The parts found in a document: their stored files by path.

    A file is None if an existing part already has it.
    """

    stored: dict[str, files.StoredFile | None] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def discard(self) -> None:
        """Remove the stored files, which nothing refers to."""
        for stored in self.stored.values():
            if stored:
                files.remove(stored.name)


def depth_of(document: Document) -> int:
    """How many documents this one is nested in."""
    return len(_enclosing(document))


def store(document: Document, reading: process.Reading, interruption: process.Interruption) -> NewParts:
    """Store the files of the parts; return all parts that were found.

    Files that existing parts already have are not stored again. Raises OSError and Interrupted.
    """
    new = NewParts(left_out=list(reading.left_out))
    if not reading.parts:
        return new
    known: dict[str, str] = {}
    for present in Document.objects.filter(part_of=document):
        queued = fair_queue.last_queued_file(present.pk)  # the part's last file may not have been read yet
        known[present.part_path] = str(queued["sha256"]) if queued else present.sha256
    try:
        for part in reading.parts:
            interruption.check()
            with part.file.open("rb") as file:
                if known.get(part.path) == files.digest(file):
                    new.stored[part.path] = None
                    continue
                file.seek(0)
                try:
                    new.stored[part.path] = files.store(File(file), settings.DOCUMENT_MAX_BYTES)
                except files.TooLarge:
                    most = settings.DOCUMENT_MAX_BYTES / 1_000_000
                    new.left_out.append((part.path, TOO_LARGE.format(most=most)))
    except BaseException:
        new.discard()
        raise
    return new


def lock(document: Document) -> None:
    """Lock the owner's quota and the enclosing documents: parts count towards their limits.

    Call this before the document itself is locked.
    """
    if document.owner:
        quota.lock(document.owner)
    wholes = [whole.pk for whole in _enclosing(document)]
    list(Document.objects.select_for_update(no_key=True).filter(pk__in=wholes).order_by("pk"))


def replace(whole: Document, new: NewParts, *, widened: bool) -> None:
    """Replace the parts of a document with those found.

    Call this in the transaction that swaps the document's passages. A changed part keeps its passages until
    its new file has been read, unless there are new readers (`widened`), who must not see the former file.
    Raises Unreadable if the parts exceed a limit.
    """
    present = Document.objects.select_for_update().filter(part_of=whole).order_by("pk")
    before = {part.part_path: part for part in present}
    gone = [part for path, part in before.items() if path not in new.stored]
    changed = {path: stored for path, stored in new.stored.items() if stored and path in before}
    added = {path: stored for path, stored in new.stored.items() if stored and path not in before}
    if gone:
        delete_rows(Document.objects.filter(pk__in=[part.pk for part in gone]))
    if widened and changed:
        again = [before[path] for path in changed]
        delete_rows(Document.objects.filter(pk__in=[part.pk for part in again]), announced=False)
        added |= changed
    _claim(whole, [stored.size for stored in added.values()])
    former_ids = {path: before[path].public_id for path in changed} if widened else {}
    parts = []
    for path, stored in added.items():
        part = _new_part(whole, path, stored)
        part.public_id = former_ids.get(path, part.public_id)
        parts.append(part)
    position = fair_queue.next_position(whole) if parts else 0
    for number, part in enumerate(parts):
        part.queue_position = position + number
    Document.objects.bulk_create(parts)
    for part in parts:
        fair_queue.enqueue(part)
    for path, part in before.items():
        if path in changed and not widened:
            replacement: dict[str, str | int] = asdict(changed[path])
            fair_queue.requeue(part, replacement)
        elif new.stored.get(path, ...) is None and part.status == Document.Status.FAILED:
            fair_queue.requeue(part, None)


def _new_part(whole: Document, path: str, stored: files.StoredFile) -> Document:
    folder, _, name = path.rpartition("/")
    kind = format_of(name)
    return Document(
        part_of=whole,
        part_path=path,
        folder="/".join(filter(None, [whole.folder, whole.name, folder]))[:FOLDER_CHARACTERS],
        name=file_name(name),
        owner_id=whole.owner_id,
        access_list_id=whole.access_list_id,
        category=whole.category,
        labels=whole.labels,
        valid_until=whole.valid_until,
        media_type=kind.media_type if kind else "application/octet-stream",
        file=stored.name,
        size=stored.size,
        sha256=stored.sha256,
    )


def _claim(whole: Document, sizes: Sequence[int]) -> None:
    """Raise Unreadable if parts exceed the outermost document's limits or the owner's quota.

    The quota does not apply to documents of a synchronised folder.
    """
    outermost = [*_enclosing(whole), whole][0]
    present = Document.objects.filter(pk=outermost.pk).with_parts().exclude(pk=outermost.pk)
    total = present.aggregate(size=Sum("size", default=0), number=Count("pk"))
    if total["number"] + len(sizes) > MAX_FILES:
        raise Unreadable(TOO_MANY.format(most=MAX_FILES))
    if total["size"] + sum(sizes) > settings.DOCUMENT_MAX_UNPACKED_BYTES:
        raise Unreadable(TOO_MUCH.format(most=settings.DOCUMENT_MAX_UNPACKED_BYTES / 1_000_000))
    mirrored = SourceFile.objects.filter(document=outermost).exists()
    if whole.owner and sizes and not mirrored:
        try:
            quota.claim(whole.owner, sum(sizes), documents=len(sizes))
        except UploadRefused as refusal:
            raise Unreadable(refusal.message) from None


def _enclosing(document: Document) -> list[Document]:
    """The documents in which this one is nested, outermost first."""
    wholes: list[Document] = []
    while document.part_of:
        document = document.part_of
        wholes.insert(0, document)
    return wholes
