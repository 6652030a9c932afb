"""Citations in an answer that is JSON: verified within its strings, so that lists of values stay lists."""

import json
import re
from collections.abc import Iterable

from .citations import CitationFilter

_SPECIAL = re.compile(r'["\\]')
_LONGEST_ESCAPE = 12  # characters of an escaped pair of surrogates


class JsonCitationFilter:
    """Pass JSON on as it comes, each string when it has ended. Used as CitationFilter is."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = tuple(labels)
        self._string: list[str] = []  # the unfinished string with its opening quote, in pieces
        self._escaped = False
        self.cited: list[str] = []

    def feed(self, text: str) -> str:
        told: list[str] = []
        place = 0
        while place < len(text):
            if not self._string:
                start = text.find('"', place)
                told.append(text[place : start if start >= 0 else len(text)])
                if start < 0:
                    break
                self._string.append('"')
                place = start + 1
            elif self._escaped:
                self._string.append(text[place])
                self._escaped = False
                place += 1
            else:
                found = _SPECIAL.search(text, place)
                end = found.end() if found else len(text)
                self._string.append(text[place:end])
                place = end
                if found and found[0] == '"':
                    told.append(self._verified("".join(self._string)))
                    self._string.clear()
                elif found:
                    self._escaped = True
        return "".join(told)

    def flush(self) -> str:
        """The beginning of a string that the end of the text has cut."""
        cut = "".join(self._string)
        self._string.clear()
        for length in range(len(cut), max(0, len(cut) - _LONGEST_ESCAPE), -1):
            try:
                json.loads(f'{cut[:length]}"', strict=False)
            except ValueError:
                continue
            return self._verified(f'{cut[:length]}"')[:-1]
        return ""

    def _verified(self, literal: str) -> str:
        try:
            value: str = json.loads(literal, strict=False)
        except ValueError:
            return literal  # no JSON, which the reader of the whole finds out
        if "[" not in value:
            return literal
        citations = CitationFilter(self._labels)
        verified = citations.feed(value) + citations.flush()
        self.cited += [label for label in citations.cited if label not in self.cited]
        if verified == value:
            return literal
        # Half of a pair of surrogates cannot be stored as it is.
        whole = not any("\ud800" <= character <= "\udfff" for character in verified)
        return json.dumps(verified, ensure_ascii=not whole)
