"""Markdown cut into blocks at blank lines, while it is still being written.

A page that is loaded and a page that watched the answer arrive must show the same: both render the
blocks that :class:`BlockSplitter` cuts, one by one, so how the text arrived makes no difference.
"""

import re

FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


class BlockSplitter:
    """Fed pieces of text, it gives back each block as soon as no later text can change it.

    A block ends at a blank line outside a fence; a list goes on for as long as further items or indented
    lines follow, so it ends only with the first line after it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []  # of the current block, complete ones
        self._line = ""  # the one that is being written
        self._fence = ""
        self._list = False
        self._blank = False  # the current block, a list, has been followed by a blank line

    @property
    def tail(self) -> str:
        """The unfinished block."""
        return "".join(self._lines) + self._line

    @property
    def unfinished(self) -> int:
        """How many characters the unfinished block has."""
        return sum(map(len, self._lines)) + len(self._line)

    def feed(self, text: str) -> list[str]:
        """The blocks that this text finished."""
        if "\n" not in text:
            self._line += text
            return []
        *lines, self._line = (self._line + text).split("\n")
        finished = (self._take(line + "\n") for line in lines)
        return [block for block in finished if block]

    def finish(self) -> list[str]:
        """The rest, at the end of the text."""
        rest = [self._take(self._line), self._cut()]
        self._line = ""
        return [block for block in rest if block]

    def _take(self, line: str) -> str:
        """Add a line; the block that ends before it or with it, if any."""
        finished = ""
        if self._fence:
            self._lines.append(line)
            self._close_fence(line)
            return finished
        if not line.strip():
            if self._list:
                self._lines.append(line)
                self._blank = True
                return finished
            return self._cut()
        if self._blank and not (line[0] in " \t" or LIST_ITEM.match(line)):
            finished = self._cut()
        self._blank = False
        if not self._lines:
            self._list = bool(LIST_ITEM.match(line))
        self._lines.append(line)
        self._open_fence(line)
        return finished

    def _open_fence(self, line: str) -> None:
        match = FENCE.match(line.rstrip("\n"))
        if match and (self._list or len(line) - len(line.lstrip(" \t")) <= 3):
            self._fence = match[1]

    def _close_fence(self, line: str) -> None:
        mark = line.strip()
        if mark and not mark.strip(self._fence[0]) and len(mark) >= len(self._fence):
            self._fence = ""

    def _cut(self) -> str:
        block = "".join(self._lines)
        self._lines, self._fence, self._list, self._blank = [], "", False, False
        return block if block.strip() else ""


def split(text: str) -> list[str]:
    """All blocks of a text that is whole."""
    splitter = BlockSplitter()
    return splitter.feed(text) + splitter.finish()
