"""Decorators of the portal's pages: who may open a page, and as whom the view acts."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import add_never_cache_headers

from .api.authentication import session_principal
from .guests import guests_welcome
from .principal import Principal

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)
Page = Callable[Concatenate[HttpRequest, Principal, P], R]


def signed_in(view: Page[P, R]) -> Callable[Concatenate[HttpRequest, P], R]:
    """Decorator for pages that require an account; guests have none. Responses are not cached."""

    @wraps(view)
    def page(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
        response = view(request, session_principal(request), *args, **kwargs)
        add_never_cache_headers(response)
        return response

    return login_required(page)


def for_caller(view: Page[P, R]) -> Callable[Concatenate[HttpRequest, P], R]:
    """Decorator for pages of signed-in people and guests. Responses are not cached."""
    return guests_welcome(signed_in(view))
