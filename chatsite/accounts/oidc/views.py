"""Views that send the browser to the sign-in provider, and receive it back."""

import logging

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chatsite.accounts.audit import record_sign_in
from chatsite.accounts.sessions import begin

from . import signing_in
from .claimed_accounts import AccountDisabled, OtherClaim, user_for
from .provider import Provider, ProviderUnavailable, provider
from .signing_in import SignInFailed

logger = logging.getLogger(__name__)

PASSWORD_BACKEND = "django.contrib.auth.backends.ModelBackend"  # whose get_user is for all accounts  # noqa: S105


@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Sends the browser to the provider."""
    source = _provider()
    wanted = request.GET.get("next", "")
    own = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    destination = wanted if own else settings.LOGIN_REDIRECT_URL
    try:
        address = signing_in.begin(source, request.session, _callback(request), destination)
    except ProviderUnavailable as error:
        return _unavailable(request, error)
    return redirect(address)


@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Signs in the person whom the provider has sent back with a code."""
    source = _provider()
    try:
        claims, destination = signing_in.finish(
            source, request.session, _callback(request), request.GET.dict()
        )
        user = user_for(claims)
    except ProviderUnavailable as error:
        return _unavailable(request, error)
    except SignInFailed as error:
        logger.warning("Sign-in by the provider failed: %s", error)
        messages.error(request, f"{settings.OIDC_NAME} did not sign you in. Try again.")
        return redirect("accounts:sign-in")
    except AccountDisabled:
        messages.error(request, "Your account here is switched off. Ask an administrator.")
        return redirect("accounts:sign-in")
    except OtherClaim as error:
        logger.warning("Sign-in by the provider was refused: %s", error)
        messages.error(request, "Your account here is linked in another way. Ask an administrator.")
        return redirect("accounts:sign-in")
    login(request, user, backend=PASSWORD_BACKEND)
    begin(request, user)
    record_sign_in(user, request.META.get("REMOTE_ADDR", ""), f"by {settings.OIDC_NAME}")
    return redirect(destination)


def _provider() -> Provider:
    source = provider()
    if source is None:
        raise Http404
    return source


def _callback(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("accounts:provider-callback"))


def _unavailable(request: HttpRequest, error: ProviderUnavailable) -> HttpResponse:
    logger.warning("The sign-in provider cannot be used: %s", error)
    messages.error(request, f"{settings.OIDC_NAME} cannot be reached. Try again in a moment.")
    return redirect("accounts:sign-in")
