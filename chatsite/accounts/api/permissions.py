"""The default permissions: a known caller, and the scopes of API keys. Checked before a view runs."""

from collections.abc import Collection, Mapping
from typing import Any

from django.utils.translation import gettext
from rest_framework import exceptions
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from chatsite.accounts.api_keys import Scope
from chatsite.accounts.principal import Principal


class IsKnown(BasePermission):
    """Refuses callers without a key, a token or a session, and says how to send a key."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            words = gettext("Send an API key in the header “{header}”, or sign in.")
            raise exceptions.NotAuthenticated(words.format(header="Authorization: Bearer chs_…"))
        return True


class HasScopes(BasePermission):
    """Allows keys with all scopes of the view's `required_scopes`.

    Sessions, ID tokens and access tokens have every scope. `required_scopes` is a tuple, such as
    `(Scope.SEARCH,)`, or a mapping by method, such as
    `{"GET": (Scope.DOCUMENTS_READ,), "PUT": (Scope.DOCUMENTS_WRITE,)}`; `()` allows every key. A view without
    this attribute, or a method that the mapping lacks, accepts no keys. A view whose scope depends on the
    body sets `()` and calls `demand_scope(principal, scope)` after reading the body.

    It is one of the default permissions, checked before the view's method runs: a key without the scope gets
    403, whether or not the requested object exists.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, Principal) or request.auth.scopes is None:
            return True
        required: Collection[str] | Mapping[str, Collection[str]] | None
        required = getattr(view, "required_scopes", None)
        if isinstance(required, Mapping):
            required = required.get("GET" if request.method == "HEAD" else str(request.method))
        if required is None:
            raise exceptions.PermissionDenied(gettext("API keys cannot be used here."))
        for scope in required:
            demand_scope(request.auth, scope)
        return True


def demand_scope(principal: Principal, scope: str) -> None:
    """Raise PermissionDenied for a key without the scope."""
    if not principal.has_scope(scope):
        raise exceptions.PermissionDenied(
            gettext("This API key does not have the scope “{scope}”.").format(scope=Scope(scope).value)
        )
