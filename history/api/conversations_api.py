"""`/chat-history`: the caller's own conversations, in the Chat UI's protocol."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils.decorators import method_decorator
from django.utils.formats import number_format
from django.utils.text import slugify
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.cache import cache_control
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, inline_serializer
from rest_framework import exceptions, generics, serializers, status, views
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api.resource_views import JSONNegotiation
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.principal import Principal
from chatsite.http import error_pages
from chatsite.http.json_parser import StrictJSONParser
from chatsite.http.outgoing.retry_after import SECONDS
from history import conversation_export, conversation_lists, merging, message_search, projects, recording
from history.long_exports import Overloaded, SameRights, one_at_a_time
from history.models import Conversation, Project
from history.serializers.request_serializers import (
    NO_PROJECT,
    ConversationChangeSerializer,
    ExportQuerySerializer,
    ListQuerySerializer,
    ModeSerializer,
    NewConversationSerializer,
    SavedMessagesSerializer,
)
from history.serializers.response_serializers import (
    ConversationRowSerializer,
    FoundConversationSerializer,
    NewConversationRowSerializer,
    StoredMessageSerializer,
)

from .pagination import ConversationPagination, SearchPagination

NOT_FOUND = gettext_lazy("There is no such conversation.")
# Codes of errors by status; all other statuses have the code `invalid_request`.
CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    503: "busy",
}
CONVERSATION_ID = OpenApiParameter("conversation_id", UUID, OpenApiParameter.PATH)
LINK = OpenApiParameter(
    "Link", str, OpenApiParameter.HEADER, response=[200], description="The address of the next page."
)
WORDS = OpenApiParameter(
    "q",
    {"type": "string", "minLength": 1, "pattern": r"[^\s\x00-\x1f\x85]"},
    required=True,
    description="The words to search for.",
)
LOCATION = OpenApiParameter("Location", str, OpenApiParameter.HEADER, response=[201])


class Busy(exceptions.APIException):
    """Another long export is being rendered, or a right was withdrawn during this request."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = gettext_lazy(error_pages.WORDS[status_code])
    wait = SECONDS[status_code]  # sent as Retry-After


@method_decorator(cache_control(private=True, no_store=True), name="dispatch")
class HistoryView(generics.GenericAPIView[Any]):
    """Base of these views: the caller's own conversations, and errors in the protocol's form."""

    guests_welcome = True
    required_scopes = (Scope.CHAT,)
    parser_classes = [StrictJSONParser]
    content_negotiation_class = JSONNegotiation
    serializer_class: Any = ConversationRowSerializer
    lookup_url_kwarg = "conversation_id"
    api_tag, api_error = "History", "ChatUiError"  # for the API description

    @property
    def principal(self) -> Principal:
        return cast(Principal, self.request.auth)

    def get_queryset(self) -> QuerySet[Conversation]:
        return Conversation.objects.owned_by(self.principal)

    def get_exception_handler(self) -> Any:
        return handle_exception

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]
        return Response(status=status.HTTP_204_NO_CONTENT, headers={"Allow": ", ".join(self.allowed_methods)})

    def row(self, conversation: Conversation | None = None) -> Response:
        """A conversation (by default that of the URL) in the form of a list row."""
        conversation = conversation or self.get_object()
        projects.hide_closed(self.principal, [conversation])
        return Response(self.get_serializer(conversation_lists.summaries([conversation])[0]).data)


class ConversationsView(HistoryView, generics.ListCreateAPIView[Any]):
    """Lists and creates conversations."""

    api_links: ClassVar = {
        "POST": {
            name: {
                "operationRef": f"#/paths/~1api~1{path}/post",
                "requestBody": {
                    "messages": [{"role": "user", "content": "How many days of leave may I carry over?"}],
                    "conversationId": "$response.body#/id",
                },
            }
            for name, path in (("ask", "chat"), ("askAgents", "multi-agent-chat"))
        }
    }

    pagination_class = ConversationPagination

    def get_queryset(self) -> QuerySet[Conversation]:
        query = validated(ListQuerySerializer, self.request.query_params.dict())
        own = Conversation.objects.owned_by(self.principal)
        rows = own.exclude(archived_at=None) if query["archived"] == "true" else own.current()
        if "project_id" in query:
            open_to = Project.objects.open_to(self.principal).filter(pk=query["project_id"])
            rows = rows.filter(project__in=list(open_to))
        return rows.filter(mode=query["mode"]) if query.get("mode") else rows

    @extend_schema(summary="The caller's conversations, newest first", parameters=[ListQuerySerializer, LINK])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.list(request)

    @extend_schema(
        summary="Begin a conversation",
        parameters=[LOCATION],
        request=NewConversationSerializer,
        responses={201: NewConversationRowSerializer},
    )
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        new = validated(NewConversationSerializer, request.data)
        with transaction.atomic():
            with open_project():
                conversation = recording.open_conversation(
                    self.principal, new["mode"], project_id=new["project_id"]
                )
            if new["title"]:
                recording.rename(self.principal, conversation.pk, new["title"])
                conversation.title = new["title"]
        body = NewConversationRowSerializer(conversation).data
        where = {"Location": f"/chat-history/{conversation.pk}"}
        return Response(body, status=status.HTTP_201_CREATED, headers=where)


class SearchView(HistoryView):
    """Searches conversations for the words of `q`."""

    pagination_class = SearchPagination

    @extend_schema(
        operation_id="chat_history_search",
        summary="The caller's conversations with these words",
        parameters=[WORDS, LINK],
        responses=FoundConversationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        self.query = message_search.cleaned(request.query_params.get("q", ""))
        if not self.query:
            raise serializers.ValidationError({"q": gettext("must contain the words to search for.")})
        page: Any = self.paginate_queryset(self.get_queryset())
        hits = message_search.hits(self.principal, [row.conversation.pk for row in page], self.query)
        rows = FoundConversationSerializer(page, many=True, context={"hits": hits})
        return self.get_paginated_response(rows.data)


class SavingView(HistoryView):
    """The base of the two views that save a conversation's messages with a PUT."""

    @extend_schema(
        summary="Save messages: those with a known id are replaced, the others are appended",
        parameters=[CONVERSATION_ID],
        request=SavedMessagesSerializer,
        responses=ConversationRowSerializer,
    )
    def put(self, request: Request, conversation_id: str) -> Response:
        conversation = self.get_object()
        messages = validated(SavedMessagesSerializer, request.data)["messages"]
        merging.merge(self.principal, conversation.pk, messages)
        return self.row()


class ConversationView(SavingView):
    """Reads, changes, saves and deletes a conversation."""

    api_bodies = ("PATCH",)  # PATCH needs a body with at least one of several members

    api_links: ClassVar = {
        "DELETE": {
            "restore": {
                "operationId": "chat_history_restore_create",
                "parameters": {"conversation_id": "$request.path.conversation_id"},
            }
        }
    }

    @extend_schema(summary="One conversation, as in the list of conversations", parameters=[CONVERSATION_ID])
    def get(self, request: Request, conversation_id: str) -> Response:
        return self.row()

    @extend_schema(
        summary="Rename, pin or archive a conversation, move it to a project, or undo any of these",
        parameters=[CONVERSATION_ID],
        request=ConversationChangeSerializer,
        responses=ConversationRowSerializer,
    )
    def patch(self, request: Request, conversation_id: str) -> Response:
        conversation = self.get_object()
        change = validated(ConversationChangeSerializer, request.data)
        with transaction.atomic():
            if "project_id" in change:
                with open_project():
                    recording.move(self.principal, conversation.pk, change["project_id"])
            if "title" in change:
                recording.rename(self.principal, conversation.pk, change["title"])
            if "pinned" in change:
                recording.pin(self.principal, conversation.pk, pinned=change["pinned"])
            if "archived" in change:
                recording.archive(self.principal, conversation.pk, archived=change["archived"])
        return self.row()

    @extend_schema(
        summary="Delete a conversation; it can be restored for a while",
        parameters=[CONVERSATION_ID, ModeSerializer],
        responses={200: inline_serializer("Deleted", {"success": serializers.BooleanField()})},
    )
    def delete(self, request: Request, conversation_id: str) -> Response:
        validated(ModeSerializer, request.query_params.dict())
        recording.delete(self.principal, self.get_object().pk)
        return Response({"success": True})


class MessagesView(SavingView):
    """The messages of a conversation, in order."""

    # `#/1/` is the second message of the response, which is the first answer.
    api_links: ClassVar = {
        "GET": {
            name: {"operationId": operation, "parameters": {"message_id": "$response.body#/1/messageId"}}
            for name, operation in (
                ("feedback", "api_messages_feedback_retrieve"),
                ("rate", "api_messages_feedback_update"),
                ("withdraw", "api_messages_feedback_destroy"),
            )
        }
    }

    @extend_schema(
        summary="The messages, in order",
        parameters=[CONVERSATION_ID],
        responses=StoredMessageSerializer(many=True),
    )
    def get(self, request: Request, conversation_id: str) -> Response:
        conversation = self.get_object()
        with_rights = SameRights(self.principal, conversation.pk)
        messages, sources = conversation_lists.messages_shown(self.principal, conversation)
        rows = StoredMessageSerializer(cast(Any, messages), many=True, context={"sources": sources}).data
        if not with_rights.hold():
            raise Busy
        return Response(rows)


class RestoreView(HistoryView):
    """Undoes a deletion while that is possible."""

    def get_queryset(self) -> QuerySet[Conversation]:
        return Conversation.objects.deleted_by(self.principal)

    @extend_schema(summary="Undo a deletion", parameters=[CONVERSATION_ID], request=None)
    def post(self, request: Request, conversation_id: str) -> Response:
        conversation = self.get_object()
        recording.restore(self.principal, conversation.pk)
        return self.row(conversation)


class ExportView(HistoryView):
    """One conversation as a file."""

    @extend_schema(
        summary="One conversation as a file",
        parameters=[CONVERSATION_ID, ExportQuerySerializer],
        responses={
            (200, "text/markdown"): OpenApiResponse(OpenApiTypes.STR, description="The file."),
            (200, "application/json"): OpenApiTypes.OBJECT,
        },
    )
    def get(self, request: Request, conversation_id: str) -> HttpResponseBase:
        conversation = self.get_object()
        kind = validated(ExportQuerySerializer, request.query_params.dict())["format"]
        name = slugify(conversation.title)[:80] or "conversation"
        with_rights = SameRights(self.principal, conversation.pk)
        response: HttpResponseBase
        with one_at_a_time(conversation.messages.all()):
            if kind == "json":
                body = conversation_export.as_json(self.principal, conversation)
                response = Response(body, headers=attached(f"{name}.json"))
            else:
                text = conversation_export.as_markdown(self.principal, conversation)
                response = HttpResponse(
                    text, content_type="text/markdown; charset=utf-8", headers=attached(f"{name}.md")
                )
        if not with_rights.hold():
            raise Busy
        return response


def validated(serializer_class: type[serializers.Serializer[Any]], data: Any) -> Any:
    """The validated data. Raises ValidationError."""
    # is_valid() would replace the message for the body `null`.
    return serializer_class().run_validation(data)


@contextmanager
def open_project() -> Iterator[None]:
    """Within the block, a project that is not open to the caller becomes a ValidationError."""
    try:
        yield
    except Project.DoesNotExist:
        raise serializers.ValidationError({"project_id": NO_PROJECT}) from None


def attached(name: str) -> dict[str, str]:
    return {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }


def handle_exception(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Like DRF's handler, with the protocol's body: `{"error": {"message", "code"}}`."""
    match exc:
        case merging.TooMany():
            words = gettext("A conversation can have at most {most} messages.").format(
                most=number_format(merging.MAX_MESSAGES, force_grouping=True)
            )
            return _error(400, words, "too_many_messages")
        case merging.TooLarge():
            words = gettext("A conversation can have at most {most} MB. Start another one.").format(
                most=merging.MAX_BYTES // 1_000_000
            )
            return _error(413, words, "too_large")
        case Conversation.DoesNotExist():
            exc = Http404()
        case Overloaded():
            exc = Busy()
    response = views.exception_handler(exc, context)
    if response is not None:
        code = CODES.get(response.status_code, "invalid_request")
        if isinstance(exc, exceptions.ValidationError):
            words = first_error(exc.detail)
        else:
            words = str(NOT_FOUND) if isinstance(exc, Http404) else str(cast(Any, exc).detail)
        response.data = {"error": {"message": words, "code": code}}
    return response


def _error(code: int, message: str, name: str) -> Response:
    return Response({"error": {"message": message, "code": name}}, status=code)


def first_error(detail: Any, path: str = "") -> str:
    """The first message of a ValidationError, with its path: “messages[3].role” must be …"""
    if isinstance(detail, dict):
        key, inner = next((key, inner) for key, inner in detail.items() if inner)
        if key == "non_field_errors":
            return first_error(inner, path)
        return first_error(inner, f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip("."))
    if isinstance(detail, list) and not isinstance(detail[0], str):
        number = next(number for number, inner in enumerate(detail) if inner)
        return first_error(detail[number], f"{path}[{number}]")
    words = detail[0] if isinstance(detail, list) else detail
    return f"“{path}” {words}" if path else gettext("The body {words}").format(words=words)
