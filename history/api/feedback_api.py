"""`/api/messages/{id}/feedback`: the caller's rating of an answer."""

from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api.resource_views import ResourceView, id_of
from chatsite.accounts.api_keys import Scope
from chatsite.http.problem_details import ProblemDetails
from chatsite.http.strict_fields import (
    BoundedListField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
)
from history import feedback
from history.invalid import Invalid
from history.models import Feedback, Message
from history.withheld import withheld_labels

MAX_WRONG_SOURCES = 100
MESSAGE_ID = OpenApiParameter(
    "message_id", UUID, OpenApiParameter.PATH, description="The id of a finished answer."
)


class FeedbackSerializer(StrictSerializer):
    """Feedback in requests and responses."""

    rating = StrictChoiceField(Feedback.Rating.choices)
    reasons = BoundedListField(child=StrictChoiceField(Feedback.Reason.choices), default=list, max_length=20)
    wrong_sources = BoundedListField(
        child=StrictCharField(max_length=800), default=list, max_length=MAX_WRONG_SOURCES
    )
    comment = StrictCharField(
        allow_blank=True, default="", max_length=Feedback.MAX_COMMENT_CHARACTERS, trim_whitespace=True
    )
    shared = StrictBooleanField(default=False)
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)


class FeedbackView(ResourceView):
    """Reads, sets and deletes the caller's feedback on an answer."""

    guests_welcome = True
    required_scopes = (Scope.CHAT,)
    serializer_class = FeedbackSerializer
    not_found = (Message.DoesNotExist,)
    api_tag = "Feedback"

    @extend_schema(summary="The caller's feedback on an answer", parameters=[MESSAGE_ID])
    def get(self, request: Request, message_id: str) -> Response:
        answer = self._answer(message_id)
        given = feedback.of(answer)
        if given is None:
            raise Http404
        return Response(self._shown(answer, given))

    @extend_schema(
        summary="Rate an answer; replaces an earlier rating",
        parameters=[MESSAGE_ID],
        responses={200: FeedbackSerializer, 201: FeedbackSerializer},
    )
    def put(self, request: Request, message_id: str) -> Response:
        answer = self._answer(message_id)
        said = self.get_serializer(data=request.data)
        said.is_valid(raise_exception=True)
        try:
            given = feedback.give(self.principal, answer.pk, feedback.Opinion(**said.validated_data))
        except Invalid as problem:
            raise ProblemDetails(problem.message, problem.member) from None
        new = feedback.of(answer) is None
        return Response(
            self._shown(answer, given), status=status.HTTP_201_CREATED if new else status.HTTP_200_OK
        )

    @extend_schema(summary="Take feedback back", parameters=[MESSAGE_ID])
    def delete(self, request: Request, message_id: str) -> Response:
        feedback.take_back(self.principal, self._answer(message_id).pk)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _answer(self, message_id: str) -> Message:
        return feedback.rated(self.principal, id_of(message_id))

    def _shown(self, answer: Message, given: Feedback) -> dict[str, Any]:
        """The feedback for the response.

        Names of sources that the caller may no longer read are removed.
        """
        shown = dict(self.get_serializer(given).data)
        if given.wrong_sources:
            withheld = withheld_labels(self.principal, answer.conversation_id)
            shown["wrong_sources"] = [label for label in given.wrong_sources if label not in withheld]
        return shown
