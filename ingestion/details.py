"""Metadata of a document set by people and programs: title, labels (tags), source, expiry."""

from collections.abc import Iterable
from datetime import date
from typing import Any, TypedDict

from django.core.validators import URLValidator
from django.utils.translation import gettext_lazy

from ingestion.parsing.sections import clean

TITLE_CHARACTERS = 500
LABEL_CHARACTERS = 50
MAX_LABELS = 20
ADDRESS_CHARACTERS = 2_000
is_web_address = URLValidator(
    schemes=["http", "https"], message=gettext_lazy("A source's address begins with https:// or http://.")
)


class Details(TypedDict, total=False):
    """The given details. A missing key leaves the value unchanged; an empty value clears it."""

    title: str
    labels: list[str]
    source_url: str
    valid_until: date | None


def columns(details: Details) -> dict[str, Any]:
    """The columns of the document for these details."""
    values: dict[str, Any] = dict(details)
    if "title" in values:
        values["given_title"] = _line(values.pop("title"))[:TITLE_CHARACTERS]
    if "labels" in values:
        values["labels"] = label_names(values["labels"])
    return values


def label_names(labels: Iterable[str]) -> list[str]:
    """The first MAX_LABELS distinct labels in order, cleaned and of limited length.

    Control characters and surrounding spaces are removed.
    """
    names = dict.fromkeys(_line(label)[:LABEL_CHARACTERS] for label in labels)
    return [name for name in names if name][:MAX_LABELS]


def _line(text: str) -> str:
    return clean(text).replace("\n", " ").strip()
