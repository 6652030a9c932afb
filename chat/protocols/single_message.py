"""A team's exchange as one message, for the protocols that know no more."""

from collections.abc import Callable
from typing import Any

from chat.events import ContextReady, Event, MessageDone, MessageStarted, TextDelta


class Single:
    """Passes events on to a dialect's encoder; what several agents say becomes one text."""

    def __init__(self, encode: Callable[[Event], list[Any]]) -> None:
        self._encode = encode
        self._contexts = 0
        self._done: MessageDone | None = None

    def encode(self, event: Event) -> list[Any]:
        match event:
            case TextDelta() if self._done is None:
                return self._encode(event)
            case MessageStarted():
                done, self._done = self._done, None
                return self._encode(TextDelta("\n\n")) if done else []
            case MessageDone():
                self._done = event  # the last one ends the message: whether this is it, the next event tells
                return []
            case ContextReady() if self._contexts:
                return []
        if isinstance(event, ContextReady):
            self._contexts += 1
        before: list[Any] = []
        if self._done:
            before, self._done = self._encode(self._done), None
        return before + self._encode(event)
