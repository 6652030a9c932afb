"""Ends an answer at the caller's stop sequences, whether or not the model's server does."""

from collections.abc import Sequence


class StopSequences:
    """Passes text on up to the first stop sequence, holding back a possible beginning of one."""

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = sequences
        self._longest = max(map(len, sequences), default=0)
        self._held = ""
        self.reached = False

    def feed(self, text: str) -> str:
        """The text that certainly precedes every stop sequence."""
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
        """The text held back, at the end of the stream."""
        held, self._held = self._held, ""
        return held

    def _undecided(self, text: str) -> int:
        """Start of the suffix that more text may complete to a stop sequence."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(sequence.startswith(text[start:]) for sequence in self._sequences):
                return start
        return len(text)
