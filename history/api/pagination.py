"""Pagination: a plain array, with the URL of the next page in the `Link` header."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.http.parameters import whole_number
from history import conversation_lists, message_search, projects
from history.models import Conversation


class ConversationPagination(BasePagination):
    """Pages of conversations, last updated first.

    A signed cursor names the last row of a page, so that pages remain stable while rows are added.
    """

    page_size = 100
    max_page_size = 200

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.request, self.view = request, view
        limit, below = self.limit(), self.below()
        found, self.following = self.page(queryset, limit, below)
        projects.hide_closed(view.principal, found)
        return list(conversation_lists.summaries(found))

    def page(
        self, queryset: Any, limit: int, below: conversation_lists.Place | None
    ) -> tuple[Sequence[Conversation], conversation_lists.Place | None]:
        """Up to `limit` rows, and the place after which the next page begins, if any."""
        return conversation_lists.page(queryset, limit, below)

    def limit(self) -> int:
        limit = whole_number(self.request.query_params.get("limit", str(self.page_size)), self.max_page_size)
        if not limit:
            raise ValidationError(
                {"limit": gettext("must be a whole number from 1 to {most}.").format(most=self.max_page_size)}
            )
        return limit

    def below(self) -> conversation_lists.Place | None:
        """The place that the cursor denotes; None for the first page."""
        cursor = self.request.query_params.get("cursor")
        try:
            return conversation_lists.place_of(cursor) if cursor else None
        except ValueError:
            raise ValidationError({"cursor": gettext("was not issued by this site.")}) from None

    def get_paginated_response(self, data: Any) -> Response:
        response = Response(data)
        if self.following is not None:
            values = self.request.query_params.dict() | {"cursor": conversation_lists.cursor(self.following)}
            response.headers["Link"] = f'<{self.request.path}?{urlencode(values)}>; rel="next"'
        return response

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        bounds = {"type": "integer", "minimum": 1, "maximum": self.max_page_size, "default": self.page_size}
        return [
            {"name": "limit", "in": "query", "required": False, "schema": bounds},
            {
                "name": "cursor",
                "in": "query",
                "required": False,
                "description": "From the `Link` header of the previous page; empty for the first page.",
                "schema": {"type": "string"},
            },
        ]


class ProjectPagination(ConversationPagination):
    """Pages of projects, last used first, each with the count of the caller's conversations in it."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.request, self.view = request, view
        limit, below = self.limit(), self.below()
        found = list((conversation_lists.older(queryset, below) if below else queryset)[: limit + 1])
        page = found[:limit]
        self.following = (
            conversation_lists.Place(page[-1].updated_at, page[-1].pk) if len(found) > limit else None
        )
        return projects.counted(view.principal, page)


class SearchPagination(ConversationPagination):
    """Pages of the conversations that match the view's query."""

    page_size = 20
    max_page_size = 50

    def page(
        self, queryset: Any, limit: int, below: conversation_lists.Place | None
    ) -> tuple[Sequence[Conversation], conversation_lists.Place | None]:
        return message_search.page(self.view.principal, self.view.query, limit, below)
