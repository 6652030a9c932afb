"""A database for the time of an evaluation, and texts in it that one reader may read."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.db import connection, transaction

from chatsite.accounts.models import User
from chatsite.accounts.principals import Principal
from ingestion.acl import Audience, access_list_for
from ingestion.indexing import NewPassage
from ingestion.models import Document
from ingestion.parsing.language import language_of
from ingestion.replacing import prepare, write_passages

BATCH = 200  # documents of one transaction


@contextmanager
def empty_database() -> Iterator[Principal]:
    """A fresh database beside the site's, dropped at the end; and someone who may read what is put there.

    The role of the site's database must be allowed to make databases. Nothing of the site is read or written.
    """
    own = connection.settings_dict["NAME"]
    names = connection.settings_dict["TEST"]
    before, names["NAME"] = names["NAME"], f"evaluation_{uuid.uuid4().hex[:12]}"
    try:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield Principal(User.objects.create(username="reader").pk, "command")
        finally:
            connection.creation.destroy_test_db(own, verbosity=0)
    finally:
        names["NAME"] = before


def fill(
    texts: Mapping[str, tuple[str, str]],
    *,
    language: str = "",
    category: str = "",
    progress: Callable[[int], None] | None = None,
) -> dict[str, int]:
    """Write every text (id: title, text) as a document of one passage, as reading a file would leave it.

    Gives the number of each id's document. Without `language` it is detected for each text. `progress` is
    told from time to time how many are written.
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
                passage = NewPassage("", None, "", text)
                write_passages(document, [passage], prepare(document, [passage], title))
                written[identifier] = document.pk
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return written
