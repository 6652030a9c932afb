"""Code and message of a failed answer."""

from .failure_texts import FAILURES, OTHER_FAILURE
from .models import Message

BY_STATE = {
    Message.State.INTERRUPTED: "interrupted",
    Message.State.BLOCKED: "content_filter",
    Message.State.FAILED: "internal",
}


def failure_of(message: Message) -> tuple[str, str] | None:
    """Code and message of a failed answer; None for any other."""
    state = Message.State(message.state)
    if state not in BY_STATE:
        return None
    code = message.error_code or BY_STATE[state]
    return code, FAILURES[code].words if code in FAILURES else OTHER_FAILURE
