"""The folder of files that people attach to questions: stored in English, shown in the reader's language."""

import re
from datetime import date

from django.utils.translation import gettext, gettext_noop

NAME = gettext_noop("Attachments")
_FOLDER = re.compile(rf"{NAME}(?=\Z|/\d{{4}}-\d\d-\d\d\Z)")


def of_day(day: date) -> str:
    """The folder of the files that are attached on this day."""
    return f"{NAME}/{day:%Y-%m-%d}"


def as_shown(folder: str) -> str:
    """The path of any folder in the reader's language."""
    return gettext(NAME) + folder[len(NAME) :] if _FOLDER.match(folder) else folder
