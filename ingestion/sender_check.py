"""Checks again, while files are stored, that the sender of an upload may still add them.

A request may hold hundreds of files, and a bucket may take minutes for one. Meanwhile, the account may be
disabled, the credential revoked, or the sender removed from a group that would read the files.
"""

import time
from collections.abc import Callable

from chatsite.accounts.principal import Principal, still_valid
from chatsite.http.checked_transfer import CHECK_SECONDS

from .file_names import UploadRefused

SENDER_GONE = "Your session or key has ended meanwhile, so the file was not saved."
GROUP_CLOSED = "You can choose only groups you belong to."


class SenderCheck:
    """The check for one request, whose caller has just been authenticated. Repeats no recent check."""

    def __init__(self, principal: Principal) -> None:
        self._principal, self._checked = principal, time.monotonic()

    def __call__(self, demand_readers: Callable[[], object] = lambda: None) -> None:
        """Raise UploadRefused, or what `demand_readers` raises if the sender may not choose these readers."""
        if time.monotonic() - self._checked <= CHECK_SECONDS:
            return
        if not still_valid(self._principal):
            raise UploadRefused("sender_gone", SENDER_GONE)
        demand_readers()
        self._checked = time.monotonic()
