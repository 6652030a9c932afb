"""Error codes of refused and failed runs, with their HTTP status and message.

Messages of other servers, SQL and paths are never sent to a client; they are logged with the request id.
"""

import math

from history.failure_texts import FAILURES, ErrorText

INTERNAL = (
    "The app encountered an error processing your request.\n"
    "If you are an administrator of the app, view the full error in the logs."
)
DATABASE_AWAY = "The site is overloaded, or cannot reach its database. Try again in a few seconds."

ERRORS: dict[str, ErrorText] = {
    **FAILURES,
    "not_found": ErrorText(404, "There is no such conversation."),
    "answer_not_found": ErrorText(404, "There is no such answer."),
    "message_empty": ErrorText(400, "The message is empty."),
    "message_too_long": ErrorText(400, "The message is longer than 32,000 characters."),
    "message_not_text": ErrorText(400, "The message contains characters that are not text."),
    "messages_too_long": ErrorText(400, "All messages together are longer than 1,000,000 characters."),
    "system_messages_too_long": ErrorText(
        400, "The system messages together are longer than 10,000 characters."
    ),
    "too_many_images": ErrorText(400, "A question can have at most 8 images."),
    "not_attached": ErrorText(400, "Attach the files first, with the button beside them."),
    "generation_in_progress": ErrorText(
        409, "This conversation is being answered. Wait for the answer, or stop it."
    ),
    "idempotency_mismatch": ErrorText(422, "This idempotency key was used for another request."),
    "maintenance": ErrorText(503, "The site is being maintained. Ask again later."),
    "busy": ErrorText(503, "Many people are asking right now. Try again in a moment."),
    "quota_exceeded": ErrorText(429, "No messages can be sent with this account today."),
    "database_unavailable": ErrorText(503, DATABASE_AWAY),
    "internal": ErrorText(500, INTERNAL),
}


DATABASE_SECONDS = 2  # Retry-After while the database is unavailable
DISK_FULL = ErrorText(
    507,
    "The server's disk is full, so the question was not saved. "
    "Tell the operator of the site, and ask again later.",
)
DISK_FULL_SECONDS = 10  # Retry-After while the disk is full


MAX_RETRY_AFTER = 300  # seconds, even if the model's server asks for more


def retry_after(seconds: float | None) -> int | None:
    """The Retry-After of the model's server in whole seconds, at most MAX_RETRY_AFTER."""
    return None if seconds is None else max(1, math.ceil(min(seconds, MAX_RETRY_AFTER)))


def words(code: str) -> str:
    return ERRORS[code if code in ERRORS else "internal"].words


def status(code: str) -> int:
    return ERRORS[code if code in ERRORS else "internal"].status


class Refused(Exception):
    """A request was refused, or the reader of a stream has lost access.

    `code` is one of ERRORS; `retry_after` is in seconds.
    """

    def __init__(self, code: str, retry_after: int | None = None, message: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.status = ERRORS[code].status
        self.message = message or ERRORS[code].words
        self.retry_after = retry_after


def storage_full() -> Refused:
    """The refusal if PostgreSQL's disk is full."""
    return Refused("storage_full", DISK_FULL_SECONDS, DISK_FULL.words)


def database_away() -> Refused:
    """The refusal if PostgreSQL is unavailable or has no free connection."""
    return Refused("busy", DATABASE_SECONDS, DATABASE_AWAY)
