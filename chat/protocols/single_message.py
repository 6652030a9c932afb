"""Joins a team's messages into one, for protocols that only support one message."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chat.events import ContextReady, Event, MessageDone, MessageStarted, Rechecked, TextDelta
from chat.statements import Statement


class SingleMessageEncoder:
    """Joins the messages of several agents into one text.

    Other events are passed on to the protocol's encoder, except the contexts of later agents. An encoder
    that needs these must read the events before they are passed to this class.
    """

    def __init__(self, encode: Callable[[Event], list[Any]]) -> None:
        self._encode = encode
        self._contexts = 0
        # Characters of the text so far, and of the text before the current message.
        self._length = self._begin = 0
        self._earlier: tuple[Statement, ...] = ()  # statements of the messages before the current one
        self._statements: tuple[Statement, ...] = ()  # statements of the current message
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
                # Only the last agent's MessageDone is passed on. The next event shows whether this agent is
                # the last.
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
