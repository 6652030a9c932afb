"""`/api/whoami`: the caller's account and rights."""

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatsite.accounts.api_keys import Scope, scopes_for
from chatsite.accounts.models import ApiKey, User

from .resource_views import ResourceView


class CallerKeySerializer(serializers.ModelSerializer[ApiKey]):
    """The API key of the request."""

    class Meta:
        model = ApiKey
        fields = ["name", "prefix", "created_at", "addresses", "acts_for_others"]


class CallerSerializer(serializers.Serializer[Any]):
    """The caller, the authentication method, and the rights."""

    username = serializers.CharField(allow_blank=True, help_text="Empty for a guest.")
    name = serializers.CharField(help_text="The name for display.")
    authenticated_by = serializers.ChoiceField(["session", "guest", "api_key", "token"])
    on_behalf_of = serializers.BooleanField(help_text="Whether the key acts for the person that it names.")
    key = CallerKeySerializer(allow_null=True, help_text="null if the caller presents no API key.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices),
        help_text="A session or an ID token has all scopes; only staff have those that begin with “admin:”.",
    )
    groups = serializers.ListField(child=serializers.CharField(), help_text="Names, in order.")
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="When the key or the token expires; null if it does not expire."
    )


class WhoAmIView(ResourceView):
    """Describes the caller; available to keys with any scope."""

    required_scopes = ()
    serializer_class = CallerSerializer
    api_tag = "Account"

    @extend_schema(summary="The caller, the means of authentication, and its scopes", operation_id="whoami")
    def get(self, request: Request) -> Response:
        principal = self.principal
        user = User.objects.get(pk=principal.user_id)
        key = ApiKey.objects.get(pk=principal.credential) if principal.method == "api_key" else None
        expires_at = key.expires_at if key else None
        if principal.method == "token":
            expires_at = datetime.fromtimestamp(int(principal.credential), UTC)
        caller = {
            "username": "" if user.is_guest else user.username,
            "name": user.display_name(),
            "authenticated_by": principal.method,
            "key": key,
            "on_behalf_of": key is not None and key.user_id != user.pk,
            "scopes": [scope for scope in scopes_for(user.is_staff) if principal.has_scope(scope)],
            "groups": list(user.groups.order_by("name").values_list("name", flat=True)),
            "expires_at": expires_at,
        }
        return Response(self.get_serializer(caller).data)
