"""Sources: passages in the form that models and readers get."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

Given = Literal["text", "both", "image"]


@dataclass(frozen=True, slots=True)
class Caption:
    """A sentence that represents its passage; `marks` are [start, end) of the matching words."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceView:
    """A passage that the model got, as a reader may see it.

    `found_by` is “scope” for a passage that was not found, but belongs to a small selected scope.
    """

    rank: int  # from 1, best first
    label: str  # label with which answers cite it, such as handbook.pdf#page=3
    sourcefile: str
    title: str
    heading: str
    page: int | None
    category: str
    content: str
    score: float  # 0 to 1
    found_by: str  # “words”, “meaning”, “both”, “scope”, or “person” for a verified answer
    passage_id: int
    document_id: str  # the public id
    ranker_score: float | None = None  # 0 to 4, if a ranker ran
    captions: tuple[Caption, ...] = ()
    given: Given = "text"  # what the model got: the text, the image of the page, or both

    @property
    def model_text(self) -> str:
        """The text for the model: the captions if there are any, otherwise the content."""
        return " ".join(caption.text for caption in self.captions) or self.content

    @property
    def address(self) -> str:
        """The URL path of the document, with the page.

        It contains the id, because several documents can have the same name; the name is only for people.
        """
        name = self.sourcefile.rpartition("/")[2]
        page = f"#page={self.page}" if self.page else ""
        return f"/content/{self.document_id}/{quote(name)}{page}"


@dataclass(frozen=True, slots=True)
class PageImage:
    """The image of a source's page as a data URL, with the label that cites it."""

    label: str
    url: str


def captions_from_json(values: Iterable[Mapping[str, Any]]) -> tuple[Caption, ...]:
    """The inverse of `asdict` for captions."""
    return tuple(
        Caption(value["text"], tuple((start, end) for start, end in value["marks"])) for value in values
    )


def source_from_json(members: Mapping[str, Any]) -> SourceView:
    """The inverse of `asdict` for a source."""
    return SourceView(**{**members, "captions": captions_from_json(members.get("captions", ()))})
