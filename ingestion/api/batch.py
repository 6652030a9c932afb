"""`POST /api/documents/batch`: adds, changes and deletes documents, with a result for each."""

import base64
import binascii
import logging
from http import HTTPStatus
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api_keys import Scope
from chatsite.http.json_parser import StrictJSONParser
from chatsite.http.problem_details import ProblemDetails, exception_handler, problem
from chatsite.http.strict_fields import BoundedListField, StrictCharField, StrictChoiceField, StrictSerializer
from ingestion.file_names import UploadRefused

from .conditional import CONDITIONS
from .document_serializers import ChangeSerializer, DocumentSerializer
from .document_views import DocumentWriteView, refusal

MAX_ITEMS = 100
MAX_BYTES = 8_000_000  # limit of the whole body, which is held in memory
FAULT = "A fault on the server prevented this change; it was logged."
DATABASE_AWAY = "The database does not answer. Send this item again in a moment."
CONTENT = gettext_lazy("Give the content of the file either as “text” or as “base64”.")
NO_CONDITIONS = gettext_lazy(
    "A batch is about several documents: If-Match and If-None-Match are not supported."
)

logger = logging.getLogger(__name__)


class TooLargeBatch(exceptions.APIException):
    """The request body has more than MAX_BYTES."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_detail = format_lazy(
        gettext_lazy("A batch has at most {most} bytes. Send less at once."), most=f"{MAX_BYTES:,}"
    )


class BatchParser(StrictJSONParser):
    """JSON of at most MAX_BYTES."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return super().parse(_Bounded(stream), media_type, parser_context)


class _Bounded:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self) -> bytes:
        body: bytes = self._stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise TooLargeBatch
        return body


class BatchItemSerializer(ChangeSerializer):
    """An operation on one document.

    `put` has the document's content. A missing folder or missing readers are cleared, and a missing name
    becomes the `id`; other missing members keep their values. `patch` has only the members that change.
    """

    action = StrictChoiceField(["put", "patch", "delete"])
    id = StrictCharField(
        max_length=200,
        help_text="The document's id, or a name that the caller chooses; `put` requires a name.",
    )
    name = StrictCharField(max_length=255, required=False, allow_blank=True, help_text="File name.")
    folder = StrictCharField(max_length=500, required=False, allow_blank=True)
    text = StrictCharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text="The file's content."
    )
    base64 = StrictCharField(required=False, allow_blank=True, help_text="The file's content, in base64.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        allowed = {
            "put": self.fields.keys(),
            "patch": {"action", "id", *ChangeSerializer().fields},
            "delete": {"action", "id"},
        }[attrs["action"]]
        if others := sorted(attrs.keys() - allowed):
            raise serializers.ValidationError(
                {
                    others[0]: [
                        gettext("“{action}” does not accept this member.").format(action=attrs["action"])
                    ]
                }
            )
        if attrs["action"] == "put" and ("text" in attrs) == ("base64" in attrs):
            raise serializers.ValidationError({"text": [CONTENT]})
        return attrs

    def validate_base64(self, value: str) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise serializers.ValidationError(gettext("This is not base64.")) from None


class BatchSerializer(StrictSerializer):
    """A batch whose items are not validated yet: the view validates them one by one."""

    items = BoundedListField(child=serializers.JSONField(allow_null=True), min_length=1, max_length=MAX_ITEMS)


class BatchRequestSerializer(StrictSerializer):
    """The operations, in this order; the failure of one item does not stop the next ones."""

    items = BoundedListField(child=BatchItemSerializer(), min_length=1, max_length=MAX_ITEMS)


class BatchResultSerializer(serializers.Serializer[Any]):
    """The result of one item, like the response to a single request."""

    id = serializers.CharField(allow_blank=True)
    status = serializers.IntegerField(help_text="200, 201, 204, or the status of the refusal.")
    outcome = serializers.ChoiceField(["added", "replaced", "unchanged", "changed", "deleted", "refused"])
    document = DocumentSerializer(allow_null=True)
    problem = serializers.DictField(allow_null=True, help_text="Problem details of a refusal.")


class BatchResponseSerializer(serializers.Serializer[Any]):
    """A result for each item, in the order of the request."""

    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    results = BatchResultSerializer(many=True)


class BatchView(DocumentWriteView):
    """Many documents in one request."""

    required_scopes = (Scope.DOCUMENTS_WRITE,)
    parser_classes = [BatchParser]
    serializer_class = BatchRequestSerializer

    @extend_schema(
        summary="Add, change and delete up to 100 documents",
        operation_id="batch_documents",
        description="Each item is processed independently and has its own result, in the order of the"
        " request. The status is 200 even if items are refused. A body that is not a valid batch is refused,"
        " and none of its items is processed.",
        request=BatchRequestSerializer,
        responses=BatchResponseSerializer,
    )
    def post(self, request: Request) -> Response:
        batch = BatchSerializer(data=request.data)
        batch.is_valid(raise_exception=True)
        if CONDITIONS & {name.title() for name in request.headers}:
            raise exceptions.ParseError(NO_CONDITIONS)
        results = [self._result(item) for item in batch.validated_data["items"]]
        failed = sum(result["outcome"] == "refused" for result in results)
        body = {"succeeded": len(results) - failed, "failed": failed, "results": results}
        return Response(body)

    def _result(self, values: Any) -> dict[str, Any]:
        name = str(values.get("id", "")) if isinstance(values, dict) else ""
        result: dict[str, Any] = {"id": name[:200], "document": None, "problem": None}
        try:
            requested = BatchItemSerializer(data=values)
            requested.is_valid(raise_exception=True)
            self.check_sender()
            return result | self._done(requested.validated_data)
        except UploadRefused as error:  # the sender may no longer change anything
            refused = exception_handler(refusal(error), {})
            assert refused is not None
        except (exceptions.APIException, Http404) as error:
            refused = exception_handler(error, {})
            assert refused is not None
        except (OperationalError, InterfaceError):
            logger.exception("The database did not answer for an item of a batch.")
            refused = problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_AWAY)
        except Exception:
            logger.exception("An item of a batch failed.")
            refused = problem(HTTPStatus.INTERNAL_SERVER_ERROR, FAULT)
        return result | {"status": refused.status_code, "outcome": "refused", "problem": refused.data}

    def _done(self, item: dict[str, Any]) -> dict[str, Any]:
        name = item["id"]
        if item["action"] == "delete":
            self.remove(name)
            return {"status": HTTPStatus.NO_CONTENT, "outcome": "deleted"}
        if item["action"] == "patch":
            return {
                "status": HTTPStatus.OK,
                "outcome": "changed",
                "document": self.shown(self.change(name, item)),
            }
        content = item["base64"] if "base64" in item else item["text"].encode()
        if not content:
            raise ProblemDetails(gettext("The file is empty."), "text" if "text" in item else "base64")
        document, outcome = self.put_file(SimpleUploadedFile("file", content), item, name)
        status = HTTPStatus.CREATED if outcome == "added" else HTTPStatus.OK
        return {"status": status, "outcome": outcome, "document": self.shown(document)}

    def shown(self, document: Any) -> Any:
        return DocumentSerializer(document, context=self.get_serializer_context()).data
