"""Wait until the site answers requests."""

import http.client
import time

from django.conf import settings

from .processes import Children
from .refusal import StartRefused

START_SECONDS = 60
POLL_SECONDS = 0.05


def wait_until_ready(children: Children, host: str, port: int) -> None:
    """Return when `/readyz` succeeds. Raises StartRefused if a process dies or the time is over."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for child, status in children.wait(POLL_SECONDS):
            raise StartRefused(f"The {child.title} did not start; it ended with status {status}.")
        status = _status(host, port)
        if status == http.client.OK:
            return
        if status == http.client.BAD_REQUEST:
            raise StartRefused(
                f"The site refuses its own name {_allowed_host()}: see CHATSITE_ALLOWED_HOSTS."
            )
    raise StartRefused(f"The site does not answer after {START_SECONDS} seconds.")


def _status(host: str, port: int) -> int:
    """The status of `/readyz`; 0 without a response."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/readyz", headers={"Host": _allowed_host()})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _allowed_host() -> str:
    """A host name that ALLOWED_HOSTS accepts."""
    names = [name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    return names[0] if names else "localhost"
