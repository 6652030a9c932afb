"""Passages as an answer is made from them and as its reader may see them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Given = Literal["text", "both", "image"]


@dataclass(frozen=True, slots=True)
class Caption:
    """A sentence that stands for its passage; `marks` are start and end of the words asked for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceView:
    """A passage given to the model, as a reader may see it."""

    rank: int  # from 1, best first
    label: str  # handbook.pdf#page=3: what an answer cites
    sourcefile: str
    title: str
    heading: str
    page: int | None
    category: str
    content: str
    score: float  # 0 to 1
    found_by: str  # words, meaning or both
    passage_id: int
    document_id: str  # the public one
    ranker_score: float | None = None  # 0 to 4, where a ranker ran
    captions: tuple[Caption, ...] = ()
    given: Given = "text"  # as what the model gets it: its text, the image of its page, or both

    @property
    def told(self) -> str:
        """What of its text stands for the passage: its captions, where there are any."""
        return " ".join(caption.text for caption in self.captions) or self.content


@dataclass(frozen=True, slots=True)
class PageImage:
    """The image of a source's page, as a data URL, under the name that cites it."""

    label: str
    url: str


def captions_from_json(values: Iterable[Mapping[str, Any]]) -> tuple[Caption, ...]:
    """The inverse of `asdict` for each of some captions."""
    return tuple(
        Caption(value["text"], tuple((start, end) for start, end in value["marks"])) for value in values
    )


def source_from_json(members: Mapping[str, Any]) -> SourceView:
    """The inverse of `asdict` for a source."""
    return SourceView(**{**members, "captions": captions_from_json(members.get("captions", ()))})
