"""The header Retry-After: parsing it in other servers' responses, and writing it in our own."""

import math
import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from django.http import HttpResponseBase

# Seconds by status, for errors after which a retry may succeed: too many requests, a busy site, a full disk.
SECONDS: dict[int, int] = {
    HTTPStatus.TOO_MANY_REQUESTS: 10,
    HTTPStatus.SERVICE_UNAVAILABLE: 2,
    HTTPStatus.INSUFFICIENT_STORAGE: 10,
}


def retry_after_seconds(value: str) -> float | None:
    """Seconds from the header's number, or until its date; None if it is missing or invalid."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
    return seconds if 0 <= seconds < math.inf else None


def retry_after_value(seconds: float) -> str:
    """Whole seconds, at least one: clients that read 0 ask again at once."""
    return str(max(1, math.ceil(seconds)))


def set_retry_after(response: HttpResponseBase, seconds: float) -> None:
    response.headers["Retry-After"] = retry_after_value(seconds)
