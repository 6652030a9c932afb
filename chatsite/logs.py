"""Structured logs: one JSON object per line, with the id of the request."""

import asyncio
import json
import logging
import re
import sys
import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus

from django.core.exceptions import BadRequest, RequestAborted, SuspiciousOperation
from django.http.multipartparser import MultiPartParserError

from chatsite.db.availability import (
    sqlstate,
    unavailability,
)

request_id: ContextVar[str] = ContextVar("request_id", default="")

REPEAT_SECONDS = 10.0
CUT = (asyncio.CancelledError, RequestAborted)
MALFORMED = (SuspiciousOperation, BadRequest, MultiPartParserError)
REASON_CHARACTERS = 200
_SHARE = re.compile(r"(/s/)[\w-]{20,100}")  # the URL of a share, which gives access to its conversation
REFUSALS = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.INSUFFICIENT_STORAGE)


class RequestIdFilter(logging.Filter):
    """Adds `request_id` to every record, empty outside of requests and runs.

    Drops all records during interpreter shutdown: they come from destructors, and this module's globals may
    be gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_ending = sys.is_finalizing

    def filter(self, record: logging.LogRecord) -> bool:
        if self._is_ending():
            return False
        if not hasattr(record, "request_id"):
            record.request_id = request_id.get()
        return True


class CutFilter(logging.Filter):
    """Drops records of requests that a shutdown or disconnect has interrupted.

    uvicorn and Django log each one with a useless traceback; uvicorn also logs how many it cancelled.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], CUT))


class HostileRequestFilter(logging.Filter):
    """Shortens log records of malformed requests, which Django refuses, to one line.

    Django logs them with a traceback, and some as errors, although the client is at fault.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, MALFORMED):
            reason = str(error)[:REASON_CHARACTERS]
            record.msg, record.args = "A malformed request was refused: %s", (reason,)
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


class OutageFilter(logging.Filter):
    """Logs a database outage or a full disk once, then at most every ten seconds.

    Each later record says how many were suppressed before it. Without this filter, every request and every
    run would log the same traceback. Each SQLSTATE is counted separately, and so are errors without one and
    refused requests (REFUSALS).
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._logged_at: dict[str, float] = {}  # time of the last log record by reason
        self._suppressed: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and (reason := unavailability(error)):
            key = sqlstate(error)
            record.msg, record.args = "%s: %s", (record.getMessage(), reason)
            record.exc_info = record.exc_text = None
        elif error is None and getattr(record, "status_code", None) in REFUSALS:
            key = "refused"
        else:
            return True
        return self._is_due(key, record)

    def _is_due(self, key: str, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        with self._lock:
            if now < self._logged_at.get(key, float("-inf")) + REPEAT_SECONDS:
                self._suppressed[key] = self._suppressed.get(key, 0) + 1
                return False
            self._logged_at[key] = now
            suppressed = self._suppressed.pop(key, 0)
        if suppressed:
            record.msg, record.args = "%s (and %d more like this before)", (record.getMessage(), suppressed)
        return True


class JsonFormatter(logging.Formatter):
    """A record as a JSON object.

    Its members are `time`, `level`, `logger`, `message`, `request_id` (within requests and runs), those of
    the record's `fields`, and `error` (the traceback, if there is one).
    """

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if identifier := getattr(record, "request_id", ""):
            entry["request_id"] = identifier
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return _SHARE.sub(r"\1…", json.dumps(entry, ensure_ascii=False))
