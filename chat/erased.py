"""The list of erased accounts, outside the database: an older backup does not bring them back for long."""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from chatsite.accounts.models import User

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Erased:
    """A line of the list: numbers and times, no name."""

    number: int  # of the account
    joined: str  # when it was made, since a restored database gives numbers anew
    documents_to: int | None  # who got the documents that others read; nobody: they were deleted

    def person(self) -> User | None:
        """The account, where it is back."""
        found = User.objects.filter(pk=self.number).first()
        return found if found and found.date_joined.isoformat() == self.joined else None


def note(erased: Erased) -> None:
    """Add a line, on disk when this returns. A list that cannot be written is said in the log."""
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
    """Who is on the list and in the database: a backup from before has brought them back."""
    return [(erased, person) for erased in _listed() if (person := erased.person())]


def _listed() -> Iterator[Erased]:
    try:
        lines = Path(settings.ERASED_LIST).read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield Erased(**json.loads(line))
        except (ValueError, TypeError):  # a line that was cut off when its machine died
            logger.warning("A line of %s cannot be read.", settings.ERASED_LIST)
