"""Checks again, while files are stored, that the sender of an upload may still add them.

A request may hold hundreds of files, and a bucket may take minutes to store one. Meanwhile, the account may
be disabled, the credential revoked, the sender removed from a group that would read the files, or a member of
staff deprived of the permission by which they act.
"""

import time
from collections.abc import Callable

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal, still_valid
from chatsite.http.checked_transfer import CHECK_SECONDS

from .file_names import UploadRefused

SENDER_GONE = "Your session or key has ended meanwhile, so the file was not saved."
GROUP_CLOSED = "You can choose only groups you belong to."
NOT_STAFF = "You may no longer add documents here, so the file was not saved."


class SenderCheck:
    """The check for one request, whose caller has just been authenticated.

    The check is repeated at most once in CHECK_SECONDS; `demand` is then called, too, and raises an exception
    if the sender may not continue.
    """

    def __init__(self, principal: Principal, demand: Callable[[], object]) -> None:
        self._principal, self._demand, self._checked = principal, demand, time.monotonic()

    def __call__(self, demand_readers: Callable[[], object] = lambda: None) -> None:
        """Check the sender again, unless the last check is recent.

        Raises UploadRefused if the sender's session or key has ended, or what `demand` raises, or what
        `demand_readers` raises if the sender may not choose these readers.
        """
        if time.monotonic() - self._checked <= CHECK_SECONDS:
            return
        if not still_valid(self._principal):
            raise UploadRefused("sender_gone", SENDER_GONE)
        self._demand()
        demand_readers()
        self._checked = time.monotonic()


def demand_staff(principal: Principal) -> None:
    """Raise UploadRefused if the person may no longer add documents in the admin."""
    user = User.objects.get(pk=principal.user_id)
    if not (user.is_staff and user.has_perm("ingestion.add_document")):
        raise UploadRefused("not_staff", NOT_STAFF)
