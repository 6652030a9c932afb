"""`manage.py ingest PATH…`: files and folders into documents, read before the command returns."""

import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from django.contrib.auth.models import Group
from django.core.files import File
from django.core.management.base import BaseCommand, CommandError

from chatsite.accounts.models import User
from ingestion import acl, pipeline
from ingestion.models import Document, Passage
from ingestion.parsing.sections import clean
from ingestion.putting import put_document

ATTEMPTS = 3
BAR_WIDTH = 30
LINE_WIDTH = 79


@dataclass(frozen=True)
class Options:
    """What the documents get besides their files."""

    owner: User | None
    audience: acl.Audience
    category: str


@dataclass
class Item:
    """One file on its way; it has a document once it was taken, and a reason where it was not."""

    path: Path
    folder: str
    document: Document | None = None
    replacement: dict[str, str | int] | None = None
    unchanged: bool = False
    reason: str = ""


class Command(BaseCommand):
    help = "Add files, and all files in folders, as documents, and read them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="A file or a folder.")
        parser.add_argument("--everyone", action="store_true", help="Everyone who signs in may read them.")
        parser.add_argument("--guests", action="store_true", help="Everyone may, and guests too.")
        parser.add_argument(
            "--user", nargs="+", action="extend", default=[], metavar="NAME", help="These people may."
        )
        parser.add_argument(
            "--group", nargs="+", action="extend", default=[], metavar="NAME", help="These groups may."
        )
        parser.add_argument(
            "--owner", metavar="NAME", help="Whose documents they are; the owner may always read them."
        )
        parser.add_argument("--category", default="", help="A category for all of them.")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = _options(options)
        items, skipped = _files(options["paths"])
        bar = Bar(sys.stderr, len(items))
        # All are taken first: if the command is killed, a worker reads the rest.
        for item in items:
            _take(item, wanted)
        for done, item in enumerate(items):
            bar.show(done, item.path.name)
            _read(item)
        bar.clear()
        self._summarise(items, skipped)

    def _summarise(self, items: list[Item], skipped: list[Path]) -> None:
        for item in items:
            if item.document and not item.unchanged:
                item.document = Document.objects.filter(pk=item.document.pk).first()
                item.reason = item.document.reason if item.document else "It was deleted meanwhile."
        failed = [item for item in items if item.reason or item.document is None]
        unchanged = [item for item in items if item.unchanged]
        ready = [item.document for item in items if item not in failed and not item.unchanged]
        passages = Passage.objects.filter(
            document__in=[document.pk for document in ready if document]
        ).count()
        words = [f"{_count(len(ready), 'document')} ready, {_count(passages, 'passage')}"]
        words += [f"{len(unchanged)} unchanged"] if unchanged else []
        words += [f"{len(failed)} failed"] if failed else []
        words += [f"{_count(len(skipped), 'hidden file')} skipped"] if skipped else []
        self.stdout.write("; ".join(words) + ".")
        for item in failed:
            self.stdout.write(f"  {_shown(item.path)}: {item.reason}")
        if not ready and not unchanged:
            raise CommandError("Nothing was ingested.")


class Bar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream = stream
        self._total = total
        self._shown = stream.isatty()

    def show(self, done: int, name: str) -> None:
        if self._shown:
            full = BAR_WIDTH * done // max(self._total, 1)
            bar = "█" * full + "░" * (BAR_WIDTH - full)
            self._write(f"{bar} {done}/{self._total} {clean(name)}"[:LINE_WIDTH])

    def clear(self) -> None:
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()


def _options(options: dict[str, Any]) -> Options:
    """The rights and owner that were asked for, which must exist."""
    users = _named(User.objects.all(), "username", options["user"], "user")
    groups = _named(Group.objects.all(), "name", options["group"], "group")
    owners = _named(User.objects.all(), "username", [options["owner"]] if options["owner"] else [], "user")
    everyone = options["everyone"] or options["guests"]
    if everyone and (users or groups):
        raise CommandError("--everyone already includes all users and groups: leave out --user and --group.")
    if not (everyone or users or groups or owners):
        raise CommandError("Say who may read the documents: --everyone, or --user and --group, or --owner.")
    audience = acl.Audience(
        everyone=everyone,
        guests=options["guests"],
        user_ids=frozenset(user.pk for user in users),
        group_ids=frozenset(group.pk for group in groups),
    )
    return Options(owners[0] if owners else None, audience, options["category"])


def _named(rows: Any, field: str, names: list[str], kind: str) -> list[Any]:
    found = {getattr(row, field): row for row in rows.filter(**{f"{field}__in": names})}
    missing = [name for name in names if name not in found]
    if missing:
        raise CommandError(f"There is no {kind} named {', '.join(missing)}.")
    return [found[name] for name in names]


def _files(paths: Iterable[Path]) -> tuple[list[Item], list[Path]]:
    """The files to take, with their folders below the given one, and the hidden ones to skip."""
    items: list[Item] = []
    skipped: list[Path] = []
    for given in paths:
        if not given.is_dir():
            items.append(Item(given, ""))
            continue
        for path in _below(given):
            relative = path.relative_to(given)
            if any(part.startswith(".") for part in relative.parts):
                skipped.append(path)
            else:
                items.append(Item(path, relative.parent.as_posix().strip(".")))
    return items, skipped


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield Path(root, name)


def _take(item: Item, wanted: Options) -> None:
    """Make or find the file's document. A file that cannot be taken gets a reason."""
    try:
        with item.path.open("rb") as file:
            _take_file(item, File(file), wanted)
    except FileNotFoundError:
        item.reason = "There is no such file."
    except OSError as error:
        item.reason = f"It cannot be opened: {error.strerror}."
    except pipeline.UploadRefused as refusal:
        item.reason = refusal.message


def _take_file(item: Item, file: "File[bytes]", wanted: Options) -> None:
    put = put_document(
        file,
        item.path.name,
        owner=wanted.owner,
        audience=wanted.audience,
        folder=item.folder,
        category=wanted.category,
    )
    item.document, item.replacement = put.document, put.replacement
    item.unchanged = put.outcome == "unchanged"


def _read(item: Item) -> None:
    """Read the file here and now, unless a running worker has already begun or finished it."""
    if item.document is None or item.unchanged:
        return
    for attempt in range(1, ATTEMPTS + 1):
        try:
            pipeline.read_document(item.document.pk, item.replacement)
        except pipeline.TryAgain:
            time.sleep(attempt)
        else:
            pipeline.forget_jobs(item.document)
            return


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _shown(path: Path) -> str:
    return clean(str(path)).replace("\n", " ")
