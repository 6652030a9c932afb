"""The list of erased accounts, outside the database, so that restoring an older backup erases them again."""

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from chatsite.accounts.models import User

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Erased:
    """A line of the list: numbers and times, no name."""

    number: int  # of the account
    joined: str  # when the account was created, because a restored database assigns numbers again
    documents_to: int | None  # the successor for documents that others read; None: they were deleted

    def person(self) -> User | None:
        """The account, if it exists again."""
        found = User.objects.filter(pk=self.number).first()
        return found if found and found.date_joined.isoformat() == self.joined else None


def note(erased: Erased) -> None:
    """Append a line durably. If the list cannot be written, that is logged."""
    path = Path(settings.ERASED_LIST)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(asdict(erased)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        logger.error(
            "%s could not be written (%s): an older backup would bring back who was erased.", path, error
        )


def returned() -> list[tuple[Erased, User]]:
    """People who are both on the list and in the database, after an older backup was restored."""
    try:
        lines = Path(settings.ERASED_LIST).read_text().splitlines()
    except FileNotFoundError:
        return []
    found: list[tuple[Erased, User]] = []
    for line in lines:
        try:
            erased = Erased(**json.loads(line))
        except (ValueError, TypeError):  # a line truncated by a crash
            logger.warning("A line of %s cannot be read.", settings.ERASED_LIST)
            continue
        if person := erased.person():
            found.append((erased, person))
    return found
