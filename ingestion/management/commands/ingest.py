"""`manage.py ingest PATH…`: add files and folders as documents, and read them."""

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
from ingestion.documents import upsert
from ingestion.management import document_options
from ingestion.management.progress import Bar, counted, failed_parts, read_now, shown
from ingestion.models import Document, Passage
from ingestion.sources.tree import folder_above, open_below


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
        for item in items:
            _store(item, wanted)
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
        if not given.is_dir():
            items.append(Item(given, ""))
            continue
        for root, folders, names in os.walk(given):
            folders.sort()
            linked = [name for name in folders if Path(root, name).is_symlink()]
            for name in sorted([*names, *linked]):
                path = Path(root, name)
                relative = path.relative_to(given)
                if any(part.startswith(".") for part in relative.parts):
                    skipped.append(path)
                elif path.is_symlink():
                    links.append(path)
                else:
                    items.append(Item(path, folder_above(relative.as_posix()), given))
    return items, skipped, links


def _store(item: Item, wanted: document_options.DocumentOptions) -> None:
    """Create or find the file's document; for a file that cannot be added, note the reason."""
    try:
        if item.root is None:
            if item.path.exists() and not item.path.is_file():
                raise OSError("It is not a regular file")  # opening a pipe would wait forever
            opened: BinaryIO = item.path.open("rb")
        else:
            opened = open_below(item.root.resolve(), item.path.relative_to(item.root).as_posix())
        with opened as file:
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
        item.reason = f"It cannot be opened: {error.strerror or error}."
    except documents.UploadRefused as refusal:
        item.reason = refusal.message
    else:
        item.document, item.replacement = put.document, put.replacement
        item.unchanged = put.outcome == "unchanged" and put.document.status == Document.Status.READY
