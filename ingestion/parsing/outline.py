"""Sections by heading: from a run of headings and paragraphs, for formats that have them."""

import re
from collections import Counter
from collections.abc import Sequence

from .sections import ANCHOR_CHARACTERS, HEADING_CHARACTERS, Section, clean, one_line, table_text


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")[:ANCHOR_CHARACTERS]


class Outline:
    """Collects paragraphs under their headings and knows the path of headings to each."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.first_heading = ""
        self._path: list[tuple[int, str]] = []
        self._anchor = ""
        self._used: Counter[str] = Counter()
        self._blocks: list[str] = []

    def heading(self, level: int, text: str) -> None:
        text = one_line(text, HEADING_CHARACTERS)
        if not text:
            return
        self.close()
        self.first_heading = self.first_heading or text
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, text))
        name = slug(text)
        seen = self._used[name]
        self._used[name] += 1
        self._anchor = f"{name}-{seen}" if seen else name

    def paragraph(self, text: str) -> None:
        if text := clean(text).strip():
            self._blocks.append(text)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self.paragraph(table_text(rows))

    def close(self) -> list[Section]:
        """End the section that is open; the sections so far."""
        if self._blocks:
            # The first heading is the document's title: it can be asked for, so it must be possible to quote.
            titled = [text for _, text in self._path] == [self.first_heading]
            text = "\n\n".join([self.first_heading, *self._blocks] if titled else self._blocks)
            self.sections.append(Section(self._anchor, None, self._heading(), text))
        self._blocks = []
        return self.sections

    def _heading(self) -> str:
        # The first heading of the first level is the document's title, which every passage carries anyway.
        path = [text for _, text in self._path]
        if len(path) > 1 and path[0] == self.first_heading:
            path = path[1:]
        return one_line(" › ".join(path), HEADING_CHARACTERS)
