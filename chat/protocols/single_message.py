"""A team's run as one message, for protocols that know only one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chat.events import ContextReady, Event, MessageDone, MessageStarted, Rechecked, TextDelta
from chat.statements import Statement


class Single:
    """Passes events on to a protocol's encoder; what several agents say becomes one text.

    Only the first context is passed on. An encoder that needs the events of later speakers reads them first.
    """

    def __init__(self, encode: Callable[[Event], list[Any]]) -> None:
        self._encode = encode
        self._contexts = 0
        self._length = self._begin = 0  # characters so far, and before this message
        self._earlier: tuple[Statement, ...] = ()  # of the messages before this one
        self._statements: tuple[Statement, ...] = ()  # of this one
        self._done: MessageDone | None = None

    def encode(self, event: Event) -> list[Any]:
        match event:
            case TextDelta() if self._done is None:
                self._length += len(event.text)
                return self._encode(event)
            case MessageStarted():
                done, self._done = self._done, None
                self._length += 2 if done else 0
                self._begin = self._length
                return self._encode(TextDelta("\n\n")) if done else []
            case MessageDone():
                self._earlier += self._statements
                self._statements = tuple(each.moved(self._begin) for each in event.verification)
                # Only the last one ends the message; the next event shows whether this was it.
                self._done = replace(event, verification=(*self._earlier, *self._statements))
                return []
            case Rechecked():
                self._statements = tuple(each.moved(self._begin) for each in event.verification)
                event = Rechecked((*self._earlier, *self._statements))
            case ContextReady() if self._contexts:
                return []
        if isinstance(event, ContextReady):
            self._contexts += 1
        before: list[Any] = []
        if self._done:
            before, self._done = self._encode(self._done), None
        return before + self._encode(event)
