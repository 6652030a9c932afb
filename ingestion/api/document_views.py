"""`/api/documents`: list, read, add, change and delete documents with the caller's rights."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, cast
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import Group
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.db import transaction
from django.db.models import Q
from django.http import Http404, QueryDict
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts import directory
from chatsite.accounts.api.permissions import demand_scope
from chatsite.accounts.api.resource_views import ResourceView
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import User
from chatsite.http.problem_details import ProblemDetails
from ingestion import documents
from ingestion.access.lists import Audience, audience_of, change_rights
from ingestion.details import Details
from ingestion.file_names import category_name
from ingestion.models import Document, ExternalId
from ingestion.parsing.formats import format_of
from ingestion.portal import descriptions, library
from ingestion.portal.document_actions import (
    IS_PART,
    NOT_YOURS,
    any_group,
    details_in_words,
    may_change,
    may_delete,
    record_as_staff,
)
from ingestion.portal.forms import EVERYONE, ONLY_ME, SOME, AudienceForm
from ingestion.reasons import in_words
from ingestion.sender_check import SenderCheck

from . import conditional
from .document_serializers import (
    ChangeSerializer,
    DocumentListQuerySerializer,
    DocumentSerializer,
    NewDocumentSerializer,
    PutDocumentSerializer,
    UploadedDocumentSerializer,
)

RESERVED = {"batch"}  # names that documents cannot have, because their URLs have another meaning
NAMES = gettext_lazy(
    "A name that you choose must have 1 to 200 letters, digits or ._~:@+-. It must not contain a slash,"
    " be “batch”, or look like an id."
)
EMPTY = gettext_lazy("The body is empty. Send the file as the body, or as the part “file” of a form.")
NO_FILE = gettext_lazy("The form has no part “file”.")
CHUNK = 64 * 1024  # bytes
_PUBLIC_ID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_EXTERNAL_ID = re.compile(r"[A-Za-z0-9._~:@+-]{1,200}")
DOCUMENT_ID = OpenApiParameter(
    "document_id",
    str,
    OpenApiParameter.PATH,
    description="The id of a document, or the name under which the caller's account uploaded it.",
)
EXTERNAL_ID = OpenApiParameter(
    "document_id",
    {"type": "string", "pattern": f"^(?!{_PUBLIC_ID.pattern}$)(?!batch$){_EXTERNAL_ID.pattern}$"},
    OpenApiParameter.PATH,
    description="A name that the caller chooses. It must not be “batch” or have the form of a document's id.",
)
LINK = OpenApiParameter(
    "Link", str, OpenApiParameter.HEADER, response=[200], description="The address of the next page, if any."
)


class RawBody(dict[str, Any]):
    """A body that is the file itself; its details are in the query string."""


class RawBodyParser(BaseParser):
    """Stores a body of any type in a temporary file."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> RawBody:
        file = TemporaryUploadedFile("file", media_type or "", 0, None)
        size = 0
        while chunk := stream.read(CHUNK):
            size += file.write(chunk)
        file.seek(0)
        file.size = size
        return RawBody(file=file)


def refusal(refused: documents.UploadRefused) -> exceptions.APIException:
    """The error for a file that is refused."""
    if refused.code == "sender_gone":
        return exceptions.NotAuthenticated(in_words(refused.message))
    return Refusal(refused)


class Refusal(exceptions.APIException):
    """A file that is refused."""

    def __init__(self, refusal: documents.UploadRefused) -> None:
        super().__init__(in_words(refusal.message))
        server = {"storage_full": 507, "storage_away": 503, "too_large": 413, "on_hold": 403}
        self.status_code = server.get(refusal.code, 422)


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
        requested = validated(DocumentListQuerySerializer, request.query_params)
        found = library.with_readers(library.listed_for(self.principal)).prefetch_related("external_ids")
        filters = {name: requested[name] for name in ("category", "status") if requested.get(name)}
        if "folder" in requested:
            filters["folder"] = requested["folder"]
        if requested.get("label"):
            filters["labels__contains"] = [requested["label"]]
        if requested.get("part_of"):
            filters["part_of__public_id"] = requested["part_of"]
        if requested.get("owner"):
            filters["owner__username"] = requested["owner"]
        found = found.filter(**filters)
        if requested.get("valid"):
            expired = Q(valid_until__lt=timezone.localdate())
            found = found.exclude(expired) if requested["valid"] == "true" else found.filter(expired)
        if requested["own"]:
            found = found.owned_by(self.principal)
        page = library.page_of(found, requested.get("q", ""), requested.get("cursor", ""), requested["limit"])
        context = {**self.get_serializer_context(), "parts": descriptions.parts_of(page.documents)}
        response = Response(DocumentSerializer(page.documents, many=True, context=context).data)
        if page.next:
            values = request.query_params.dict() | {"cursor": page.next}
            response.headers["Link"] = f'<{request.path}?{urlencode(values)}>; rel="next"'
        return response

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]
        """Refuse the method. For POST, the error says that documents are added with PUT."""
        if request.method == "POST":
            words = gettext("Add a document with {method} {path}.")
            raise exceptions.MethodNotAllowed(
                "POST", words.format(method="PUT", path="/api/documents/{name}")
            )
        raise exceptions.MethodNotAllowed(str(request.method))


class OneDocumentView(ResourceView):
    """Base of the views of one document."""

    serializer_class: Any = DocumentSerializer
    api_tag = "Documents"

    def found(self, document_id: str) -> Document:
        """The document. Raises Http404 if it does not exist or the caller may not read it."""
        listed = library.listed_for(self.principal)
        if _PUBLIC_ID.fullmatch(document_id):
            document = listed.with_public_id(UUID(document_id)).first()
        elif not _EXTERNAL_ID.fullmatch(document_id):
            raise Http404
        else:
            mine = ExternalId.objects.filter(owner=self.principal.user_id, external_id=document_id)
            document = listed.filter(pk__in=mine.values("document")).first()
        if document is None:
            raise Http404
        return document


class DocumentWriteView(OneDocumentView):
    """Base of the views that add, change and delete documents."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.check_sender = SenderCheck(self.principal, self._look_up_caller)

    def _look_up_caller(self) -> None:
        # What staff may do is decided by their account, which may have been changed since it was loaded.
        self.request.user = User.objects.get(pk=self.principal.user_id)

    def put_file(
        self,
        file: "UploadedFile[bytes]",
        new: Mapping[str, Any],
        external_id: str,
        *,
        may_replace: bool = True,
    ) -> tuple[Document, str]:
        """Add or replace the document with this external id. Returns it and the outcome.

        Raises APIException.
        """
        if not is_external_id(external_id):
            raise ProblemDetails(str(NAMES), "id")
        # If the external id has no known file extension, use the name of the uploaded file if that has one.
        with_ending = (name for name in (external_id, file.name or "") if format_of(name))
        try:
            put = documents.upsert(
                file,
                new.get("name") or next(with_ending, external_id),
                owner=User.objects.get(pk=self.principal.user_id),
                audience=self.audience(new),
                folder=new.get("folder", ""),
                category=new.get("category", ""),
                within_quota=True,
                external_id=external_id,
                details=details_of(new),
                may_replace=may_replace,
                check_sender=partial(self.check_sender, partial(self.audience, new)),
            )
        except documents.UploadRefused as refused:
            raise refusal(refused) from None
        except documents.DocumentExists:
            raise conditional.PreconditionFailed(conditional.EXISTS) from None
        return self.found(external_id), put.outcome

    def change(self, document_id: str, new: Mapping[str, Any]) -> Document:
        """Change readers and details of a document. Raises APIException and Http404."""
        with transaction.atomic():
            document = self.checked(document_id, may_change)
            if {"everyone", "users", "groups"} & new.keys():
                change_rights(self.request.user, document, self.audience(new, audience_of(document)))
            changed = {}
            if "category" in new and (category := category_name(new["category"])) != document.category:
                Document.objects.filter(pk=document.pk).update(category=category)
                changed["category"] = category
            changed |= documents.change_details(document, details_of(new))
            if changed:
                record_as_staff(self.request, document, f"Changed ({details_in_words(document, changed)})")
        return self.found(document_id)

    def remove(self, document_id: str) -> None:
        """Delete a document. Raises APIException and Http404."""
        with transaction.atomic():
            document = self.checked(document_id, may_delete)
            record_as_staff(self.request, document, "Deleted")
            documents.delete_document(document)

    def checked(self, document_id: str, may: Callable[[Request, Document], bool]) -> Document:
        """The document that the caller may change or delete. Raises APIException and Http404."""
        document = conditional.checked(self.request, self.found(document_id))
        if not may(self.request, document):
            self.demand_staff_scope()
            raise exceptions.PermissionDenied(gettext(NOT_YOURS))
        if document.part_of_id:
            raise exceptions.PermissionDenied(gettext(IS_PART))
        return document

    def demand_staff_scope(self) -> None:
        """Raise PermissionDenied if a staff member's key lacks the scope for acting as staff."""
        user = self.request.user
        if isinstance(user, User) and user.is_staff:
            demand_scope(self.principal, Scope.ADMIN_DOCUMENTS)

    def audience(self, requested: Mapping[str, Any], current: Audience | None = None) -> Audience:
        """The readers named in a request, validated like the portal's form. Raises ValidationError."""
        names, people = requested.get("groups", []), requested.get("users", [])
        # Only user names: the form's field would also accept lists, and entries like “Ann Smith (ann)”.
        if unknown := sorted(name for name in {*people} if directory.usernames(name) != {name}):
            words = gettext("There is no account named %(names)s.")
            raise exceptions.ValidationError({"users": [words % {"names": ", ".join(unknown)[:200]}]})
        groups = dict(Group.objects.filter(name__in=names).values_list("name", "pk"))
        some = bool(names or people)
        who = EVERYONE if requested.get("everyone") else SOME if some else ONLY_ME
        form = AudienceForm(
            {"who": who, "groups": [groups.get(name, 0) for name in names], "people": ", ".join(people)},
            principal=self.principal,
            any_group=any_group(self.request),
            current=current,
        )
        offered = form.offered_groups().filter(name__in=names).values_list("name", flat=True)
        if closed := sorted({*names} - {*offered}):
            self.demand_staff_scope()
            words = gettext("You are not in a group named %(names)s.")
            if any_group(self.request):
                words = gettext("There is no group named %(names)s.")
            raise exceptions.ValidationError({"groups": [words % {"names": ", ".join(closed)[:200]}]})
        if not form.is_valid():
            members = {"who": "everyone", "people": "users", "__all__": "users"}
            raise exceptions.ValidationError(
                {members.get(name, name): list(map(str, words)) for name, words in form.errors.items()}
            )
        return form.audience()


class DocumentView(DocumentWriteView):
    """One document."""

    required_scopes: ClassVar = {
        "GET": (Scope.DOCUMENTS_READ,),
        "PUT": (Scope.DOCUMENTS_WRITE,),
        "PATCH": (Scope.DOCUMENTS_WRITE,),
        "DELETE": (Scope.DOCUMENTS_WRITE,),
    }

    parsers_by_method: ClassVar = {"PUT": [MultiPartParser, RawBodyParser]}

    def get_parsers(self) -> list[BaseParser]:
        method = str(self.request.method) if self.request else ""
        return [parser() for parser in self.parsers_by_method.get(method, self.parser_classes)]

    @extend_schema(
        summary="One document, and its reading progress", operation_id="document", parameters=[DOCUMENT_ID]
    )
    def get(self, request: Request, document_id: str) -> Response:
        document = self.found(document_id)
        return Response(self.get_serializer(document).data, headers={"ETag": conditional.etag_of(document)})

    @extend_schema(
        summary="Add a file under a name that the caller chooses, or replace the file with this name",
        operation_id="put_document",
        parameters=[EXTERNAL_ID, NewDocumentSerializer],
        request={
            "*/*": OpenApiTypes.BINARY,
            "multipart/form-data": UploadedDocumentSerializer,
        },
        responses={
            200: PutDocumentSerializer,
            201: PutDocumentSerializer,
            412: OpenApiResponse(
                description="The document does not meet the condition in If-Match or If-None-Match."
            ),
            422: OpenApiResponse(
                description="The file or its name is not accepted, or the file exceeds the quota."
            ),
            429: OpenApiResponse(description="Too many simultaneous uploads. Try again after Retry-After."),
            507: OpenApiResponse(description="The server has no space for the file."),
        },
    )
    def put(self, request: Request, document_id: str) -> Response:
        if not is_external_id(document_id):
            raise ProblemDetails(str(NAMES), "document_id")
        body: Any = request.data
        if not isinstance(file := body.get("file"), UploadedFile):
            if request.content_type.startswith("multipart/"):
                raise ProblemDetails(str(NO_FILE), "file")
            raise exceptions.ParseError(EMPTY)
        with file:
            new = validated(NewDocumentSerializer, _details_in(request.query_params, body))
            # Another caller may add the document after the check, so `put_file` must not replace it.
            only_adds = conditional.conditions_of(request).get("If-None-Match") == ["*"]
            with conditional.conditionally(request, lambda: self.found(document_id)):
                document, outcome = self.put_file(file, new, document_id, may_replace=not only_adds)
        context = {**self.get_serializer_context(), "outcome": outcome}
        answer = PutDocumentSerializer(document, context=context)
        status_code = status.HTTP_201_CREATED if outcome == "added" else status.HTTP_200_OK
        return Response(answer.data, status=status_code, headers={"ETag": conditional.etag_of(document)})

    @extend_schema(
        summary="Change readers and details of a document",
        operation_id="change_document",
        parameters=[DOCUMENT_ID],
        request=ChangeSerializer,
        responses=DocumentSerializer,
    )
    def patch(self, request: Request, document_id: str) -> Response:
        requested = ChangeSerializer(data=request.data)
        requested.is_valid(raise_exception=True)
        document = self.change(document_id, requested.validated_data)
        return Response(self.get_serializer(document).data, headers={"ETag": conditional.etag_of(document)})

    @extend_schema(
        summary="Delete a document with its file and passages",
        operation_id="delete_document",
        parameters=[DOCUMENT_ID],
        responses={204: OpenApiResponse(description="The document is deleted.")},
    )
    def delete(self, request: Request, document_id: str) -> Response:
        self.remove(document_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SlashedDocumentView(DocumentView):
    """Refuses names with a slash, which documents cannot have; explains this to a `PUT`."""

    schema = None  # not in the API description

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return super().dispatch(request, document_id=kwargs["slashed"])


def is_external_id(name: str) -> bool:
    """Whether a program may give a document this name."""
    return bool(_EXTERNAL_ID.fullmatch(name)) and name not in RESERVED and not _PUBLIC_ID.fullmatch(name)


def details_of(requested: Mapping[str, Any]) -> Details:
    """The members of a request that are details of the document."""
    return cast(Details, {name: requested[name] for name in Details.__annotations__ if name in requested})


def _details_in(query: QueryDict, body: QueryDict | RawBody) -> Mapping[str, Any]:
    """The details in the query and, for a form, in the body.

    Raises ValidationError if a detail is in both.
    """
    if isinstance(body, RawBody):
        return query
    if twice := sorted(query.keys() & body.keys()):
        raise exceptions.ValidationError(
            {twice[0]: [gettext("This is both in the address and in the form.")]}
        )
    values = query.copy()
    for name, given in body.lists():
        values.setlist(name, given)
    return values


def validated(serializer_class: type[serializers.Serializer[Any]], values: Mapping[str, Any]) -> Any:
    """The validated parameters of a query or a form. Raises ValidationError, also for unknown ones."""
    requested = serializer_class(data=values)
    unknown = sorted(values.keys() - requested.fields.keys() - {"file"})
    if unknown:
        raise exceptions.ValidationError({unknown[0]: [gettext("There is no parameter with this name.")]})
    requested.is_valid(raise_exception=True)
    return requested.validated_data
