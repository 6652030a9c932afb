"""OpenAI's API below `/v1`: chat completions, completions and the model list."""

from typing import Any

from django.conf import settings
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chat.llm import configured_model
from chat.protocols import (
    ChatProtocol,
    OpenAI,
    OpenAICompletions,
    model,
    models,
)
from chat.requests import (
    InvalidRequest,
    RunRequest,
)
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.principal import Principal

from .views import RunView

CREATED = 1_767_225_600  # 1 January 2026: an arbitrary date, because clients require a number


def check_abilities(asked: RunRequest, form: OpenAI) -> None:
    """Raise InvalidRequest if the request needs an ability that the site's model lacks.

    `form` provides the names of the members for the error.
    """
    if asked.images and not settings.CHAT_MODEL_READS_IMAGES:
        member = form.images_member
        words = f"“{member}” contains an image, but this site’s model reads text only."
        raise InvalidRequest(words, member)
    if asked.generation.json is not None and not configured_model().writes_json:
        member = form.members["format_refused"]
        raise InvalidRequest(f"“{member}” needs a language model: none is connected to this site.", member)


class ChatCompletionsView(RunView):
    """`POST /v1/chat/completions`."""

    protocol: ChatProtocol = OpenAI()
    spoken: type[OpenAI] = OpenAI

    def choose(self, request: Request) -> tuple[ChatProtocol, bool]:
        protocol = self.spoken.of(request.data)
        protocol.site = request.build_absolute_uri("/").rstrip("/")
        return protocol, protocol.streams(request.data)

    def read(self, principal: Principal, body: Any) -> RunRequest:
        asked = super().read(principal, body)
        check_abilities(asked, self.spoken())
        return asked


class CompletionsView(ChatCompletionsView):
    """`POST /v1/completions`."""

    protocol: ChatProtocol = OpenAICompletions()
    spoken = OpenAICompletions


class ModelsView(APIView):
    """`GET /v1/models`: lists the site itself as the only model."""

    guests_welcome = True
    required_scopes = (Scope.CHAT,)
    schema = None  # described in chatsite/openapi

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(models(_model_name(), CREATED))

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if isinstance(exc, exceptions.APIException):
            response.data = OpenAI().error(str(exc.detail), status=response.status_code)
        return response


class ModelView(ModelsView):
    """`GET /v1/models/{id}`."""

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        if kwargs["model"] != _model_name():
            words = "There is no such model. This site always answers with its own model."
            return Response(OpenAI().error(words, "model_not_found", status=404, member="model"), status=404)
        return Response(model(_model_name(), CREATED))


def _model_name() -> str:
    return settings.CHAT_MODEL or "quotations"
