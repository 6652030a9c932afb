"""`/chat-history`: a person's own conversations, as the Chat UI's protocol describes it."""

from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.utils.text import slugify
from rest_framework import exceptions, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatsite.accounts.principal import Principal
from chatsite.http.json_parser import StrictJSONParser

from . import (
    exporting,
    listing,
    merging,
    recording,
    search,
    serializers,
)
from .models import Conversation, ConversationQuerySet
from .serializers import Invalid

PER_PAGE, MAX_PER_PAGE = 100, 200
FOUND_PER_PAGE, MAX_FOUND_PER_PAGE = 20, 50
NOT_FOUND = "There is no such conversation."
# By status, the same words as at /api/….
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
FORMATS = ("markdown", "json")


class HistoryView(APIView):
    """Base of these views: authentication, JSON whatever `Accept` says, errors in the protocol's form."""

    guests_welcome = True
    parser_classes = [StrictJSONParser]

    @property
    def principal(self) -> Principal:
        return cast(Principal, self.request.auth)

    def one(self, rows: ConversationQuerySet | None = None) -> Conversation:
        """The conversation of the URL. Raises Http404 for any id that is not the caller's."""
        try:
            identifier = UUID(self.kwargs["conversation_id"])
        except ValueError:
            raise Http404 from None
        mine = Conversation.objects.owned_by(self.principal) if rows is None else rows
        found = mine.filter(pk=identifier).first()
        if found is None:
            raise Http404
        return found

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]
        return Response(status=status.HTTP_204_NO_CONTENT, headers={"Allow": ", ".join(self.allowed_methods)})

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return self.renderer_classes[0](), "application/json"

    def handle_exception(self, exc: Exception) -> Response:
        answer = _refusal(exc)
        if answer is None:
            return super().handle_exception(exc)
        if answer.status_code == status.HTTP_401_UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer

    def finalize_response(  # type: ignore[override]
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        response.headers["Cache-Control"] = "private, no-store"
        return super().finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]


class ConversationsView(HistoryView):
    """Lists and creates conversations."""

    def get(self, request: Request) -> Response:
        limit, below = _paging(request, PER_PAGE, MAX_PER_PAGE)
        rows = Conversation.objects.owned_by(self.principal)
        mode = serializers.mode_of(request.query_params.get("mode"), "mode")
        found, following = listing.page(rows.filter(mode=mode) if mode else rows, limit, below)
        body = [serializers.summary(row) for row in listing.summaries(found)]
        return _linked(request, Response(body), following)

    def post(self, request: Request) -> Response:
        mode, title = serializers.new_conversation(request.data)
        conversation = recording.open_conversation(self.principal, mode)
        if title:
            recording.rename(self.principal, conversation.pk, title)
            conversation.title = title
        where = {"Location": f"/chat-history/{conversation.pk}"}
        return Response(serializers.created(conversation), status=status.HTTP_201_CREATED, headers=where)


class SearchView(HistoryView):
    """Searches conversations for the words of `q`."""

    def get(self, request: Request) -> Response:
        limit, below = _paging(request, FOUND_PER_PAGE, MAX_FOUND_PER_PAGE)
        query = search.cleaned(request.query_params.get("q", ""))
        if not query:
            raise Invalid("“q” must have the words to look for.")
        found, following = search.page(self.principal, query, limit, below)
        hits = search.hits(self.principal, [row.pk for row in found], query)
        body = [serializers.found(row, hits.get(row.conversation.pk, ())) for row in listing.summaries(found)]
        return _linked(request, Response(body), following)


class SavingView(HistoryView):
    """Saves a conversation, at either of its URLs."""

    def put(self, request: Request, conversation_id: str) -> Response:
        conversation = self.one()
        merging.merge(self.principal, conversation.pk, serializers.messages(request.data))
        return Response(_summary(self.one()))


class ConversationView(SavingView):
    """One conversation."""

    def get(self, request: Request, conversation_id: str) -> Response:
        return Response(_summary(self.one()))

    def patch(self, request: Request, conversation_id: str) -> Response:
        conversation = self.one()
        recording.rename(self.principal, conversation.pk, serializers.new_title(request.data))
        return Response(_summary(self.one()))

    def delete(self, request: Request, conversation_id: str) -> Response:
        serializers.mode_of(request.query_params.get("mode"), "mode")
        recording.delete(self.principal, self.one().pk)
        return Response({"success": True})


class MessagesView(SavingView):
    """What was said, in order."""

    def get(self, request: Request, conversation_id: str) -> Response:
        messages, sources = listing.said(self.principal, self.one())
        return Response([serializers.message(row, sources.get(row.pk, ())) for row in messages])


class RestoreView(HistoryView):
    """Takes a deletion back, while that is possible."""

    def post(self, request: Request, conversation_id: str) -> Response:
        recording.restore(self.principal, self.one(Conversation.objects.deleted_by(self.principal)).pk)
        return Response(_summary(self.one()))


class ExportView(HistoryView):
    """One conversation as a file."""

    def get(self, request: Request, conversation_id: str) -> HttpResponseBase:
        conversation = self.one()
        kind = request.query_params.get("format", FORMATS[0])
        if kind not in FORMATS:
            raise Invalid("“format” must be “markdown” or “json”.")
        name = slugify(conversation.title)[:80] or "conversation"
        if kind == "json":
            body = exporting.as_json(self.principal, conversation)
            return Response(body, headers=_attached(f"{name}.json"))
        text = exporting.as_markdown(self.principal, conversation)
        return HttpResponse(
            text, content_type="text/markdown; charset=utf-8", headers=_attached(f"{name}.md")
        )


def _summary(conversation: Conversation) -> serializers.Json:
    return serializers.summary(listing.summaries([conversation])[0])


def _paging(request: Request, usual: int, most: int) -> tuple[int, listing.Place | None]:
    limit = request.query_params.get("limit", str(usual))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and 1 <= int(limit) <= most):
        raise Invalid(f"“limit” must be a whole number from 1 to {most}.")
    cursor = request.query_params.get("cursor")
    if not cursor:
        return int(limit), None
    try:
        return int(limit), listing.place_of(cursor)
    except ValueError:
        raise Invalid("“cursor” is not one that this site gave out.") from None


def _linked(request: Request, response: Response, following: listing.Place | None) -> Response:
    """Add the Link header of the next page, if there is one."""
    if following is not None:
        values = request.query_params.dict() | {"cursor": listing.cursor(following)}
        response.headers["Link"] = f'<{request.path}?{urlencode(values)}>; rel="next"'
    return response


def _attached(name: str) -> dict[str, str]:
    return {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }


def _refusal(exc: Exception) -> Response | None:
    """The response for a refusal; None for an unexpected error."""
    match exc:
        case Http404() | Conversation.DoesNotExist():
            return Response(serializers.error(NOT_FOUND, "not_found"), status=404)
        case Invalid():
            return Response(serializers.error(str(exc), "invalid_request"), status=400)
        case merging.TooMany():
            words = f"A conversation keeps at most {merging.MAX_MESSAGES:,} messages."
            return Response(serializers.error(words, "too_many_messages"), status=400)
        case merging.TooLarge():
            words = f"A conversation keeps at most {merging.MAX_BYTES // 1_000_000} MB. Start another one."
            return Response(serializers.error(words, "too_large"), status=413)
        case exceptions.APIException():
            code = CODES.get(exc.status_code, "invalid_request")
            return Response(serializers.error(str(exc.detail), code), status=exc.status_code)
    return None
