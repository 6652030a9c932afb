"""`GET /v1/models`: the one model that this site is."""

from typing import Any

from django.conf import settings
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from .dialects import OpenAI, models

CREATED = 1_767_225_600  # 1 January 2026; the number says nothing, but clients want one


class ModelsView(APIView):
    """Refusals in the form of OpenAI's API too."""

    guests_welcome = True

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(models(settings.CHAT_MODEL or "quotations", CREATED))

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if isinstance(exc, exceptions.APIException):
            response.data = OpenAI().error(str(exc.detail), status=response.status_code)
        return response
