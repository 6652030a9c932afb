"""Views that send the browser to the sign-in provider, and sign in the person who returns."""

import logging
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chatsite.accounts.audit import record_refusal, record_sign_in
from chatsite.accounts.passwords import throttling
from chatsite.accounts.sessions import begin

from . import signing_in
from .claimed_accounts import AccountDisabled, ClaimMismatch, user_for
from .provider import Provider, ProviderUnavailable, provider
from .signing_in import SignInFailed

logger = logging.getLogger(__name__)

PASSWORD_BACKEND = "django.contrib.auth.backends.ModelBackend"  # its get_user loads only active accounts  # noqa: S105


@never_cache
@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """Redirects the browser to the provider."""
    source = _provider()
    wanted = request.GET.get("next", "")
    own = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    destination = wanted if own else settings.LOGIN_REDIRECT_URL
    try:
        address = signing_in.begin(source, request.session, _callback(request), destination)
    except ProviderUnavailable as error:
        return _unavailable(request, error, destination)
    return redirect(address)


@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """Signs in a person who returns from the provider with a code."""
    source = _provider()
    attempt = signing_in.take_attempt(request.session, request.GET.get("state", ""))
    destination = attempt.next if attempt else ""
    try:
        claims = signing_in.finish(source, attempt, _callback(request), request.GET.dict())
        user = user_for(claims)
    except ProviderUnavailable as error:
        return _unavailable(request, error, destination)
    except SignInFailed as error:
        _record_refusal(request, error)
        return _refused(
            request, gettext("%(provider)s did not sign you in. Try again.") % _names(), destination
        )
    except AccountDisabled as error:
        _record_refusal(request, error)
        return _refused(
            request, gettext("Your account here is switched off. Ask an administrator."), destination
        )
    except ClaimMismatch as error:
        _record_refusal(request, error)
        return _refused(
            request,
            gettext("Your account here is linked by another claim. Ask an administrator."),
            destination,
        )
    login(request, user, backend=PASSWORD_BACKEND)
    begin(request, user)
    request.session[signing_in.BY_PROVIDER] = True
    record_sign_in(user, request.META.get("REMOTE_ADDR", ""), f"by {settings.OIDC_NAME}")
    return redirect(destination)


def _provider() -> Provider:
    source = provider()
    if source is None:
        raise Http404
    return source


def _callback(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("accounts:provider-callback"))


def _names() -> dict[str, str]:
    return {"provider": settings.OIDC_NAME}


def _unavailable(request: HttpRequest, error: ProviderUnavailable, destination: str) -> HttpResponse:
    logger.warning("The sign-in provider cannot be used: %s", error)
    words = gettext("%(provider)s cannot be reached. Try again in a moment.") % _names()
    return _refused(request, words, destination)


def _record_refusal(request: HttpRequest, error: SignInFailed | AccountDisabled | ClaimMismatch) -> None:
    user = None if isinstance(error, SignInFailed) else error.user
    address = request.META.get("REMOTE_ADDR", "")
    if throttling.is_recorded(user.get_username() if user else "", address):
        reason = f"by {settings.OIDC_NAME}: {str(error).removesuffix('.')}"
        record_refusal(user, address, reason, unknown="an unknown account")


def _refused(request: HttpRequest, words: str, destination: str) -> HttpResponse:
    """Redirect to the sign-in page with an error; the next attempt keeps the destination."""
    messages.error(request, words)
    elsewhere = destination not in ("", settings.LOGIN_REDIRECT_URL)
    query = f"?{urlencode({'next': destination})}" if elsewhere else ""
    return redirect(reverse("accounts:sign-in") + query)
