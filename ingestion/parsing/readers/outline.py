"""Collects headings and paragraphs into sections."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ingestion.parsing.sections import (
    ANCHOR_CHARACTERS,
    HEADING_CHARACTERS,
    HEADING_TEXT,
    Contents,
    Limits,
    clean,
    heading_path,
    one_line,
    too_long_path,
)
from ingestion.parsing.titles import first_title

from .lone_titles import UPPER, lone_titles
from .tables import table_text

CLAUSE = 60  # characters; a longer heading that ends like a sentence or a clause is text


def slug(heading: str) -> str:
    """The anchor that GitHub derives from a heading.

    It is in lower case, without punctuation, and with hyphens for spaces.
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")[:ANCHOR_CHARACTERS]


def is_text(heading: str) -> bool:
    """Whether a heading is really text that was styled as a heading: long, or a sentence or a clause."""
    is_clause = heading.endswith((".", ",", ";", ":", "; or", "; and", "; oder", "; und"))
    return len(heading) > HEADING_TEXT or (is_clause and len(heading) > CLAUSE)


PLACE_CHARACTERS = 4_000  # characters of a section; further parts of a longer section are cited by paragraph


class Outline:
    """Collects paragraphs under their headings into `contents`.

    Each section gets the path of the headings above it.
    """

    def __init__(self, limits: Limits) -> None:
        self.contents = Contents(limits)
        self.first_heading = ""
        self._path: list[tuple[int, str]] = []
        self._anchor = ""
        self._used: Counter[str] = Counter()
        self._blocks: list[str] = []
        self._size = 0
        self._open = False  # whether a heading has begun a section that has not ended

    def heading(self, level: int, text: str, label: str = "", *, may_be_title: bool = True) -> None:
        """Begin a section. The label, such as `2.1. `, is not part of the anchor.

        The first heading becomes the document's title if it has none, unless `may_be_title` is false.
        """
        named = one_line(text, HEADING_CHARACTERS)
        text = one_line(label + text, len(label + text))
        if not named:
            return
        if is_text(text):
            self.paragraph(text)
            return
        if not self._path or level <= self._path[-1][0]:
            self._flush_heading()
        self.close(ended=False)
        if may_be_title:
            self.first_heading = self.first_heading or text
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, text))
        name = slug(named)
        seen = self._used[name]
        self._used[name] += 1
        self._anchor = f"{name}-{seen}" if seen else name
        self._open = True
        self.paragraph(too_long_path(self._titles()))

    def paragraph(self, text: str) -> None:
        if text := clean(text).strip():
            self._blocks.append(text)
            self._size += len(text)
            self.contents.check(self._size)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self.paragraph(table_text(rows))

    def find_lone_titles(self) -> None:
        """Turn short lines that stand alone into headings, if the text has no headings except a title.

        Call this at the end of the text.
        """
        if self.contents.sections or len(self._path) > 1 or not (titles := lone_titles(self._blocks)):
            return
        blocks, self._blocks, self._size = self._blocks, [], 0
        above = self._path[-1][0] if self._path else 0
        has_title = [level for level, _ in titles.values()].count(UPPER) == 1
        for index, block in enumerate(blocks):
            if index in titles:
                level, text = titles[index]
                self.heading(above + level, text, may_be_title=has_title and level == UPPER)
            else:
                self.paragraph(block)

    def _flush_heading(self) -> None:
        """Turn a heading without text into text."""
        if not self._blocks and self._path and self._open:
            self._blocks.append(self._path[-1][1])

    def close(self, ended: bool = True) -> Contents:
        """End the open section, and return the contents so far."""
        if ended:
            self._flush_heading()
        if self._blocks:
            # The first heading is usually the document's title. Keep it as text: questions may be about it.
            titled = [text for _, text in self._path] == [self.first_heading] and not self._blocks[
                0
            ].startswith(self.first_heading)
            self._add([self.first_heading, *self._blocks] if titled else self._blocks)
        self._blocks = []
        self._size = 0
        self._open = False
        return self.contents

    def titled(self, given: str) -> Contents:
        """End the text, and set the title: `given`, or else the first heading.

        Paths of headings omit the first heading, so it is kept as text if the title differs from it.
        """
        contents = self.close()
        contents.title = first_title(given, self.first_heading)
        sections = contents.sections
        if (
            sections
            and contents.title != self.first_heading
            and not any(
                self.first_heading in (section.heading if number else "")
                or self.first_heading in section.text
                for number, section in enumerate(sections)
            )
        ):
            place = next((number for number, section in enumerate(sections) if section.heading), 0)
            text = f"{self.first_heading}\n\n{sections[place].text}"
            sections[place] = replace(sections[place], text=text)
        return contents

    def _add(self, blocks: list[str]) -> None:
        """Add the blocks as one section, or as several if they are long.

        All sections but the first are cited by the number of their first paragraph.
        """
        part: list[str] = []
        place, size = self._anchor[:ANCHOR_CHARACTERS], 0
        for number, block in enumerate(blocks, 1):
            if size + len(block) > PLACE_CHARACTERS and part:
                self.contents.add(place, None, self._heading(), "\n\n".join(part))
                place = f"paragraph={number}"
                if self._anchor:
                    place = f"{self._anchor[: ANCHOR_CHARACTERS - len(place) - 1]}/{place}"
                part, size = [], 0
            part.append(block)
            size += len(block)
        self.contents.add(place, None, self._heading(), "\n\n".join(part))

    def _heading(self) -> str:
        return heading_path(self._titles())

    def _titles(self) -> list[str]:
        # Leave out the first heading if others are below it: it is usually the document's title, which every
        # passage has anyway.
        path = [text for _, text in self._path]
        if len(path) > 1 and path[0] == self.first_heading:
            path = path[1:]
        return path
