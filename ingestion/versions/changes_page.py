"""The changes between two texts, divided into pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from .text_comparison import Paragraph, compare

PAGE_SIZE = 100  # changed paragraphs on one page


@dataclass(frozen=True, slots=True)
class ChangedParagraph:
    """A changed paragraph with the unchanged paragraphs next to it.

    `before` and `after` are empty if there is no such paragraph, or if it is shown with another change.
    `skipped` is the number of unchanged paragraphs that are left out above.
    """

    skipped: int
    before: str
    paragraph: Paragraph
    after: str


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """One page of the changes between two texts."""

    counts: Mapping[str, int]
    changes: Sequence[ChangedParagraph]
    page: int
    pages: int


def changes_page(before: str, after: str, page: int) -> ChangesPage:
    """Page number `page` of the changes from `before` to `after`.

    If two changes of a page have one unchanged paragraph between them, it is shown only before the second.
    """
    paragraphs = compare(before, after)
    places = [at for at, each in enumerate(paragraphs) if each.kind != "same"]
    pages = max(1, -(-len(places) // PAGE_SIZE))
    page = min(max(page, 1), pages)
    shown = places[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    found = []
    # The paragraphs before this index belong to earlier pages.
    seen = places[(page - 1) * PAGE_SIZE - 1] + 1 if page > 1 else 0
    for at, following in zip_longest(shown, shown[1:], fillvalue=len(paragraphs) + 1):
        near = at > seen
        ends = at + 1 < len(paragraphs) and at + 2 < following and paragraphs[at + 1].kind == "same"
        found.append(
            ChangedParagraph(
                at - seen - 1 if near else 0,
                paragraphs[at - 1].pieces[0].text if near else "",
                paragraphs[at],
                paragraphs[at + 1].pieces[0].text if ends else "",
            )
        )
        seen = at + 1 + ends
    counts = Counter(each.kind for each in paragraphs)
    return ChangesPage({kind: counts[kind] for kind in ("changed", "added", "removed")}, found, page, pages)
