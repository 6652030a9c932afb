"""`/api/documents/{id}/…`: the passages, pages, versions and file of a document."""

import re
from typing import Any

from django.http import Http404, HttpResponseBase
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api_keys import Scope
from ingestion.models import Passage
from ingestion.parsing.formats import PAGED
from ingestion.portal.content import file_response

from .document_serializers import DEFAULT_LIMIT, MAX_LIMIT
from .document_views import DOCUMENT_ID, OneDocumentView, validated

PAGE_NUMBER = re.compile("[0-9]{1,6}")
NUMBER = OpenApiParameter(
    "number",
    {"type": "integer", "minimum": 1, "maximum": 999_999},
    OpenApiParameter.PATH,
    description="The number of the page, from 1.",
)


class PassageQuerySerializer(serializers.Serializer[Any]):
    """Which passages are listed."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    start = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, default=0, help_text="The position of the first passage."
    )


class DocumentPassageSerializer(serializers.ModelSerializer[Passage]):
    """A citable piece of a document's text."""

    passage_id = serializers.IntegerField(
        source="pk", help_text="The id of the passage in this version of the document."
    )

    class Meta:
        model = Passage
        fields = ["passage_id", "position", "page", "heading", "content"]


class PageSerializer(serializers.Serializer[Any]):
    """A page, slide or sheet of a document."""

    page = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True, help_text="The text of its passages in order.")
    passages = DocumentPassageSerializer(many=True)
    image = serializers.CharField(
        allow_null=True, help_text="Address of its image, as PNG; null for formats without one."
    )


class VersionSerializer(serializers.Serializer[Any]):
    """A version of a document that was read."""

    version = serializers.IntegerField()
    sha256 = serializers.CharField(help_text="The SHA-256 of the file that was read.")
    size = serializers.IntegerField(help_text="The size of this file in bytes.")
    page_count = serializers.IntegerField(allow_null=True)
    passage_count = serializers.IntegerField()
    read_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was read; null if this was not recorded."
    )
    current = serializers.BooleanField(
        help_text="Whether this version is found and cited now; its file is kept."
    )


class PassagesView(OneDocumentView):
    """The text of a document in the passages that are searched."""

    required_scopes = (Scope.DOCUMENTS_READ,)
    serializer_class = DocumentPassageSerializer

    @extend_schema(
        summary="The passages of a document, in the order of its text",
        operation_id="list_passages",
        parameters=[DOCUMENT_ID, PassageQuerySerializer],
        responses=DocumentPassageSerializer(many=True),
    )
    def get(self, request: Request, document_id: str) -> Response:
        requested = validated(PassageQuerySerializer, request.query_params)
        rows = self.found(document_id).passages.filter(position__gte=requested["start"]).order_by("position")
        return Response(self.get_serializer(rows[: requested["limit"]], many=True).data)


class PageView(OneDocumentView):
    """One page of a document."""

    required_scopes = (Scope.DOCUMENTS_READ,)
    serializer_class = PageSerializer

    @extend_schema(
        summary="The text of a page, and its image if there is one",
        operation_id="document_page",
        parameters=[DOCUMENT_ID, NUMBER],
    )
    def get(self, request: Request, document_id: str, number: str) -> Response:
        if not PAGE_NUMBER.fullmatch(number):
            raise Http404
        document, page = self.found(document_id), int(number)
        passages = list(document.passages.filter(page=page).order_by("position"))
        if not passages and not 1 <= page <= (document.page_count or 0):
            raise Http404
        image = None
        if document.media_type in PAGED and page <= (document.page_count or 0):
            path = reverse("ingestion:page-image", args=[document.public_id, page])
            image = request.build_absolute_uri(path)
        text = "\n".join(passage.content for passage in passages)
        found = {"page": page, "text": text, "passages": passages, "image": image}
        return Response(self.get_serializer(found).data)


class VersionsView(OneDocumentView):
    """The versions of a document, with the times at which they were read."""

    required_scopes = (Scope.DOCUMENTS_READ,)
    serializer_class = VersionSerializer

    @extend_schema(
        summary="The last 20 versions of a document; only the newest one for people other than its owner",
        operation_id="list_versions",
        parameters=[DOCUMENT_ID],
        responses=VersionSerializer(many=True),
    )
    def get(self, request: Request, document_id: str) -> Response:
        document = self.found(document_id)
        versions = [
            {**version, "current": version["version"] == document.version}
            for version in reversed(document.versions)
        ]
        if document.owner_id != self.principal.user_id:
            # Other readers may not have been allowed to read former versions.
            versions = [version for version in versions if version["current"]]
        if document.version and not any(version["current"] for version in versions):
            # The document was last read before `versions` was recorded.
            current = {
                "version": document.version,
                "sha256": document.sha256,
                "size": document.size,
                "page_count": document.page_count,
                "passage_count": document.passage_count,
                "read_at": None,
                "current": True,
            }
            versions.insert(0, current)
        return Response(self.get_serializer(versions, many=True).data)


class FileView(OneDocumentView):
    """The file of a document."""

    required_scopes = (Scope.DOCUMENTS_READ,)

    @extend_schema(
        summary="The file of a document; `Range` asks for a part of it",
        operation_id="document_file",
        parameters=[DOCUMENT_ID],
        responses={
            (200, "*/*"): OpenApiTypes.BINARY,
            206: OpenApiResponse(description="The part that `Range` requests."),
            304: OpenApiResponse(description="It has not changed."),
        },
    )
    def get(self, request: Request, document_id: str) -> HttpResponseBase:
        return file_response(request, self.found(document_id))
