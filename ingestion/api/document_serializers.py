"""Serializers for `/api/documents`: queries, documents, and their changes."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from chatsite.http.strict_fields import (
    BoundedListField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    WordBooleanField,
)
from ingestion import details
from ingestion.models import Document
from ingestion.parsing.formats import CONTAINERS
from ingestion.portal import library
from ingestion.portal.descriptions import PartsState, parts_of
from ingestion.portal.document_actions import may_change
from ingestion.reasons import in_words
from ingestion.search.labels import content_address

DEFAULT_LIMIT, MAX_LIMIT = 50, 200


class DocumentListQuerySerializer(serializers.Serializer[Any]):
    """Query parameters that select the documents of the list."""

    limit = serializers.IntegerField(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    cursor = serializers.RegexField(
        library.CURSOR,
        required=False,
        allow_blank=True,
        help_text="The cursor in the URL of the next page, from the `Link` header.",
    )
    q = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=library.QUERY_LENGTH,
        help_text="Words of the name, title or folder.",
    )
    folder = serializers.CharField(
        required=False,
        max_length=500,
        allow_blank=True,
        help_text="Documents in this folder, without those in its subfolders.",
    )
    category = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=100,
        help_text="The category; empty for any. The same applies to `status`.",
    )
    status = StrictChoiceField(Document.Status.choices, required=False, allow_blank=True)
    label = serializers.CharField(required=False, allow_blank=True, max_length=details.LABEL_CHARACTERS)  # type: ignore[assignment]
    owner = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=150,
        help_text="The user name of the person who added the document.",
    )
    valid = StrictChoiceField(
        ["true", "false"],
        required=False,
        allow_blank=True,
        help_text="Whether search still finds the document, because its last day is not past.",
    )
    part_of = serializers.UUIDField(
        required=False, help_text="Only the files in the archive or message with this id."
    )
    own = WordBooleanField(default=False, help_text="Only what the caller added.")


class ProgressSerializer(serializers.Serializer[Document]):
    """Progress in pages that were read or passages that were embedded; 0 of 0 while unknown."""

    done = serializers.IntegerField(source="progress_done")
    total = serializers.IntegerField(source="progress_total")


class PartsSerializer(serializers.Serializer[Any]):
    """Counts of the files in an archive or a message; `?part_of=` lists these files."""

    total = serializers.IntegerField()
    ready = serializers.IntegerField()
    failed = serializers.IntegerField()


class LeftOutSerializer(serializers.Serializer[Any]):
    """A file in an archive or a message that did not become a document."""

    path = serializers.CharField()
    reason = serializers.CharField()


class ReadersSerializer(serializers.Serializer[Any]):
    """Who may read a document besides its owner."""

    everyone = serializers.BooleanField(help_text="Everyone who signs in.")
    guests = serializers.BooleanField(help_text="Also people without an account.")
    users = serializers.ListField(child=serializers.CharField())
    groups = serializers.ListField(child=serializers.CharField())


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """A document as its readers see it."""

    id = serializers.UUIDField(source="public_id")
    reason = serializers.SerializerMethodField(
        help_text="Why it failed or is waiting, as a sentence for people."
    )
    progress = ProgressSerializer(source="*")
    source_url = serializers.CharField(
        allow_blank=True, help_text="The URL of its source; empty if there is none."
    )
    expired = serializers.BooleanField(
        source="is_expired", help_text="Whether its last day is past: search no longer finds it."
    )
    external_id = serializers.SerializerMethodField(
        help_text="The id that the caller's programs gave it; empty if there is none."
    )
    own = serializers.SerializerMethodField(help_text="Whether the caller added it.")
    readers = serializers.SerializerMethodField(help_text="null for callers who may not change them.")
    url = serializers.SerializerMethodField(help_text="The file.")
    part_of = serializers.UUIDField(
        source="part_of.public_id",
        default=None,
        allow_null=True,
        help_text="The archive or message that it is in, which has the same readers; otherwise null.",
    )
    parts = serializers.SerializerMethodField(
        help_text="The parts of an archive or a message; null for other documents."
    )
    left_out = serializers.SerializerMethodField(help_text="Files in it that did not become documents.")

    class Meta:
        model = Document
        fields = [
            "id", "external_id", "name", "title", "folder", "category", "labels", "source_url", "valid_until",
            "expired", "language", "media_type", "size", "sha256", "version", "page_count", "passage_count",
            "status", "reason", "progress", "own", "readers", "created_at", "changed_at", "url",
            "part_of", "part_path", "parts", "left_out",
        ]  # fmt: skip

    def get_external_id(self, document: Document) -> str:
        caller = self.context["request"].auth.user_id
        mine = (each.external_id for each in document.external_ids.all() if each.owner_id == caller)
        return next(mine, "")

    def get_reason(self, document: Document) -> str:
        return in_words(document.reason)

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

    @extend_schema_field(PartsSerializer(allow_null=True))
    def get_parts(self, document: Document) -> dict[str, int] | None:
        if document.media_type not in CONTAINERS:
            return None
        known = self.context.get("parts")
        counted = (parts_of([document]) if known is None else known).get(document.pk, PartsState())
        return {"total": counted.total, "ready": counted.ready, "failed": counted.failed}

    @extend_schema_field(LeftOutSerializer(many=True))
    def get_left_out(self, document: Document) -> list[dict[str, str]]:
        return [{"path": path, "reason": in_words(reason)} for path, reason in document.left_out]

    def get_url(self, document: Document) -> str:
        address = content_address(document.public_id, document.name)
        return str(self.context["request"].build_absolute_uri(address))


class RightsSerializer(serializers.Serializer[Any]):
    """Who may read a document; subclasses add `everyone`.

    If that is false and nobody is named, only the document's owner may.
    """

    users = BoundedListField(child=StrictCharField(max_length=150), required=False, max_length=200)
    groups = BoundedListField(
        child=StrictCharField(max_length=150),
        required=False,
        max_length=200,
        help_text="Names of groups that the caller is in; staff with `admin:documents` may name any group.",
    )


@extend_schema_field(
    {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "maxLength": 0}, {"type": "null"}]}
)
class DayField(serializers.DateField):
    """A day as YYYY-MM-DD; an empty text means no day."""

    def __init__(self, **options: Any) -> None:
        super().__init__(input_formats=["%Y-%m-%d"], **options)

    def run_validation(self, data: Any = empty) -> Any:
        return None if data == "" else super().run_validation(data)


@extend_schema_field({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "maxLength": 0}]})
class FormDayField(DayField):
    """A day in a form or a query string, which cannot contain null."""

    allow_blank = True  # otherwise DRF treats an empty value as missing


@extend_schema_field(
    {"type": "string", "maxLength": details.ADDRESS_CHARACTERS, "pattern": "^([hH][tT][tT][pP][sS]?://.+)?$"}
)
class WebAddressField(StrictCharField):
    """An http or https URL; may be empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_length=details.ADDRESS_CHARACTERS,
            allow_blank=True,
            validators=[details.is_web_address],
            **options,
        )


class DetailsSerializer(RightsSerializer):
    """Readers and details. A missing detail keeps its value; an empty one clears it."""

    title = StrictCharField(
        max_length=details.TITLE_CHARACTERS,
        allow_blank=True,
        required=False,
        help_text="Replaces the title in the file.",
    )
    labels = BoundedListField(
        child=StrictCharField(max_length=details.LABEL_CHARACTERS, allow_blank=True),
        max_length=details.MAX_LABELS,
        required=False,
    )
    source_url = WebAddressField(required=False, help_text="The document's source: an http or https URL.")
    valid_until = DayField(
        allow_null=True, required=False, help_text="After this day it is neither found nor cited."
    )


class ChangeSerializer(StrictSerializer, DetailsSerializer):
    """A change of a document. If any member about readers is given, the others are cleared."""

    everyone = StrictBooleanField(required=False, help_text="Everyone who signs in.")
    category = StrictCharField(max_length=100, allow_blank=True, required=False)


class NewDocumentSerializer(DetailsSerializer):
    """Details of an uploaded file. Readers who are not named lose access."""

    refuses_unknown = True  # read by the API description
    valid_until = FormDayField(required=False, help_text="After this day it is neither found nor cited.")
    everyone = WordBooleanField(required=False, help_text="Everyone who signs in.")
    name = serializers.CharField(
        max_length=255,
        required=False,
        allow_blank=True,
        help_text="The file name, whose ending determines how it is read; if empty, the name in the URL.",
    )
    folder = serializers.CharField(max_length=500, allow_blank=True, required=False)
    category = serializers.CharField(
        max_length=100,
        allow_blank=True,
        required=False,
        help_text="The category; if empty, it is not changed.",
    )


class UploadedDocumentSerializer(NewDocumentSerializer):
    """The fields of an upload form."""

    file = serializers.FileField()


class PutDocumentSerializer(DocumentSerializer):
    """A document after a PUT request, with the outcome of the request."""

    outcome = serializers.SerializerMethodField()

    class Meta(DocumentSerializer.Meta):
        fields = [*DocumentSerializer.Meta.fields, "outcome"]

    @extend_schema_field(serializers.ChoiceField(["added", "replaced", "unchanged"]))
    def get_outcome(self, document: Document) -> str:
        return str(self.context["outcome"])
