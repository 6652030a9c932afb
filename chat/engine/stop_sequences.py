"""Ending an answer at the caller's stop sequences, whatever the model makes of them."""

from collections.abc import Sequence


class StopSequences:
    """Pass text on up to the first stop sequence, holding back what may be the beginning of one."""

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = sequences
        self._longest = max(map(len, sequences), default=0)
        self._held = ""
        self.reached = False

    def feed(self, text: str) -> str:
        """The text that is certain to come before every stop sequence."""
        if self.reached or not self._sequences:
            return "" if self.reached else text
        text = self._held + text
        places = [place for sequence in self._sequences if (place := text.find(sequence)) >= 0]
        if places:
            self.reached, self._held = True, ""
            return text[: min(places)]
        start = self._undecided(text)
        certain, self._held = text[:start], text[start:]
        return certain

    def flush(self) -> str:
        """What is still held, at the end of the text."""
        held, self._held = self._held, ""
        return held

    def _undecided(self, text: str) -> int:
        """Where the part begins that more text may complete to a stop sequence."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(sequence.startswith(text[start:]) for sequence in self._sequences):
                return start
        return len(text)
