"""The document that a name in a citation means to a reader, or the documents to choose from."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from chatsite.accounts.principal import Principal
from chatsite.db.sql_files import rows
from ingestion.models import Document

from .labels import identifier_range, storable

MAX_CHOICES = 20  # documents with the same name offered to choose from


@dataclass(frozen=True, slots=True)
class NameResolution:
    """The documents that a name stands for, for one reader: one, or several to choose from."""

    document: Document | None = None
    choices: tuple[Document, ...] = ()


def resolve(principal: Principal, sourcefile: str) -> Document | None:
    """The readable document named by `sourcefile` (of a FoundPassage); None if there is none."""
    return resolve_name(principal, sourcefile).document


def resolve_name(principal: Principal, *spellings: str) -> NameResolution:
    """Resolve a name, a path or a name with digits for this reader, in one or several spellings.

    A document that was cited to this reader under the name takes precedence over others with the same name.
    If it was deleted, no other document is meant, but the others are offered to choose from.
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
    # If a document was cited under the name, the only one that remains may be a different one.
    if len(choices) == 1 and not cited:
        return NameResolution(choices[0])
    return NameResolution(choices=choices[:MAX_CHOICES])
