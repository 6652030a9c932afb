"""The folder of files attached to questions; its name is English, and shown translated."""

import re
from datetime import date

from django.db.models import Q
from django.utils.translation import gettext, gettext_noop

NAME = gettext_noop("Attachments")
# PostgreSQL regular expressions for two kinds of folders: those of attached files, and those of the files
# inside attached archives and messages.
ATTACHED = rf"^{NAME}(/\d{{4}}-\d\d-\d\d)?$"
INSIDE = rf"^{NAME}/\d{{4}}-\d\d-\d\d/"
_FOLDER = re.compile(rf"{NAME}(?=\Z|/\d{{4}}-\d\d-\d\d\Z)")


def of_day(day: date) -> str:
    """The folder of the files that are attached on this day."""
    return f"{NAME}/{day:%Y-%m-%d}"


def attached() -> Q:
    """Documents that were attached to a question."""
    return Q(folder__regex=ATTACHED)


def origin(folder: str) -> str:
    """The origin of a source as shown to readers: its folder, or “Attached to a question”."""
    return gettext("Attached to a question") if _FOLDER.match(folder) else folder


def as_shown(folder: str) -> str:
    """The path of a folder, as shown in the reader's language."""
    return gettext(NAME) + folder[len(NAME) :] if _FOLDER.match(folder) else folder
