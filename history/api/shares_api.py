"""`/api/shares`: create, list and revoke links to the caller's conversations and answers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api.resource_views import ResourceView, id_of
from chatsite.accounts.api_keys import Scope
from chatsite.http.problem_details import ProblemDetails
from chatsite.http.strict_fields import StrictBooleanField
from history import sharing
from history.invalid import Invalid
from history.models import Conversation, Message, Share
from history.serializers.named_readers import NamedReadersSerializer, audience_of_names

MAX_LISTED = 1_000  # older shares are not listed
SHARE_ID = OpenApiParameter("share_id", UUID, OpenApiParameter.PATH, description="The id of a share.")


class NewShareSerializer(NamedReadersSerializer):
    """What is shared, with whom, and until when."""

    conversation_id = serializers.UUIDField()
    answer_id = serializers.UUIDField(
        required=False, allow_null=True, default=None, help_text="Share only this answer."
    )
    everyone = StrictBooleanField(default=False, help_text="Share with everyone who signs in.")
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="The expiry; in 30 days if absent, never if null."
    )


class ShareSerializer(serializers.Serializer[Share]):
    """A share as its owner sees it; its URL is not stored."""

    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    answer_id = serializers.UUIDField(allow_null=True)
    everyone = serializers.BooleanField(source="for_everyone")
    groups = serializers.SerializerMethodField()
    people = serializers.SerializerMethodField()
    state = serializers.ChoiceField(["open", "expired", "revoked"])
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)

    def get_groups(self, share: Any) -> list[str]:
        return sorted(share.group_names)

    def get_people(self, share: Any) -> list[str]:
        return sorted(share.user_names)


class CreatedShareSerializer(ShareSerializer):
    """A share with its URL, which only this response contains."""

    url = serializers.URLField(help_text="Shown only once: only a hash of its token is stored.")


class _View(ResourceView):
    required_scopes = (Scope.CHAT,)
    serializer_class: Any = ShareSerializer
    not_found = (Conversation.DoesNotExist, Message.DoesNotExist, Share.DoesNotExist)
    api_tag = "Shares"


class SharesView(_View):
    """Lists and creates the caller's shares."""

    @extend_schema(summary="The caller's shares, newest first", responses=ShareSerializer(many=True))
    def get(self, request: Request) -> Response:
        mine = Share.objects.owned_by(self.principal).filter(conversation__deleted_at=None)
        rows = cast(Any, list(sharing.with_readers(mine)[:MAX_LISTED]))
        return Response(ShareSerializer(rows, many=True).data)

    @extend_schema(
        summary="Share a conversation as it is now, or one answer",
        request=NewShareSerializer,
        responses={
            201: CreatedShareSerializer,
            404: OpenApiResponse(description="The caller owns no such conversation or answer."),
        },
    )
    def post(self, request: Request) -> Response:
        asked = NewShareSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        readers = audience_of_names(self.principal, values["groups"], values["people"])
        in_thirty_days = timezone.now() + timedelta(days=sharing.DEFAULT_DAYS)
        try:
            share, token = sharing.create(
                self.principal,
                values["conversation_id"],
                replace(readers, everyone=values["everyone"]),
                answer_id=values["answer_id"],
                expires_at=values.get("expires_at", in_thirty_days),
            )
        except Invalid as problem:
            raise ProblemDetails(problem.message, problem.member) from None
        made = sharing.with_readers(Share.objects.filter(pk=share.pk)).get()
        made.url = request.build_absolute_uri(reverse("chat:shared", args=[token]))  # type: ignore[attr-defined]
        return Response(CreatedShareSerializer(made).data, status=status.HTTP_201_CREATED)


class ShareView(_View):
    """Revokes one of the caller's shares."""

    @extend_schema(summary="Revoke a share", parameters=[SHARE_ID], responses={204: None})
    def delete(self, request: Request, share_id: str) -> Response:
        sharing.revoke(self.principal, id_of(share_id))
        return Response(status=status.HTTP_204_NO_CONTENT)
