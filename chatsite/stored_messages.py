"""Messages that are stored in English, with their values, and shown in any language."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from django.utils.formats import number_format
from django.utils.translation import gettext

PLACE = re.compile(r"%\((\w+)\)s")
NUMBER = re.compile(r"\d{1,3}(,\d{3})+|\d+(\.\d+)?")


class StoredMessages:
    """The messages from which a stored text can be made.

    They are marked with `gettext_noop`. `shown` has functions that translate values, by the names of their
    placeholders; all other values are formatted by :func:`localized`.
    """

    def __init__(
        self, messages: Iterable[str], shown: Mapping[str, Callable[[str], str]] | None = None
    ) -> None:
        messages = tuple(messages)
        self._plain = frozenset(message for message in messages if not PLACE.search(message))
        # Each message as alternating pieces of text and names of placeholders.
        self._pieces = [(PLACE.split(message), message) for message in messages if message not in self._plain]
        self._shown = shown or {}

    def translated(self, text: str) -> str:
        """The text in the current language; unchanged if it is not one of the messages."""
        if text in self._plain:
            return gettext(text)
        for pieces, message in self._pieces:
            if values := _values(pieces, text):
                return gettext(message) % {
                    name: self._shown.get(name, localized)(value) for name, value in values.items()
                }
        return text


def _values(pieces: Sequence[str], text: str) -> dict[str, str]:
    """The non-empty values between `pieces` in this text; {} if the text is not this message.

    The text may contain any file name, for which a regular expression could take more than linear time.
    """
    begin, end = len(pieces[0]), len(text) - len(pieces[-1])
    if not (text.startswith(pieces[0]) and text.endswith(pieces[-1])):
        return {}
    values: dict[str, str] = {}
    for at in range(1, len(pieces), 2):
        last = at == len(pieces) - 2
        until = end if last else text.find(pieces[at + 1], begin + 1, end)
        if until <= begin:
            return {}
        values[pieces[at]] = text[begin:until]
        begin = until + len(pieces[at + 1])
    return values


def localized(text: str) -> str:
    """A number such as “1,204” with the language's separators; any other text unchanged."""
    if not NUMBER.fullmatch(text):
        return text
    plain = text.replace(",", "")
    return number_format(float(plain) if "." in plain else int(plain), force_grouping=True)
