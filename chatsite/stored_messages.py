"""Messages that are stored in English with their numbers and names, and shown in the reader's language."""

import re
from collections.abc import Callable, Iterable, Mapping

from django.utils.formats import number_format
from django.utils.translation import gettext

PLACE = re.compile(r"%\((\w+)\)s")
NUMBER = re.compile(r"\d{1,3}(,\d{3})+|\d+(\.\d+)?")


class StoredMessages:
    """The messages that a stored text may be made of, as `gettext_noop` has them.

    `shown` says how the text at a place is translated; where it says nothing, numbers are written as the
    language does, and everything else as it is.
    """

    def __init__(
        self, messages: Iterable[str], shown: Mapping[str, Callable[[str], str]] | None = None
    ) -> None:
        messages = tuple(messages)
        self._plain = frozenset(message for message in messages if not PLACE.search(message))
        self._patterns = [(_pattern(message), message) for message in messages if message not in self._plain]
        self._shown = shown or {}

    def translated(self, text: str) -> str:
        """The text in the current language; one that no message fits as it is."""
        if text in self._plain:
            return gettext(text)
        for pattern, message in self._patterns:
            if match := pattern.fullmatch(text):
                return gettext(message) % {
                    name: self._shown.get(name, localized)(value) for name, value in match.groupdict().items()
                }
        return text


def _pattern(message: str) -> re.Pattern[str]:
    pieces = PLACE.split(message)  # text and names of places in turns
    return re.compile(
        "".join(f"(?P<{piece}>.+)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)),
        re.DOTALL,
    )


def localized(text: str) -> str:
    """“1,204” as the language groups it; any other text as it is."""
    if not NUMBER.fullmatch(text):
        return text
    plain = text.replace(",", "")
    return number_format(float(plain) if "." in plain else int(plain), force_grouping=True)
