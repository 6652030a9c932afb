"""The cells of an HTML table in rows and columns, where cells may reach over several of either."""

MOST_SPAN = 100
MOST_COLUMNS = 1_000


class Grid:
    """A cell over several columns stands in the first of them, one over several rows in each row."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._open = False
        self._across = self._down = 1
        self._above: dict[int, tuple[int, str]] = {}  # by column: cells that reach into this row
        self._below: dict[int, tuple[int, str]] = {}  # and those that reach into the next, with how many rows

    def row(self) -> None:
        self._above, self._below = self._below, {}
        self.rows.append([])
        self._reach_down()

    def cell(self, attributes: dict[str, str]) -> None:
        """A cell begins; `fill` says what is in it."""
        if not self.rows:
            self.row()
        self._across, self._down = (_whole(attributes.get(name, "")) for name in ("colspan", "rowspan"))
        self._open = True

    def fill(self, text: str) -> None:
        """End the cell that is open, if one is."""
        if not self._open:
            return
        self._open = False
        row = self.rows[-1]
        if len(row) < MOST_COLUMNS:
            if self._down > 1:
                self._below[len(row)] = (self._down - 1, text)
            row.extend([text, *[""] * (self._across - 1)])
            self._reach_down()

    def _reach_down(self) -> None:
        row = self.rows[-1]
        while span := self._above.pop(len(row), None):
            rows, text = span
            if rows > 1:
                self._below[len(row)] = (rows - 1, text)
            row.append(text)


def _whole(value: str) -> int:
    return min(int(value), MOST_SPAN) if value.isdecimal() and int(value) else 1
