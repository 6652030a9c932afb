"""Finds the document that a name in a citation means to a reader, or the documents that it may mean."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.models import Document

from .labels import identifier_range, storable

MAX_CHOICES = 20  # documents with the same name from which a reader can choose


@dataclass(frozen=True, slots=True)
class NameResolution:
    """What a name means to one reader: one document, or several to choose from."""

    document: Document | None = None
    choices: tuple[Document, ...] = ()


def resolve(principal: Principal, sourcefile: str) -> Document | None:
    """The readable document that `sourcefile` names; None if it names none or several.

    `sourcefile` is that of a FoundPassage.
    """
    return resolve_name(principal, sourcefile).document


def resolve_name(principal: Principal, *spellings: str) -> NameResolution:
    """Resolve a label (see labels.py) for this reader, in one or several spellings.

    If only one document was cited to this reader under the name, it takes precedence over others with that
    name. If it is no longer readable, the name means no document, but the reader can choose from the others.
    """
    names = set(spellings)
    if any(storable(name) != name for name in names):
        return NameResolution()
    parameters: dict[str, Any] = {"user_id": principal.user_id, "most": MAX_CHOICES}
    cited = {
        row["document"] for name in names for row in rows("resolve_cited", parameters | {"sourcefile": name})
    }
    readable = Document.objects.visible_to(principal)
    if len(cited) == 1 and (document := readable.filter(public_id__in=cited).first()):
        return NameResolution(document)
    candidates: set[int] = set()
    for name in names:
        if bounds := identifier_range(name):
            found = rows("resolve_prefix", parameters | {"lowest": bounds[0], "highest": bounds[1]})
        else:
            folder, slash, last = name.rpartition("/")
            found = rows("resolve_name", parameters | {"name": last, "folder": folder if slash else None})
        candidates |= {row["id"] for row in found}
    choices = tuple(readable.filter(Q(pk__in=candidates) | Q(public_id__in=cited)).order_by("-pk"))
    # If a document was cited under the name and is gone, the only remaining one may be a different document.
    if len(choices) == 1 and not cited:
        return NameResolution(choices[0])
    return NameResolution(choices=choices[:MAX_CHOICES])
