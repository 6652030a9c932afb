"""Documents for tests of search, with the rows that reading a file would create."""

import uuid
from collections.abc import Sequence

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion.access.lists import (
    Audience,
    access_list_for,
)
from ingestion.indexing.passages import NewPassage
from ingestion.indexing.replacing import (
    prepare,
    write_passages,
)
from ingestion.models import Document

EVERYONE = Audience(everyone=True)


def principal_of(user: User) -> Principal:
    return Principal(user.pk, "command")


def make_document(
    name: str,
    contents: Sequence[str | NewPassage],
    *,
    audience: Audience = EVERYONE,
    owner: User | None = None,
    title: str = "",
    folder: str = "",
    category: str = "",
    language: str = "english",
) -> Document:
    """A document that has been read, with one passage for each text."""
    document = Document.objects.create(
        public_id=uuid.uuid4(),
        owner=owner,
        access_list=access_list_for(audience, owner.pk if owner else None),
        name=name,
        title=title,
        folder=folder,
        category=category,
        language=language,
        media_type="text/plain",
        size=1,
        version=1,
        status=Document.Status.READY,
    )
    passages = [
        NewPassage("", None, "", content) if isinstance(content, str) else content for content in contents
    ]
    write_passages(document, passages, prepare(document, passages, title))
    return document
