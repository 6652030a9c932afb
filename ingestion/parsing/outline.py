"""Sections by heading: from a run of headings and paragraphs, for formats that have them."""

import re
from collections import Counter
from collections.abc import Sequence

from .sections import ANCHOR_CHARACTERS, HEADING_CHARACTERS, Contents, Limits, clean, one_line
from .tables import table_text


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")[:ANCHOR_CHARACTERS]


class Outline:
    """Collects paragraphs under their headings into `contents`, and knows the path of headings to each."""

    def __init__(self, limits: Limits) -> None:
        self.contents = Contents(limits)
        self.first_heading = ""
        self._path: list[tuple[int, str]] = []
        self._anchor = ""
        self._used: Counter[str] = Counter()
        self._blocks: list[str] = []
        self._size = 0
        self._open = False  # whether the last heading has nothing under it yet

    def heading(self, level: int, text: str) -> None:
        text = one_line(text, HEADING_CHARACTERS)
        if not text:
            return
        if not self._path or level <= self._path[-1][0]:
            self._alone()
        self.close(ended=False)
        self.first_heading = self.first_heading or text
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, text))
        name = slug(text)
        seen = self._used[name]
        self._used[name] += 1
        self._anchor = f"{name}-{seen}" if seen else name
        self._open = True

    def paragraph(self, text: str) -> None:
        if text := clean(text).strip():
            self._blocks.append(text)
            self._size += len(text)
            self.contents.check(self._size)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self.paragraph(table_text(rows))

    def _alone(self) -> None:
        """A heading with nothing under it is text itself."""
        if not self._blocks and self._path and self._open:
            self._blocks.append(self._path[-1][1])

    def close(self, ended: bool = True) -> Contents:
        """End the section that is open; what was collected so far."""
        if ended:
            self._alone()
        if self._blocks:
            # The first heading is the document's title: it can be asked for, so it must be possible to quote.
            titled = [text for _, text in self._path] == [self.first_heading] != self._blocks
            text = "\n\n".join([self.first_heading, *self._blocks] if titled else self._blocks)
            self.contents.add(self._anchor, None, self._heading(), text)
        self._blocks = []
        self._size = 0
        self._open = False
        return self.contents

    def _heading(self) -> str:
        # The first heading of the first level is the document's title, which every passage carries anyway.
        path = [text for _, text in self._path]
        if len(path) > 1 and path[0] == self.first_heading:
            path = path[1:]
        return one_line(" › ".join(path), HEADING_CHARACTERS)
