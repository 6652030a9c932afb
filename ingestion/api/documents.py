"""`/api/documents`: what the caller may read, its state and its passages; and deleting one's own."""

from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api_keys import Scope
from chatsite.accounts.resource_views import ResourceView
from ingestion import documents
from ingestion.models import Document, Passage
from ingestion.portal import listing
from ingestion.portal.actions import NOT_YOURS, may_delete
from ingestion.search.labels import content_address

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
DOCUMENT_ID = OpenApiParameter("public_id", UUID, OpenApiParameter.PATH, description="The id of a document.")
LINK = OpenApiParameter(
    "Link", str, OpenApiParameter.HEADER, response=[200], description="The address of the next page, if any."
)


class DocumentListQuerySerializer(serializers.Serializer[Any]):
    """Which documents are listed."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    cursor = serializers.RegexField(
        listing.CURSOR, required=False, help_text="From the address of the next page in `Link`."
    )
    q = serializers.CharField(
        required=False, max_length=listing.QUERY_LENGTH, help_text="Words of name, title or folder."
    )
    folder = serializers.CharField(
        required=False, max_length=500, allow_blank=True, help_text="This folder, without those in it."
    )
    category = serializers.CharField(required=False, max_length=100)
    status = serializers.ChoiceField(Document.Status.choices, required=False)
    own = serializers.BooleanField(default=False, help_text="Only what the caller added.")


class PassageQuerySerializer(serializers.Serializer[Any]):
    """Which passages are listed."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    start = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, default=0, help_text="The position of the first."
    )


class ProgressSerializer(serializers.Serializer[Document]):
    """Pages read, or texts embedded, of how many; both 0 while that is not known."""

    done = serializers.IntegerField(source="progress_done")
    total = serializers.IntegerField(source="progress_total")


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """A document as its readers see it."""

    id = serializers.UUIDField(source="public_id")
    reason = serializers.CharField(allow_blank=True, help_text="Why it failed or waits, for people.")
    progress = ProgressSerializer(source="*")
    own = serializers.SerializerMethodField(help_text="Whether the caller added it.")
    url = serializers.SerializerMethodField(help_text="The file.")

    class Meta:
        model = Document
        fields = [
            "id", "name", "title", "folder", "category", "language", "media_type", "size", "sha256",
            "version", "page_count", "passage_count", "status", "reason", "progress", "own", "created_at",
            "changed_at", "url",
        ]  # fmt: skip

    def get_own(self, document: Document) -> bool:
        return bool(document.owner_id == self.context["request"].auth.user_id)

    def get_url(self, document: Document) -> str:
        address = content_address(document.public_id, document.name)
        return str(self.context["request"].build_absolute_uri(address))


class DocumentPassageSerializer(serializers.ModelSerializer[Passage]):
    """A citable piece of a document's text."""

    passage_id = serializers.IntegerField(source="pk", help_text="Of this version of the document.")

    class Meta:
        model = Passage
        fields = ["passage_id", "position", "page", "heading", "content"]


class DocumentsView(ResourceView):
    """Lists documents."""

    required_scopes = (Scope.DOCUMENTS_READ,)
    serializer_class = DocumentSerializer
    api_tag = "Documents"

    @extend_schema(
        summary="Documents that the caller may read, newest first",
        operation_id="list_documents",
        parameters=[DocumentListQuerySerializer, LINK],
        responses=DocumentSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        wish = _validated(DocumentListQuerySerializer, request)
        found = listing.listed_for(self.principal)
        found = found.filter(
            **{name: wish[name] for name in ("folder", "category", "status") if name in wish}
        )
        if wish["own"]:
            found = found.owned_by(self.principal)
        page = listing.page_of(found, wish.get("q", ""), wish.get("cursor", ""), wish["limit"])
        response = Response(self.get_serializer(page.documents, many=True).data)
        if page.next:
            values = request.query_params.dict() | {"cursor": page.next}
            response.headers["Link"] = f'<{request.path}?{urlencode(values)}>; rel="next"'
        return response


class OneDocumentView(ResourceView):
    """Base of the views of one document."""

    serializer_class: Any = DocumentSerializer
    api_tag = "Documents"

    def found(self, public_id: str) -> Document:
        """The document, of which a caller who may not read it learns nothing. Raises Http404."""
        document = listing.listed_for(self.principal).with_public_id(UUID(public_id)).first()
        if document is None:
            raise Http404
        return document


class DocumentView(OneDocumentView):
    """One document."""

    required_scopes: ClassVar = {"GET": (Scope.DOCUMENTS_READ,), "DELETE": (Scope.DOCUMENTS_WRITE,)}

    @extend_schema(
        summary="One document, and how far it is read", operation_id="document", parameters=[DOCUMENT_ID]
    )
    def get(self, request: Request, public_id: str) -> Response:
        return Response(self.get_serializer(self.found(public_id)).data)

    @extend_schema(
        summary="Delete a document with its file and passages",
        operation_id="delete_document",
        parameters=[DOCUMENT_ID],
        responses={204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, public_id: str) -> Response:
        document = self.found(public_id)
        if not may_delete(request.user, document):
            raise exceptions.PermissionDenied(NOT_YOURS)
        documents.delete_document(document)
        return Response(status=status.HTTP_204_NO_CONTENT)


class PassagesView(OneDocumentView):
    """The text of a document, as it is searched."""

    required_scopes = (Scope.DOCUMENTS_READ,)
    serializer_class = DocumentPassageSerializer

    @extend_schema(
        summary="The passages of a document, in the order of its text",
        operation_id="list_passages",
        parameters=[DOCUMENT_ID, PassageQuerySerializer],
        responses=DocumentPassageSerializer(many=True),
    )
    def get(self, request: Request, public_id: str) -> Response:
        wish = _validated(PassageQuerySerializer, request)
        rows = self.found(public_id).passages.filter(position__gte=wish["start"]).order_by("position")
        return Response(self.get_serializer(rows[: wish["limit"]], many=True).data)


def _validated(serializer_class: type[serializers.Serializer[Any]], request: Request) -> Any:
    """The parameters of the address. Raises ValidationError."""
    wish = serializer_class(data=request.query_params)
    wish.is_valid(raise_exception=True)
    return wish.validated_data
