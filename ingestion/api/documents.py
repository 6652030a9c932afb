"""`/api/documents`: what the caller may read, its state and its text; and changing one's own."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import Group
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.db import transaction
from django.db.models import Q
from django.http import Http404
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.http import parse_etags, quote_etag
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import exceptions, serializers, status
from rest_framework.fields import empty
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts import directory
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import User
from chatsite.accounts.permissions import demand_scope
from chatsite.accounts.resource_views import ResourceView
from chatsite.http.problem_details import ProblemDetails
from chatsite.http.strict_fields import (
    BoundedListField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    WordBooleanField,
)
from ingestion import details, documents
from ingestion.access.lists import Audience, audience_of, change_rights
from ingestion.details import Details
from ingestion.file_names import category_name
from ingestion.models import Document, ExternalId
from ingestion.parsing.formats import format_of
from ingestion.portal import listing
from ingestion.portal.actions import NOT_YOURS, any_group, may_change, may_delete
from ingestion.portal.forms import EVERYONE, ONLY_ME, SOME, AudienceForm
from ingestion.search.labels import content_address

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
RESERVED = {"batch"}  # an address of its own
NAMES = (
    "A name of your own has 1 to 200 letters, digits or ._~:@+- and no slash, and is neither “batch”"
    " nor like an id."
)
EMPTY = "The body is empty. Send the file as the body, or as the part “file” of a form."
NO_FILE = "The form has no part “file”."
CONDITIONS = frozenset({"If-Match", "If-None-Match"})
TAGS = "%(header)s takes “*”, or the values of ETag with their quotation marks."
GONE = "There is no document of this name, so it has no ETag that If-Match could name."
EXISTS = "There is a document of this name, or it has an ETag that If-None-Match names."
CHUNK = 64 * 1024  # bytes
_PUBLIC_ID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_EXTERNAL_ID = re.compile(r"[A-Za-z0-9._~:@+-]{1,200}")
DOCUMENT_ID = OpenApiParameter(
    "document_id",
    str,
    OpenApiParameter.PATH,
    description="The id of a document, or the name under which the caller's programs have put it.",
)
EXTERNAL_ID = OpenApiParameter(
    "document_id",
    {"type": "string", "pattern": f"^(?!{_PUBLIC_ID.pattern}$)(?!batch$){_EXTERNAL_ID.pattern}$"},
    OpenApiParameter.PATH,
    description="A name of the caller's own; not “batch”, and not in the form of a document's id.",
)
LINK = OpenApiParameter(
    "Link", str, OpenApiParameter.HEADER, response=[200], description="The address of the next page, if any."
)


class DocumentListQuerySerializer(serializers.Serializer[Any]):
    """Which documents are listed."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    cursor = serializers.RegexField(
        listing.CURSOR,
        required=False,
        allow_blank=True,
        help_text="From the address of the next page in `Link`.",
    )
    q = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=listing.QUERY_LENGTH,
        help_text="Words of name, title or folder.",
    )
    folder = serializers.CharField(
        required=False, max_length=500, allow_blank=True, help_text="This folder, without those in it."
    )
    category = serializers.CharField(
        required=False, allow_blank=True, max_length=100, help_text="Empty is any, as for the status."
    )
    status = StrictChoiceField(Document.Status.choices, required=False, allow_blank=True)
    label = serializers.CharField(required=False, allow_blank=True, max_length=details.LABEL_CHARACTERS)  # type: ignore[assignment]
    owner = serializers.CharField(
        required=False, allow_blank=True, max_length=150, help_text="User name of who added it."
    )
    valid = StrictChoiceField(
        ["true", "false"],
        required=False,
        allow_blank=True,
        help_text="Whether search still finds it: its last day is not past.",
    )
    own = WordBooleanField(default=False, help_text="Only what the caller added.")


class ProgressSerializer(serializers.Serializer[Document]):
    """Pages read, or texts embedded, of how many; both 0 while that is not known."""

    done = serializers.IntegerField(source="progress_done")
    total = serializers.IntegerField(source="progress_total")


class ReadersSerializer(serializers.Serializer[Any]):
    """Who may read a document beside its owner."""

    everyone = serializers.BooleanField(help_text="Everyone who signs in.")
    guests = serializers.BooleanField(help_text="Also people without an account.")
    users = serializers.ListField(child=serializers.CharField())
    groups = serializers.ListField(child=serializers.CharField())


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """A document as its readers see it."""

    id = serializers.UUIDField(source="public_id")
    reason = serializers.CharField(allow_blank=True, help_text="Why it failed or waits, for people.")
    progress = ProgressSerializer(source="*")
    source_url = serializers.CharField(allow_blank=True, help_text="Where it comes from; else empty.")
    expired = serializers.BooleanField(
        source="is_expired", help_text="Whether its last day is past: search no longer finds it."
    )
    external_id = serializers.SerializerMethodField(
        help_text="What the caller's programs call it; else empty."
    )
    own = serializers.SerializerMethodField(help_text="Whether the caller added it.")
    readers = serializers.SerializerMethodField(help_text="null for callers who may not change them.")
    url = serializers.SerializerMethodField(help_text="The file.")

    class Meta:
        model = Document
        fields = [
            "id", "external_id", "name", "title", "folder", "category", "labels", "source_url", "valid_until",
            "expired", "language", "media_type", "size", "sha256", "version", "page_count", "passage_count",
            "status", "reason", "progress", "own", "readers", "created_at", "changed_at", "url",
        ]  # fmt: skip

    def get_external_id(self, document: Document) -> str:
        caller = self.context["request"].auth.user_id
        mine = (each.external_id for each in document.external_ids.all() if each.owner_id == caller)
        return next(mine, "")

    def get_own(self, document: Document) -> bool:
        return bool(document.owner_id == self.context["request"].auth.user_id)

    @extend_schema_field(ReadersSerializer(allow_null=True))
    def get_readers(self, document: Document) -> dict[str, Any] | None:
        if not may_change(self.context["request"], document):
            return None
        entries = list(document.access_list.entries.all())
        others = (each.user for each in entries if each.user and each.user_id != document.owner_id)
        return {
            "everyone": any(each.user_id is None and each.group_id is None for each in entries),
            "guests": any(each.guests for each in entries),
            "users": sorted(each.username for each in others),
            "groups": sorted(each.group.name for each in entries if each.group),
        }

    def get_url(self, document: Document) -> str:
        address = content_address(document.public_id, document.name)
        return str(self.context["request"].build_absolute_uri(address))


class RightsSerializer(serializers.Serializer[Any]):
    """Who may read a document beside `everyone`; where nobody is named, only who added it."""

    users = BoundedListField(child=StrictCharField(max_length=150), required=False, max_length=200)
    groups = BoundedListField(
        child=StrictCharField(max_length=150),
        required=False,
        max_length=200,
        help_text="Names of groups that the caller is in; of staff, with `admin:documents`, any.",
    )


@extend_schema_field(
    {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "maxLength": 0}, {"type": "null"}]}
)
class DayField(serializers.DateField):
    """A day as YYYY-MM-DD; empty is none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(input_formats=["%Y-%m-%d"], **options)

    def run_validation(self, data: Any = empty) -> Any:
        return None if data == "" else super().run_validation(data)


@extend_schema_field({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "maxLength": 0}]})
class FormDayField(DayField):
    """A day in a form or an address, where nothing is null."""

    allow_blank = True  # else DRF takes an empty one for one that is left out


@extend_schema_field(
    {"type": "string", "maxLength": details.ADDRESS_CHARACTERS, "pattern": "^([hH][tT][tT][pP][sS]?://.+)?$"}
)
class WebAddressField(StrictCharField):
    """An address of http or https, or none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_length=details.ADDRESS_CHARACTERS,
            allow_blank=True,
            validators=[details.is_web_address],
            **options,
        )


class DetailsSerializer(RightsSerializer):
    """What is known of a document besides. What is left out stays as it is, what is empty is taken away."""

    title = StrictCharField(
        max_length=details.TITLE_CHARACTERS,
        allow_blank=True,
        required=False,
        help_text="In place of the one that the file says itself.",
    )
    labels = BoundedListField(
        child=StrictCharField(max_length=details.LABEL_CHARACTERS, allow_blank=True),
        max_length=details.MAX_LABELS,
        required=False,
    )
    source_url = WebAddressField(
        required=False, help_text="Where it comes from: an address of http or https."
    )
    valid_until = DayField(
        allow_null=True, required=False, help_text="After this day it is neither found nor cited."
    )


class ChangeSerializer(StrictSerializer, DetailsSerializer):
    """What changes. Where one member about readers is given, those that are left out are taken away."""

    everyone = StrictBooleanField(required=False, help_text="Everyone who signs in.")
    category = StrictCharField(max_length=100, allow_blank=True, required=False)


class NewDocumentSerializer(DetailsSerializer):
    """What is known of a file. Readers who are left out lose the document."""

    refuses_unknown = True  # in the API's description
    valid_until = FormDayField(required=False, help_text="After this day it is neither found nor cited.")
    everyone = WordBooleanField(required=False, help_text="Everyone who signs in.")
    name = serializers.CharField(
        max_length=255,
        required=False,
        allow_blank=True,
        help_text="File name, whose ending says how it is read; if empty, the name in the address.",
    )
    folder = serializers.CharField(max_length=500, allow_blank=True, required=False)
    category = serializers.CharField(
        max_length=100, allow_blank=True, required=False, help_text="Empty leaves it as it is."
    )


class UploadedDocumentSerializer(NewDocumentSerializer):
    """The parts of a form."""

    file = serializers.FileField()


class PutDocumentSerializer(DocumentSerializer):
    """A document that was put, and what happened to it."""

    outcome = serializers.SerializerMethodField()

    class Meta(DocumentSerializer.Meta):
        fields = [*DocumentSerializer.Meta.fields, "outcome"]

    @extend_schema_field(serializers.ChoiceField(["added", "replaced", "unchanged"]))
    def get_outcome(self, document: Document) -> str:
        return str(self.context["outcome"])


class RawBody(dict[str, Any]):
    """A body that is the file itself: what is known of it stands in the address."""


class RawBodyParser(BaseParser):
    """Keeps a body of any type as a file on disk."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> RawBody:
        file = TemporaryUploadedFile("file", media_type or "", 0, None)
        size = 0
        while chunk := stream.read(CHUNK):
            size += file.write(chunk)
        file.seek(0)
        file.size = size
        return RawBody(file=file)


class Refusal(exceptions.APIException):
    """A file that is not taken."""

    def __init__(self, refusal: documents.UploadRefused) -> None:
        super().__init__(refusal.message)
        server = {"storage_full": 507, "storage_away": 503, "too_large": 413}
        self.status_code = server.get(refusal.code, 422)


class Changed(exceptions.APIException):
    """The document is not as the caller knew it."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = "The document was changed since: it has another ETag. Read it again first."


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
        found = listing.with_readers(listing.listed_for(self.principal)).prefetch_related("external_ids")
        filters = {name: requested[name] for name in ("category", "status") if requested.get(name)}
        if "folder" in requested:
            filters["folder"] = requested["folder"]
        if requested.get("label"):
            filters["labels__contains"] = [requested["label"]]
        if requested.get("owner"):
            filters["owner__username"] = requested["owner"]
        found = found.filter(**filters)
        if requested.get("valid"):
            expired = Q(valid_until__lt=timezone.localdate())
            found = found.exclude(expired) if requested["valid"] == "true" else found.filter(expired)
        if requested["own"]:
            found = found.owned_by(self.principal)
        page = listing.page_of(found, requested.get("q", ""), requested.get("cursor", ""), requested["limit"])
        response = Response(self.get_serializer(page.documents, many=True).data)
        if page.next:
            values = request.query_params.dict() | {"cursor": page.next}
            response.headers["Link"] = f'<{request.path}?{urlencode(values)}>; rel="next"'
        return response


class OneDocumentView(ResourceView):
    """Base of the views of one document."""

    serializer_class: Any = DocumentSerializer
    api_tag = "Documents"

    def found(self, document_id: str) -> Document:
        """The document, of which a caller who may not read it learns nothing. Raises Http404."""
        listed = listing.listed_for(self.principal)
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

    def put_file(
        self,
        file: "UploadedFile[bytes]",
        new: Mapping[str, Any],
        external_id: str,
        *,
        may_replace: bool = True,
    ) -> tuple[Document, str]:
        """Add or replace the document of that name, and what happened to it. Raises APIException."""
        if not is_external_id(external_id):
            raise ProblemDetails(NAMES, "id")
        # That of the form's part, where the program's own name does not say how the file is to be read.
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
            )
        except documents.UploadRefused as refusal:
            raise Refusal(refusal) from None
        except documents.Exists:
            raise Changed(EXISTS) from None
        return self.found(external_id), put.outcome

    def change(self, document_id: str, new: Mapping[str, Any]) -> Document:
        """Change readers and what is known of a document. Raises APIException and Http404."""
        with transaction.atomic():
            document = self.expected(document_id)
            if not may_change(self.request, document):
                self.demand_staff_scope()
                raise exceptions.PermissionDenied(NOT_YOURS)
            if {"everyone", "users", "groups"} & new.keys():
                change_rights(self.request.user, document, self.audience(new, audience_of(document)))
            if "category" in new:
                Document.objects.filter(pk=document.pk).update(category=category_name(new["category"]))
            documents.change_details(document, details_of(new))
        return self.found(document_id)

    def remove(self, document_id: str) -> None:
        """Delete a document. Raises APIException and Http404."""
        with transaction.atomic():
            document = self.expected(document_id)
            if not may_delete(self.request, document):
                self.demand_staff_scope()
                raise exceptions.PermissionDenied(NOT_YOURS)
            documents.delete_document(document)

    def demand_staff_scope(self) -> None:
        """Raise PermissionDenied for a key of staff without the scope for what they may do as such."""
        user = self.request.user
        if isinstance(user, User) and user.is_staff:
            demand_scope(self.principal, Scope.ADMIN_DOCUMENTS)

    def conditions(self) -> dict[str, list[str]]:
        """The ETags of the headers that make the request a conditional one. Raises ParseError."""
        found = {}
        for name in CONDITIONS:
            if name in self.request.headers:
                # A proxy that compresses what it passes on makes a weak tag of ours.
                found[name] = [tag.removeprefix("W/") for tag in parse_etags(self.request.headers[name])]
                if not found[name]:
                    raise exceptions.ParseError(TAGS % {"header": name})
        return found

    def expected(self, document_id: str) -> Document:
        """The document, locked, if it is as the conditions of the request say. Raises Http404 and Changed."""
        document = self.found(document_id)
        conditions = self.conditions()
        if not conditions:
            return document
        locked = Document.objects.select_for_update(no_key=True).filter(pk=document.pk).first()
        if locked is None:
            raise Http404
        tag = etag_of(locked)
        if not {"*", tag} & set(conditions.get("If-Match", ["*"])):
            raise Changed
        if {"*", tag} & set(conditions.get("If-None-Match", [])):
            raise Changed(EXISTS)
        return document

    @contextlib.contextmanager
    def as_expected(self, document_id: str) -> Iterator[None]:
        """Put a document within this where the request has conditions: undone if it fails. Raises Changed."""
        conditions = self.conditions()
        if not conditions:
            yield
            return
        with transaction.atomic():
            try:
                self.expected(document_id)
            except Http404:
                if "If-Match" in conditions:
                    raise Changed(GONE) from None
            yield

    def audience(self, requested: Mapping[str, Any], current: Audience | None = None) -> Audience:
        """The readers of a wish, by the rule of the portal's form. Raises ValidationError."""
        names, people = requested.get("groups", []), requested.get("users", [])
        # The form's field takes lists and entries like “Ann Smith (ann)”, too.
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
            words = gettext("You are in no group named %(names)s.")
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
        summary="One document, and how far it is read", operation_id="document", parameters=[DOCUMENT_ID]
    )
    def get(self, request: Request, document_id: str) -> Response:
        document = self.found(document_id)
        return Response(self.get_serializer(document).data, headers={"ETag": etag_of(document)})

    @extend_schema(
        summary="Add a file under a name of the caller's own, or replace the one that has it",
        operation_id="put_document",
        parameters=[EXTERNAL_ID, NewDocumentSerializer],
        request={
            "*/*": OpenApiTypes.BINARY,
            "multipart/form-data": UploadedDocumentSerializer,
        },
        responses={
            200: PutDocumentSerializer,
            201: PutDocumentSerializer,
            412: OpenApiResponse(description="The document is not as If-Match or If-None-Match says."),
            422: OpenApiResponse(description="The file or its name is not taken, or exceeds the quota."),
            429: OpenApiResponse(description="Too many files at once. Try again after Retry-After."),
            507: OpenApiResponse(description="The server has no room for the file."),
        },
    )
    def put(self, request: Request, document_id: str) -> Response:
        if not is_external_id(document_id):
            raise ProblemDetails(NAMES, "document_id")
        body: Any = request.data
        if not isinstance(file := body.get("file"), UploadedFile):
            if request.content_type.startswith("multipart/"):
                raise ProblemDetails(NO_FILE, "file")
            raise exceptions.ParseError(EMPTY)
        with file:
            values = request.query_params if isinstance(body, RawBody) else body
            new = validated(NewDocumentSerializer, values)
            # Somebody else may add it at the same time.
            only_adds = self.conditions().get("If-None-Match") == ["*"]
            with self.as_expected(document_id):
                document, outcome = self.put_file(file, new, document_id, may_replace=not only_adds)
        context = {**self.get_serializer_context(), "outcome": outcome}
        answer = PutDocumentSerializer(document, context=context)
        status_code = status.HTTP_201_CREATED if outcome == "added" else status.HTTP_200_OK
        return Response(answer.data, status=status_code, headers={"ETag": etag_of(document)})

    @extend_schema(
        summary="Say who may read a document, and what is known of it",
        operation_id="change_document",
        parameters=[DOCUMENT_ID],
        request=ChangeSerializer,
        responses=DocumentSerializer,
    )
    def patch(self, request: Request, document_id: str) -> Response:
        requested = ChangeSerializer(data=request.data)
        requested.is_valid(raise_exception=True)
        document = self.change(document_id, requested.validated_data)
        return Response(self.get_serializer(document).data, headers={"ETag": etag_of(document)})

    @extend_schema(
        summary="Delete a document with its file and passages",
        operation_id="delete_document",
        parameters=[DOCUMENT_ID],
        responses={204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, document_id: str) -> Response:
        self.remove(document_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SlashedDocumentView(DocumentView):
    """A document whose name has a slash, which there is not: a `PUT` of one is refused in words."""

    schema = None  # not described

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return super().dispatch(request, document_id=kwargs["slashed"])


def is_external_id(name: str) -> bool:
    """Whether a program may give a document this name."""
    return bool(_EXTERNAL_ID.fullmatch(name)) and name not in RESERVED and not _PUBLIC_ID.fullmatch(name)


def etag_of(document: Document) -> str:
    """A tag of what programs can set of a document: it changes with each of these, and with each file sent.

    It stays as it is when the file is read, which may bring other readers.
    """
    state = (
        document.public_id, document.audience_version, document.name, document.folder, document.category,
        document.given_title, document.labels, document.source_url, document.valid_until,
    )  # fmt: skip
    # Keyed: a reader, who knows the rest, could else find how often readers were changed.
    return quote_etag(salted_hmac("ingestion.etag", repr(state), algorithm="sha256").hexdigest()[:32])


def details_of(requested: Mapping[str, Any]) -> Details:
    """Those members of a wish that are a document's details."""
    return cast(Details, {name: requested[name] for name in Details.__annotations__ if name in requested})


def validated(serializer_class: type[serializers.Serializer[Any]], values: Mapping[str, Any]) -> Any:
    """The parameters of an address or a form. Raises ValidationError, also for one that has no meaning."""
    requested = serializer_class(data=values)
    unknown = sorted(values.keys() - requested.fields.keys() - {"file"})
    if unknown:
        raise exceptions.ValidationError({unknown[0]: ["There is no parameter of this name."]})
    requested.is_valid(raise_exception=True)
    return requested.validated_data
