"""A temporary database for an evaluation, filled with texts that one reader may read."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psycopg
from django.core.management.base import CommandError
from django.db import connection, transaction

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.db.availability import first_line
from chatsite.db.dropping import Session, claim, drop_abandoned
from chatsite.db.threads import libpq_parameters
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.indexing.passages import NewPassage
from ingestion.indexing.replacing import (
    prepare,
    write_passages,
)
from ingestion.indexing.splitting import passages_of
from ingestion.models import Document
from ingestion.parsing.language import language_of
from ingestion.parsing.sections import Section

BATCH = 200  # documents of one transaction
PREFIX = "evaluation_"
LOCKS = 7_236_115  # first half of the key of an advisory lock: an arbitrary number that must never change


@contextmanager
def empty_database() -> Iterator[Principal]:
    """Create a database on the same server; yield a principal who may read its contents.

    The database is dropped at the end. The site's role needs CREATEDB. The site's own data is neither read
    nor written. Databases of killed evaluations are dropped first. Raises CommandError.
    """
    own = connection.settings_dict["NAME"]
    names = connection.settings_dict["TEST"]
    before, names["NAME"] = names["NAME"], f"{PREFIX}{uuid.uuid4().hex[:12]}"
    try:
        with _beside() as session:
            drop_abandoned(session, LOCKS, PREFIX)
            claim(session, LOCKS, names["NAME"])
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            try:
                yield Principal(User.objects.create(username="reader").pk, "command")
            finally:
                connection.creation.destroy_test_db(own, verbosity=0)
    finally:
        names["NAME"] = before


def _beside() -> Session:
    """A session with the site's database, without the time limits of requests."""
    try:
        session: Session = psycopg.connect(**libpq_parameters(), autocommit=True)
    except psycopg.OperationalError as error:
        raise CommandError(f"The database cannot be reached: {first_line(error)}") from error
    session.execute("SET statement_timeout = 0; SET lock_timeout = 0")
    return session


def fill(
    texts: Mapping[str, tuple[str, str]],
    *,
    language: str = "",
    category: str = "",
    whole: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, int]:
    """Store every text (id: title, text) as a document of one page, as ingestion would.

    With `whole`, the page is a single passage. Rankings can then be compared with published ones of whole
    texts, but a long passage may contain words of a question by chance, so that fewer questions are refused
    than on a site. Returns each document's primary key by the text's id. Without `language`, each text's
    language is detected. `progress` is called from time to time with the number of stored texts.
    """
    everyone = access_list_for(Audience(everyone=True), None)
    identifiers = list(texts)
    written: dict[str, int] = {}
    for start in range(0, len(identifiers), BATCH):
        if progress:
            progress(start)
        with transaction.atomic():
            for identifier in identifiers[start : start + BATCH]:
                title, text = texts[identifier]
                document = Document.objects.create(
                    access_list=everyone,
                    name=f"{identifier}.txt"[-255:],
                    title=title[:500],
                    category=category,
                    language=language or language_of(text),
                    media_type="text/plain",
                    size=len(text),
                    version=1,
                    status=Document.Status.READY,
                )
                page = Section("page=1", 1, "", text)
                split = [] if whole else list(passages_of([page]))
                passages = split or [NewPassage(page.anchor, page.page, "", text)]
                write_passages(document, passages, prepare(document, passages, title))
                written[identifier] = document.pk
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return written
