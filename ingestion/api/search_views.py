"""`POST /api/search`: the best passages that the caller may read, without a language model."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api.resource_views import ResourceView
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.principal import Principal
from chatsite.http.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from ingestion.access.models import AccessEntry
from ingestion.models import Passage
from ingestion.search import retrieval
from ingestion.search.labels import content_address
from ingestion.search.retrieval import FoundPassage
from ingestion.search.rough_stems import matching_words

MAX_QUERY_CHARACTERS = 2_000
MAX_NEIGHBOURS = 3
UUID_PATTERN = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SCOPE_PATTERN = rf"^(all|own|(folder|category):.+|document:{UUID_PATTERN}(,{UUID_PATTERN}){{0,14}})$"
Neighbours = dict[int, dict[str, list[dict[str, Any]]]]


@extend_schema_field(
    {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_QUERY_CHARACTERS,
        "pattern": r"[^\s\x00\x1c-\x1f\x85]",
    }
)
class QueryField(StrictCharField):
    """Text with at least one character that is neither white space nor NUL."""


class ScopeField(serializers.RegexField):
    """A part of what the caller may read (see ingestion.search.scopes)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            SCOPE_PATTERN,
            max_length=600,
            error_messages={
                "invalid": gettext_lazy("A scope is all, own, folder:…, category:… or document:<id>[,<id>…].")
            },
            **options,
        )


class SearchRequestSerializer(StrictSerializer):
    """A search: the query, and the documents to search."""

    query = QueryField(max_length=MAX_QUERY_CHARACTERS, help_text="A question, or words.")
    limit = StrictIntegerField(
        min_value=1, max_value=retrieval.MAX_PASSAGES, default=5, help_text="The maximum number of passages."
    )
    mode = StrictChoiceField(
        ["hybrid", "text", "vectors"],
        default="hybrid",
        help_text="Search by words and meaning, or by only one of them.",
    )
    scope = ScopeField(
        default="all",
        help_text="A part of what the caller may read: “own” is what they added, a folder includes its"
        " subfolders, and up to 15 documents can be named by their ids.",
    )
    exclude_category = StrictCharField(max_length=100, allow_blank=True, default="")
    minimum_score = StrictFloatField(min_value=0, max_value=1, default=0)
    neighbours = StrictIntegerField(
        min_value=0,
        max_value=MAX_NEIGHBOURS,
        default=0,
        help_text="How many passages before and after each passage are also returned.",
    )
    explain = StrictBooleanField(default=False, help_text="Explain how each passage was found.")


class NeighbourSerializer(serializers.Serializer[Any]):
    """A passage beside one that was found."""

    passage_id = serializers.IntegerField()
    heading = serializers.CharField(allow_blank=True)
    page = serializers.IntegerField(allow_null=True)
    content = serializers.CharField()


class MatchSerializer(serializers.Serializer[Any]):
    """Where a word of the query is in `content`.

    Positions count characters (Unicode code points); `end` is excluded.
    """

    start = serializers.IntegerField()
    end = serializers.IntegerField()


class ExplanationSerializer(serializers.Serializer[Any]):
    """How a passage was found. A score is null if that kind of search did not find the passage."""

    found_by = serializers.ChoiceField(["words", "meaning", "both"])
    text_score = serializers.FloatField(allow_null=True)
    vector_score = serializers.FloatField(allow_null=True)


class SearchHitSerializer(serializers.Serializer[Any]):
    """A passage, with everything that a citation of it needs."""

    passage_id = serializers.IntegerField(help_text="The id of the passage in this version of the document.")
    document_id = serializers.UUIDField()
    document_version = serializers.IntegerField()
    label = serializers.CharField(help_text="The label with which answers cite the passage.")  # type: ignore[assignment]
    title = serializers.CharField(allow_blank=True)
    folder = serializers.CharField(allow_blank=True)
    category = serializers.CharField(allow_blank=True)
    heading = serializers.CharField(allow_blank=True)
    page = serializers.IntegerField(
        allow_null=True, help_text="The page, from 1; null for documents without pages."
    )
    content = serializers.CharField()
    score = serializers.FloatField(help_text="0 to 1; comparable within this response.")
    matches = MatchSerializer(many=True)
    url = serializers.URLField(help_text="The file, for callers that may read documents.")
    source_url = serializers.CharField(
        allow_blank=True, help_text="The URL of the document's source; empty if there is none."
    )
    before = NeighbourSerializer(many=True, help_text="In the order of the text.")
    after = NeighbourSerializer(many=True, help_text="In the order of the text.")
    explanation = ExplanationSerializer(allow_null=True, help_text="null unless `explain` is true.")


class SearchResponseSerializer(serializers.Serializer[Any]):
    """The matching passages, best first; an empty list if there are none."""

    mode = serializers.ChoiceField(
        ["hybrid", "text", "vectors"], help_text="The mode that was used: `text` if embedding failed."
    )
    sure = serializers.BooleanField(help_text="Whether the first passage is clearly relevant to the query.")
    results = SearchHitSerializer(many=True)


class SearchView(ResourceView):
    """Searches as for an answer, but stores neither a conversation nor the question."""

    required_scopes = (Scope.SEARCH,)
    serializer_class = SearchRequestSerializer
    api_tag = "Search"

    @extend_schema(
        summary="The passages that fit a query best",
        operation_id="search",
        request=SearchRequestSerializer,
        responses=SearchResponseSerializer,
    )
    def post(self, request: Request) -> Response:
        asked = self.get_serializer(data=request.data)
        asked.is_valid(raise_exception=True)
        requested = asked.validated_data
        found = retrieval.search(
            self.principal,
            requested["query"],
            mode=requested["mode"],
            top=requested["limit"],
            scope=requested["scope"],
            exclude_category=requested["exclude_category"],
            minimum_score=requested["minimum_score"],
        )
        ids = [passage.passage_id for passage in found.passages]
        neighbours = (
            neighbours_of(self.principal, ids, requested["neighbours"]) if requested["neighbours"] else {}
        )
        hits = [
            _hit(request, passage, requested, neighbours.get(passage.passage_id, {}))
            for passage in found.passages
        ]
        body = {"mode": found.mode, "sure": found.sure, "results": hits}
        return Response(SearchResponseSerializer(body).data)


def neighbours_of(principal: Principal, passage_ids: Iterable[int], radius: int) -> Neighbours:
    """The neighbours of each passage that the caller may read now, in reading order."""
    readable = Passage.objects.filter(document__access_list__in=AccessEntry.lists_of(principal.user_id))
    places = readable.filter(pk__in=list(passage_ids)).values_list("pk", "document", "position")
    near: dict[int, tuple[int, int]] = {pk: (document, position) for pk, document, position in places}
    if not near:
        return {}
    wanted = Q()
    for document, position in near.values():
        wanted |= Q(document=document, position__range=(max(0, position - radius), position + radius))
    rows = readable.filter(wanted).values("pk", "document", "position", "heading", "page", "content")
    by_place = {(row["document"], row["position"]): row for row in rows}

    def among(document: int, positions: range) -> list[dict[str, Any]]:
        there = (by_place.get((document, position)) for position in positions)
        return [row | {"passage_id": row["pk"]} for row in there if row]

    return {
        pk: {
            "before": among(document, range(position - radius, position)),
            "after": among(document, range(position + 1, position + radius + 1)),
        }
        for pk, (document, position) in near.items()
    }


def _hit(
    request: Request, passage: FoundPassage, requested: dict[str, Any], neighbours: dict[str, Any]
) -> dict[str, Any]:
    address = content_address(passage.public_id, passage.sourcefile.rpartition("/")[2])
    page = f"#page={passage.page}" if passage.page else ""
    matches = matching_words(requested["query"], passage.content)
    return {
        "passage_id": passage.passage_id,
        "document_id": passage.public_id,
        "document_version": passage.document_version,
        "label": passage.label,
        "title": passage.title,
        "folder": passage.folder,
        "category": passage.category,
        "heading": passage.heading,
        "page": passage.page,
        "content": passage.content,
        "score": passage.score,
        "matches": [{"start": start, "end": end} for start, end in matches],
        "url": request.build_absolute_uri(address) + page,
        "source_url": passage.source_url,
        "before": neighbours.get("before", []),
        "after": neighbours.get("after", []),
        "explanation": passage if requested["explain"] else None,
    }
