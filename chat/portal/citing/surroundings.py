"""The text around a passage: the rest of its table, and parts of the adjacent passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import cached_property

from history.models import Source
from ingestion.models import Passage
from ingestion.search.passage_completion import REACH

from .passage_parts import Part, flowing, is_table, is_table_continued, parts_of

MAX_TABLE = 6_000  # characters of a table that is shown whole
MAX_ADJACENT = 400  # characters of each adjacent passage


@dataclass
class Surroundings:
    """The text around a cited passage; empty if the document, and so the passage, was replaced."""

    source: Source
    is_replaced: bool

    @property
    def whole(self) -> str:
        """The passage with the rest of its table, if the table is short."""
        before, after = self._table
        return "\n".join([*before, self.source.content, *after])

    @property
    def start(self) -> int:
        """The position in `whole` at which the passage begins."""
        return sum(len(content) + 1 for content in self._table[0])

    @property
    def before(self) -> list[Part]:
        """The end of the passage before `whole`."""
        text = flowing(self._adjacent[-1]).strip().rpartition("\n\n")[2]
        if len(text) > MAX_ADJACENT:
            text = "… " + text[-MAX_ADJACENT:].partition(" ")[2]
        return parts_of(text, [])

    @property
    def after(self) -> list[Part]:
        """The beginning of the passage after `whole`."""
        text = flowing(self._adjacent[1]).strip().partition("\n\n")[0]
        if len(text) > MAX_ADJACENT:
            text = text[:MAX_ADJACENT].rpartition(" ")[0] + " …"
        return parts_of(text, [])

    @cached_property
    def _table(self) -> tuple[list[str], list[str]]:
        """The rest of the table: passages before and after this one; empty if the table is long."""
        found: list[list[str]] = []
        for direction in (-1, 1):
            edge, contents = self.source.content, []
            for _, content in sorted(
                (abs(distance), each) for distance, each in self._near if distance * direction > 0
            ):
                first, second = (edge, content) if direction > 0 else (content, edge)
                if not is_table_continued(first, second) or not is_table(content):
                    break
                contents.append(content)
                edge = content
            found.append(contents)
        before, after = found
        rest = sum(map(len, (*before, *after)))
        return (before[::-1], after) if rest + len(self.source.content) <= MAX_TABLE else ([], [])

    @property
    def _adjacent(self) -> Mapping[int, str]:
        """The contents of the passages before (-1) and after (1) `whole`; empty if there is none."""
        before, after = self._table
        left = [content for distance, content in self._near if distance < 0]
        right = [content for distance, content in self._near if distance > 0]
        left, right = left[: len(left) - len(before)][-1:], right[len(after) :][:1]
        return {-1: left[0] if left else "", 1: right[0] if right else ""}

    @cached_property
    def _near(self) -> Sequence[tuple[int, str]]:
        """Distance (negative if before) and content of nearby passages not contained in this one."""
        if self.is_replaced:
            return ()
        here = Passage.objects.filter(pk=self.source.passage_id, document=self.source.document_id)
        position = here.values_list("position", flat=True).first()
        if position is None:
            return ()
        near = Passage.objects.filter(
            document=self.source.document_id,
            position__range=(position - REACH - 1, position + REACH + 1),
        ).exclude(position=position)
        # If the passage was completed with its whole table, it contains some of its neighbours.
        return [
            (row.position - position, row.content)
            for row in near.order_by("position")
            if row.content not in self.source.content
        ]
