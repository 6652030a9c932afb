"""Pages for signing in and out, settings, the password, API keys, sessions and help."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone, translation
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from chatsite.http.parameters import LARGEST_KEY, whole_number

from . import staff_access
from .api.authentication import session_principal
from .audit import record, record_sign_in, record_sign_out
from .forms import ApiKeyForm, OwnPasswordForm, SignInForm
from .models import MAX_WISH, ApiKey, ApiKeyQuerySet, AuditEntry, Device, User
from .oidc.provider import provider
from .oidc.signing_in import BY_PROVIDER, sign_out_address
from .preferences import Preferences
from .sessions import begin, end_sessions, last_seen, note_device

A_YEAR = 365 * 24 * 3600
NAMES_TO_ASK = 5
LEFT = "signed-out"  # query parameter of the sign-in page to which signing out redirects
EXAMPLE = 'curl -H "Authorization: Bearer {secret}" {site}api/whoami'


class SignIn(auth_views.LoginView):
    """The sign-in page. `chatsite.context_processors` provides the demo accounts that it shows."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: SignInForm) -> HttpResponse:  # type: ignore[override]
        response = super().form_valid(form)
        user = form.get_user()
        assert isinstance(user, User)
        begin(self.request, user)
        record_sign_in(user, self.request.META.get("REMOTE_ADDR", ""), "with a password")
        return form.complete_response(response)

    def form_invalid(self, form: SignInForm) -> HttpResponse:  # type: ignore[override]
        return form.complete_response(super().form_invalid(form))

    def get_context_data(self, **values: Any) -> dict[str, Any]:
        context = super().get_context_data(**values)
        source = provider()
        context["provider_name"] = settings.OIDC_NAME if source else ""
        if source and LEFT in self.request.GET:
            context["sign_out_address"] = sign_out_address(source)
        # Django sets the host's name, which would override the context processor's value.
        del context["site_name"]
        return context


class SignOut(auth_views.LogoutView):
    """End this session.

    People who signed in through the provider are reminded that their session with it continues.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        record_sign_out(request)
        by_provider = request.session.get(BY_PROVIDER)
        response = super().post(request, *args, **kwargs)
        return redirect(f"{reverse('accounts:sign-in')}?{LEFT}=1") if by_provider else response


class PasswordChange(auth_views.PasswordChangeView):
    """Change the password, which signs the person out on every other device."""

    template_name = "accounts/password.html"
    form_class = OwnPasswordForm
    success_url = reverse_lazy("accounts:settings")

    def get_context_data(self, **values: Any) -> dict[str, Any]:
        return super().get_context_data(**values) | {"usable_keys": self._keys().count()}

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: OwnPasswordForm) -> HttpResponse:  # type: ignore[override]
        response = super().form_valid(form)
        principal = session_principal(self.request)
        end_sessions(principal.user_id, keep=principal.credential)
        owner = User.objects.get(pk=principal.user_id)
        note_device(self.request, owner)  # the session has a new key now
        record(AuditEntry.Action.PASSWORD_SET, actor=owner, person=owner)
        words = gettext("Your password is changed. Other devices are signed out.")
        if form.cleaned_data["revoke_keys"]:
            count = self._keys().revoke()
            record(AuditEntry.Action.KEYS_REVOKED, actor=owner, person=owner, subject=f"API keys: {count}")
            words += " " + gettext("API keys revoked: %(number)s.") % {"number": count}
        messages.success(self.request, words)
        return response

    def form_invalid(self, form: OwnPasswordForm) -> HttpResponse:  # type: ignore[override]
        return form.complete_response(super().form_invalid(form))

    def _keys(self) -> ApiKeyQuerySet:
        return ApiKey.objects.owned_by_user(session_principal(self.request).user_id).usable()


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest) -> HttpResponse:
    """The settings page: a person's language and wish for answers, and this device's preferences.

    Works without JavaScript. The command palette sends a form with the field `part`, which changes only the
    theme; the response to it has no body.
    """
    if "part" in request.POST:
        appearance = Preferences.of(request.POST).theme
        return _with_cookies(HttpResponse(status=204), [("theme", appearance)])
    wish = request.POST.get("wish", "").replace("\r\n", "\n").replace("\x00", "\ufffd").strip()
    too_long = len(wish) > MAX_WISH
    if request.method != "POST" or too_long:
        principal = session_principal(request)
        expiring = ApiKey.objects.owned_by_user(principal.user_id).expiring().count()
        shown = {
            "chosen": Preferences.of(request.POST if too_long else request.COOKIES),
            "expiring_keys": expiring,
            "languages": settings.LANGUAGES,
            "staff_access": staff_access.access_to_disclose(principal.user_id).filter(seen_at=None).count(),
            "max_wish": MAX_WISH,
            "wish": wish if too_long else getattr(request.user, "wish", ""),
            "too_long": too_long,
        }
        return render(request, "accounts/settings.html", shown, status=422 if too_long else 200)
    # Browsers do not send an unchecked box.
    chosen = Preferences.of(request.POST.dict() | {"keys": request.POST.get("keys", "off")})
    mine = User.objects.filter(pk=session_principal(request).user_id)
    if "wish" in request.POST:
        mine.update(wish=wish)
    language = request.POST.get("language")
    if language is not None and language in {"", *dict(settings.LANGUAGES)}:
        mine.update(language=language)
        translation.activate(language or translation.get_language_from_request(request))
    messages.success(request, gettext("Settings saved."))
    return _with_cookies(redirect("accounts:settings"), chosen.items())


def _with_cookies(response: HttpResponse, values: Iterable[tuple[str, str]]) -> HttpResponse:
    """The response, with cookies that store these preferences on the device."""
    for name, value in values:
        response.set_cookie(name, value, max_age=A_YEAR, secure=settings.HTTPS, httponly=True, samesite="Lax")
    return response


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """The caller's API keys. A new key is shown only in the response to the POST."""
    principal = session_principal(request)
    owner = User.objects.get(pk=principal.user_id)
    form = ApiKeyForm(request.POST if request.method == "POST" else None, is_staff=owner.is_staff)
    secret = ""
    status = 200
    if form.is_bound and form.is_valid():
        chosen = form.cleaned_data
        made, secret = ApiKey.objects.issue(owner, chosen["name"], chosen["days"], chosen["scopes"])
        record(AuditEntry.Action.KEY_MADE, actor=owner, person=owner, subject=str(made))
        form = ApiKeyForm(is_staff=owner.is_staff)
    elif form.is_bound:
        status = 422
    found = ApiKey.objects.owned_by_user(principal.user_id)
    return render(
        request,
        "accounts/keys.html",
        {
            "found": found,
            "form": form,
            "secret": secret,
            "example": EXAMPLE.format(secret=secret, site=request.build_absolute_uri("/")),
        },
        status=status,
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Ask for confirmation, then revoke the key, which is refused from then on."""
    mine = ApiKey.objects.owned_by_user(session_principal(request).user_id)
    key = get_object_or_404(mine, pk=key_id)
    if request.method != "POST":
        return render(request, "accounts/revoke_key.html", {"key": key})
    if mine.filter(pk=key.pk).revoke():
        record(AuditEntry.Action.KEYS_REVOKED, actor=key.user, person=key.user, subject=str(key))
    messages.success(request, gettext("The key is revoked. Programs that use it are refused from now on."))
    return redirect("accounts:keys")


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sessions(request: HttpRequest) -> HttpResponse:
    """Lists the person's sessions; a POST ends one of the other sessions, or all of them."""
    principal = session_principal(request)
    mine = Device.objects.filter(user=principal.user_id, session__expire_date__gt=timezone.now())
    if request.method != "POST":
        devices = [(device, last_seen(device.session)) for device in mine.select_related("session")]
        shown = {"devices": devices, "this": principal.credential}
        return render(request, "accounts/sessions.html", shown)
    chosen = request.POST.get("device", "")
    if chosen:
        device = get_object_or_404(
            mine.exclude(session=principal.credential), pk=whole_number(chosen, LARGEST_KEY)
        )
        device.session.delete()
        messages.success(request, gettext("The device was signed out."))
    else:
        end_sessions(principal.user_id, keep=principal.credential)
        messages.success(request, gettext("Your other devices were signed out."))
    return redirect("accounts:sessions")


@login_required
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """What the portal does, its keyboard shortcuts, what it stores, and contacts."""
    people = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")[:NAMES_TO_ASK]
    return render(request, "accounts/help.html", {"administrators": people})
