"""`manage.py ingest PATH…`: add files and folders as documents, and read them."""

import contextlib
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.files import File
from django.core.management.base import BaseCommand, CommandError

from chatsite.db.migration_state import demand_migrations
from ingestion import documents
from ingestion.access import lists
from ingestion.document_identity import sha256_of
from ingestion.documents import upsert
from ingestion.file_names import file_name, folder_name
from ingestion.management import document_options
from ingestion.management.progress import Bar, counted, failed_parts, read_now, shown
from ingestion.models import Document, Passage
from ingestion.sources.tree import folder_above, is_link, open_below


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that has become a document, or its next version."""

    path: Path
    sha256: str


# The files that the command has added, by folder and name of their documents.
Added = dict[tuple[str, str], AddedFile]


@dataclass
class Item:
    """One file to add, with its document once it is stored, or the reason why it failed."""

    path: Path
    folder: str
    root: Path | None = None  # the given folder that contains the file; links in it are not followed
    document: Document | None = None
    replacement: dict[str, str | int] | None = None
    unchanged: bool = False
    reason: str = ""


class Command(BaseCommand):
    help = "Add files, and all files in folders, as documents, and read them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="A file or a folder.")
        document_options.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        wanted = document_options.parse(options)
        if not (wanted.audience or wanted.owner):
            raise CommandError(
                "Name the readers of the documents: --everyone, or --user and --group, or --owner."
            )
        items, skipped, links = _files(options["paths"])
        bar = Bar(sys.stderr, len(items))
        # Store all files first, so that a worker reads the rest if the command is killed.
        added: Added = {}
        for item in items:
            if not item.reason:
                _store(item, wanted, added)
        for done, item in enumerate(items):
            bar.show(done, item.path.name)
            if item.document and not item.unchanged:
                read_now(item.document, item.replacement)
        bar.clear()
        self._summarise(items, skipped, links)

    def _summarise(self, items: list[Item], skipped: list[Path], links: list[Path]) -> None:
        for item in items:
            if item.document and not item.unchanged:
                item.document = Document.objects.filter(pk=item.document.pk).first()
                item.reason = (
                    item.document.reason if item.document else "It has been deleted in the meantime."
                )
        failed = [item for item in items if item.reason or item.document is None]
        unchanged = [item for item in items if item.unchanged]
        taken = [item.document.pk for item in items if item.document and not item.unchanged]
        found = Document.objects.filter(pk__in=taken).with_parts().filter(status=Document.Status.READY)
        ready = set(found.values_list("pk", flat=True))
        passages = Passage.objects.filter(document__in=ready).count()
        for part in failed_parts(taken):
            failed.append(Item(Path(part.folder, part.name), part.folder, document=part, reason=part.reason))
        words = [f"{counted(len(ready), 'document')} ready, {counted(passages, 'passage')}"]
        words += [f"{len(unchanged)} unchanged"] if unchanged else []
        words += [f"{len(failed)} failed"] if failed else []
        words += [f"{counted(len(skipped), 'hidden file')} skipped"] if skipped else []
        words += [f"{counted(len(links), 'symbolic link')} not followed"] if links else []
        self.stdout.write("; ".join(words) + ".")
        for path in links:
            self.stdout.write(f"  {shown(path)}: This is a symbolic link. Give its target instead.")
        for item in failed:
            self.stdout.write(f"  {shown(item.path)}: {item.reason}")
        if failed:
            raise CommandError(f"{len(failed):,} of {counted(len(items), 'file')} failed; see above.")
        if not items:
            raise CommandError("Nothing was ingested.")


def _files(paths: Iterable[Path]) -> tuple[list[Item], list[Path], list[Path]]:
    """The files to add, with their relative folders; and the skipped hidden files and links.

    Links in folders are skipped, because a link could lead to a file that the link's creator may not read.
    """
    items: list[Item] = []
    skipped: list[Path] = []
    links: list[Path] = []
    for given in paths:
        is_folder = False
        with contextlib.suppress(OSError):  # opening the path gives the reason
            is_folder = given.is_dir()
        if not is_folder:
            items.append(Item(given, ""))
            continue
        errors: list[OSError] = []
        for root, folders, names in os.walk(given, onerror=errors.append):
            folders.sort()
            linked = [name for name in folders if is_link(Path(root, name))]
            for name in sorted([*names, *linked]):
                path = Path(root, name)
                if _is_hidden(path, given):
                    skipped.append(path)
                elif is_link(path):
                    links.append(path)
                else:
                    items.append(Item(path, folder_above(path.relative_to(given).as_posix()), given))
        unlisted = [(Path(error.filename), error) for error in errors]
        items += [
            Item(path, "", reason=_unopened(error)) for path, error in unlisted if not _is_hidden(path, given)
        ]
    return items, skipped, links


def _is_hidden(path: Path, given: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(given).parts)


def _unopened(error: OSError) -> str:
    return f"It cannot be opened: {error.strerror or error}."


def _store(item: Item, wanted: document_options.DocumentOptions, added: Added) -> None:
    """Create or find the file's document; for a file that cannot be added, note the reason."""
    try:
        place = folder_name(item.folder), file_name(item.path.name)
        if item.root is None:
            if item.path.exists() and not item.path.is_file():
                raise OSError("It is not a regular file")  # opening a pipe would wait forever
            opened: BinaryIO = item.path.open("rb")
        else:
            opened = open_below(item.root.resolve(), item.path.relative_to(item.root).as_posix())
        with opened as file:
            first = added.get(place)
            if first and sha256_of(File(file)) != first.sha256:
                item.reason = (
                    f"It would replace {shown(first.path)}, which gets the same folder and name on the site."
                    " Rename one, or ingest a folder that contains both."
                )
                return
            put = upsert(
                File(file),
                item.path.name,
                owner=wanted.owner,
                audience=wanted.audience or lists.Audience(),
                folder=item.folder,
                category=wanted.category,
            )
    except FileNotFoundError:
        item.reason = "There is no such file."
    except OSError as error:
        item.reason = _unopened(error)
    except documents.UploadRefused as refusal:
        item.reason = refusal.message
    else:
        item.document, item.replacement = put.document, put.replacement
        sha256 = put.replacement["sha256"] if put.replacement else put.document.sha256
        added.setdefault(place, AddedFile(item.path, str(sha256)))
        item.unchanged = put.outcome == "unchanged" and put.document.status == Document.Status.READY
