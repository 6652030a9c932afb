"""Finds problems of a site without changing it, and says in plain words how to solve each."""

import json
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext

from chatsite.checks import serious_problems
from chatsite.db.availability import first_line
from chatsite.db.backend.role import unlocked_role
from chatsite.db.migration_state import unapplied_migrations
from chatsite.demo import exposed_by, refusal
from chatsite.http.outgoing.bounded_request import bounded_request
from ingestion.embedding import pending_change
from ingestion.models import Document
from ingestion.storage import files

from .database_setup import complaint

MIN_FREE_BYTES = 2_000_000_000
MIN_OPEN_FILES = 4_096
MAX_CLOCK_SECONDS = 5.0
OLD_JOB_SECONDS = 1_800
OLD_BACKUP = timedelta(days=8)
MAX_FILES = 500  # number of newest documents whose files are checked
MAX_OBJECTS = 20  # the same in a bucket, where each file takes a request
MODEL_SECONDS = 5.0
NAME_CHARACTERS = 200  # names of models, which the model's server chooses, are cut to this length
OPENAI = "https://api.openai.com/v1"
WORKERS = "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '1 minute'"
JOBS = """
    SELECT count(DISTINCT job.id), coalesce(extract(epoch FROM now() - min(event.at)), 0)
    FROM procrastinate_jobs AS job JOIN procrastinate_events AS event ON event.job_id = job.id
    WHERE job.status = 'todo' AND event.type = 'deferred' AND job.task_name = 'ingestion.read'
"""
VECTOR = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
CLOCK = "SELECT extract(epoch FROM clock_timestamp())"
EXPIRED = "SELECT count(*) FROM chat_lease WHERE until < now() - interval '1 minute'"


@dataclass(frozen=True)
class Finding:
    """One result of a check. `level` is ok, note (worth knowing), or wrong (needs action)."""

    level: str
    words: str


def ok(words: str) -> Finding:
    return Finding("ok", words)


def note(words: str) -> Finding:
    return Finding("note", words)


def wrong(words: str) -> Finding:
    return Finding("wrong", words)


def findings(*, ask_servers: bool = True) -> Iterator[Finding]:
    """All findings, those about the database last.

    The requests to the model's server and to the bucket, made only if `ask_servers`, may take seconds.
    """
    yield from _of_settings()
    yield from _of_folders()
    if ask_servers:
        yield from _of_model()
    made = last_backup()
    if made is None:
        yield note(gettext("No backup was made here with manage.py backup."))
    elif timezone.now() - made > OLD_BACKUP:
        yield wrong(
            gettext("The last backup was made on %(day)s: make a new one, and let a timer do it regularly.")
            % {"day": f"{made:%Y-%m-%d}"}
        )
    else:
        yield ok(
            gettext("The last backup was made on %(moment)s.") % {"moment": f"{made:%Y-%m-%d %H:%M} UTC"}
        )
    try:
        yield from _of_database(ask_bucket=ask_servers)
    except DatabaseError as error:
        yield wrong(
            gettext("The database cannot be queried: %(error)s. Is it running, and is DATABASE_URL right?")
            % {"error": first_line(error)}
        )


def _of_settings() -> Iterator[Finding]:
    problems = serious_problems()
    yield from map(wrong, problems)
    if not problems:
        yield ok(gettext("Settings: no contradictions."))
    if settings.DEBUG:
        yield wrong(gettext("CHATSITE_DEBUG is 1: error pages show internals of the site. Remove it."))
    if (reason := exposed_by()) and not settings.HTTPS:
        yield wrong(
            gettext(
                "The site can be reached from other machines (%(reason)s) without HTTPS: passwords can be "
                "read on the network. Put a proxy with TLS in front of it, and set CHATSITE_HTTPS=1."
            )
            % {"reason": reason}
        )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < MIN_OPEN_FILES:
        words = gettext(
            "Each process may open only %(count)s files, which limits its connections: raise LimitNOFILE."
        )
        yield note(words % {"count": hard})


def _of_folders() -> Iterator[Finding]:
    folders = {gettext("data directory"): Path(settings.DATA_DIR)}
    if settings.STORAGE == "FILESYSTEM":
        folders[gettext("folder for files")] = Path(settings.MEDIA_ROOT)
    for name, folder in folders.items():
        try:
            existing = next(path for path in (folder, *folder.parents) if path.exists())
            with tempfile.TemporaryFile(dir=existing) as file:
                file.write(b"x" * 4_096)
                file.flush()
                os.fsync(file.fileno())
            free = shutil.disk_usage(existing).free
        except OSError as error:
            words = gettext("The %(name)s %(folder)s cannot be written: %(error)s.")
            yield wrong(words % {"name": name, "folder": folder, "error": error.strerror})
            continue
        values = {"name": name, "folder": folder, "free": f"{number_format(free / 1e9, 1)} GB"}
        if free > MIN_FREE_BYTES:
            yield ok(gettext("The %(name)s %(folder)s has %(free)s left.") % values)
        else:
            words = gettext("The %(name)s %(folder)s has %(free)s left: make room before it is full.")
            yield wrong(words % values)


def _of_model() -> Iterator[Finding]:
    """Findings about the model's server, which must respond and accept the key when listing models."""
    if not settings.CHAT_MODEL:
        yield note(gettext("No language model is connected: answers are quotations (CHAT_MODEL)."))
        return
    address = (settings.OPENAI_BASE_URL or OPENAI).rstrip("/")
    headers = {"Authorization": f"Bearer {settings.OPENAI_API_KEY}"} if settings.OPENAI_API_KEY else {}
    try:
        answer = bounded_request("GET", f"{address}/models", MODEL_SECONDS, headers=headers)
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        yield wrong(
            gettext("The model's server cannot be reached (%(error)s): see OPENAI_BASE_URL.")
            % {"error": type(error).__name__}
        )
        return
    try:
        # Remove characters that could control a terminal.
        names = [str(each["id"])[:NAME_CHARACTERS] for each in answer.json()["data"]]
        known = ["".join(filter(str.isprintable, name)) for name in names]
    except (ValueError, LookupError, TypeError, RecursionError):  # the list has an unknown format
        known = []
    if answer.status_code in {401, 403}:
        yield wrong(
            gettext("The model's server refuses the key (%(status)s): see OPENAI_API_KEY.")
            % {"status": answer.status_code}
        )
    elif answer.status_code >= 500:
        yield wrong(
            gettext("The model's server responds with the error %(status)s.") % {"status": answer.status_code}
        )
    elif answer.status_code == 200 and known and settings.CHAT_MODEL not in known:
        yield wrong(
            gettext("The model's server has no model %(model)s, only %(others)s.")
            % {"model": settings.CHAT_MODEL, "others": ", ".join(known[:5])}
        )
    else:
        yield ok(
            gettext("The model's server responds; the model is %(model)s.") % {"model": settings.CHAT_MODEL}
        )


def note_backup(made: datetime, place: object) -> None:
    """Record a backup, for the finding about the last backup. Ignores errors, such as a full disk."""
    try:
        remembered = json.dumps({"made_at": made.isoformat(), "file": str(place)})
        (settings.DATA_DIR / "last_backup.json").write_text(remembered)
    except OSError:
        pass


def last_backup() -> datetime | None:
    try:
        remembered: dict[str, Any] = json.loads((settings.DATA_DIR / "last_backup.json").read_text())
        return datetime.fromisoformat(remembered["made_at"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _of_database(*, ask_bucket: bool) -> Iterator[Finding]:
    vector = _value(VECTOR)
    info = connection.connection.info
    if problem := complaint(info.server_version, str(vector) if vector else None):
        yield wrong(problem)
    else:
        yield ok(
            gettext("PostgreSQL %(version)s with pgvector %(vector)s.")
            % {"version": info.server_version // 10_000, "vector": vector}
        )
    if role := unlocked_role(connection):
        yield wrong(
            gettext(
                "Row-level security does not apply to the database role %(role)s: give the site a "
                "role that is not a superuser and does not have BYPASSRLS."
            )
            % {"role": role}
        )
    difference = abs(float(_value(CLOCK)) - timezone.now().timestamp())
    if difference > MAX_CLOCK_SECONDS:
        yield wrong(
            gettext("The database's clock and this machine's are %(seconds)s s apart: correct them.")
            % {"seconds": f"{difference:.0f}"}
        )
    if missing := unapplied_migrations():
        words = gettext("Migrations missing in the database: %(count)s. Start the site, or run prepare.")
        yield wrong(words % {"count": len(missing)})
        return
    if reason := refusal():
        yield wrong(reason)
    if change := pending_change():
        yield note(change)
    yield from _of_queue()
    yield from _of_documents()
    if ask_bucket or settings.STORAGE == "FILESYSTEM":
        yield from _of_files()
    if expired := int(_value(EXPIRED)):
        yield wrong(
            gettext("Unfinished answers of processes that have died: %(count)s. Is the site running?")
            % {"count": expired}
        )


def _of_queue() -> Iterator[Finding]:
    is_worked_on = int(_value(WORKERS)) > 0
    with connection.cursor() as cursor:
        cursor.execute(JOBS)
        waiting, age = cursor.fetchone()
    if waiting and not is_worked_on:
        words = gettext(
            "Documents waiting to be read: %(count)s, but no worker is running: start one (up, or work)."
        )
        yield wrong(words % {"count": waiting})
    elif age > OLD_JOB_SECONDS:
        words = gettext(
            "A document has been waiting for %(minutes)s minutes although workers are "
            "running: start more workers."
        )
        yield wrong(words % {"minutes": f"{age / 60:.0f}"})
    else:
        # The message does not give the number of workers, because each has a row for each of its queues.
        run = gettext("Documents waiting to be read: %(count)s; workers are running.")
        rest = gettext("Documents waiting to be read: %(count)s; no worker is running.")
        yield ok((run if is_worked_on else rest) % {"count": waiting})


def _of_documents() -> Iterator[Finding]:
    if failed := Document.objects.filter(status=Document.Status.FAILED).count():
        words = gettext("Documents that could not be read: %(count)s. The admin shows the reason for each.")
        yield note(words % {"count": failed})


def _of_files() -> Iterator[Finding]:
    is_folder = settings.STORAGE == "FILESYSTEM"
    stored = Document.objects.exclude(file="").order_by("-pk").values_list("file", flat=True)
    newest = stored[: MAX_FILES if is_folder else MAX_OBJECTS]
    try:
        lost = [name for name in newest if not files.exists(name)]
    except files.StorageFault as error:
        yield wrong(gettext("The files cannot be looked up: %(error)s See CHATSITE_S3_…") % {"error": error})
        return
    if lost:
        yield wrong(
            gettext(
                "The files of %(lost)s of the %(count)s newest documents are missing (such as %(name)s):"
                " is %(setting)s right?"
            )
            % {
                "lost": len(lost),
                "count": len(newest),
                "name": lost[0],
                "setting": "CHATSITE_MEDIA_ROOT" if is_folder else "CHATSITE_S3_BUCKET",
            }
        )
    else:
        yield ok(gettext("The files of the newest documents exist."))


def _value(query: str) -> Any:
    """The first value of the first row; None without a row."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None
