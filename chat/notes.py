"""What is said below an answer that did not simply end well, and what one can do about it."""

from dataclasses import dataclass

from history.models import Message

from .errors import words

REFERENCE_LENGTH = 12
SAVED = "Your question is saved."


@dataclass(frozen=True, slots=True)
class Note:
    """`kind` is plain, warn or danger; `action` the words of the button that answers again."""

    kind: str
    icon: str
    text: str
    action: str = ""
    reference: str = ""


def note_for(message: Message) -> Note | None:
    """None for an answer that runs or that is complete."""
    reference = message.request_id[:REFERENCE_LENGTH]
    match message.state:
        case Message.State.STOPPED:
            return Note("plain", "stop", "You stopped this answer.", "Answer again")
        case Message.State.INTERRUPTED:
            kept = "What had arrived is kept." if message.content else SAVED
            return Note("warn", "warn", f"The answer was interrupted. {kept}", "Answer again", reference)
        case Message.State.BLOCKED:
            text = "The question or the answer was blocked by the content filter."
            return Note("danger", "error", text, "", reference)
        case Message.State.FAILED:
            return Note("danger", "error", _failure(message), "Try again", reference)
        case Message.State.COMPLETE if message.finish_reason == "length":
            return Note("plain", "warn", "The answer reached its length limit.")
    return None


def _failure(message: Message) -> str:
    if message.error_code in ("", "internal"):
        return f"The answer could not be written. {SAVED}"
    return f"{words(message.error_code)} {SAVED}"
