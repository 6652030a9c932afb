"""Accounts and documents for tests, with the rows of the pipeline, but without files and processes."""

from itertools import count

from django.contrib.auth.models import Group

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

_numbers = count(1)


def make_user(username="", *, groups=(), **values):
    user = User.objects.create(username=username or f"person{next(_numbers)}", **values)
    for name in groups:
        user.groups.add(Group.objects.get_or_create(name=name)[0])
    return user


def command_principal(user):
    return Principal(user.pk, "command")


def make_document(
    name="guide.md",
    texts=("Employees may carry over five days of leave until 31 March.",),
    *,
    owner=None,
    everyone=False,
    users=(),
    groups=(),
    **values,
):
    """A readable, searchable document; each text is a passage, or (anchor, page, heading, text)."""
    audience = Audience(
        everyone, frozenset(user.pk for user in users), frozenset(group.pk for group in groups)
    )
    document = Document.objects.create(
        name=name,
        title=values.pop("title", name.rpartition(".")[0].replace("-", " ").capitalize()),
        owner=owner,
        access_list=access_list_for(audience, owner.pk if owner else None),
        file=f"documents/test-{next(_numbers)}",
        media_type="text/markdown",
        size=100,
        sha256=f"{next(_numbers):064x}",
        language=values.pop("language", "english"),
        version=1,
        status=Document.Status.READY,
        **values,
    )
    passages = [text if isinstance(text, NewPassage) else NewPassage(*_fields(text)) for text in texts]
    write_passages(document, passages, prepare(document, passages, document.title))
    return document


def _fields(text):
    return text if isinstance(text, tuple) else ("", None, "", text)
