"""Forms to sign in, to change the password, and to create API keys.

Attempts to sign in are limited.
"""

from http import HTTPStatus
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy, ngettext

from chatsite.http.outgoing.retry_after import set_retry_after

from .api_keys import DEFAULT_SCOPES, MAX_ADDRESSES, Scope, network_of, scopes_for
from .audit import record_refused_sign_in, record_wrong_password
from .models import ApiKey
from .passwords import hashing, throttling

MAX_WAITING = 16  # attempts that may wait for earlier hashing; further ones are refused
MAX_WAITING_KNOWN = 64  # the limit for browsers in which the person has signed in before
BUSY_SECONDS = 5

KEY_DAYS = (30, 90, 365)


class LimitedForm(forms.Form):
    """A form that checks a password, and may refuse to do so for some seconds."""

    error_messages: Any
    retry_after: int | None = None  # seconds, if the attempt was refused without a check

    def _refusal(self, code: str, seconds: int) -> forms.ValidationError:
        self.retry_after = seconds
        return forms.ValidationError(self.error_messages[code], code=code, params={"seconds": seconds})

    def complete_response(self, response: HttpResponse) -> HttpResponse:
        """Give the response of an attempt that was refused without a check status 429 and Retry-After."""
        if self.retry_after is not None:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            set_retry_after(response, self.retry_after)
        return response


class SignInForm(LimitedForm, AuthenticationForm):
    """Django's form; failed attempts are logged and slow down further ones."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": gettext_lazy("The name or the password is wrong. Both are case-sensitive."),
        "throttled": gettext_lazy(
            "There were too many wrong attempts. Wait %(seconds)s seconds, then try again."
        ),
        "busy": gettext_lazy("Many people are signing in right now. Try again in a few seconds."),
    }

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        if username is None or not self.cleaned_data.get("password"):
            return super().clean()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        cookie = self.request.COOKIES.get(settings.DEVICE_COOKIE_NAME, "") if self.request else ""
        device = throttling.known_device(cookie, username)
        if hashing.waiting() >= (MAX_WAITING_KNOWN if device else MAX_WAITING):
            raise self._refusal("busy", BUSY_SECONDS)
        try:
            attempt = throttling.admit(username, address, device)
        except throttling.TooManyAttempts as refused:
            if refused.first:  # only the first, so that an attacker cannot fill the log
                record_refused_sign_in(username, address, "too many attempts")
            raise self._refusal("throttled", refused.seconds) from refused
        try:
            cleaned = super().clean()
        except forms.ValidationError:
            record_refused_sign_in(username, address, "wrong password")
            raise
        throttling.forget(attempt)
        return cleaned

    def complete_response(self, response: HttpResponse) -> HttpResponse:
        """Also mark the browser as known after a success."""
        if self.is_valid():
            self.remember_device(response, self.get_user().get_username())
        return super().complete_response(response)

    @staticmethod
    def remember_device(response: HttpResponse, username: str) -> None:
        """Mark the browser as known for that person (see throttling)."""
        response.set_cookie(
            settings.DEVICE_COOKIE_NAME,
            throttling.new_device(username),
            max_age=throttling.DEVICE_AGE,
            secure=settings.HTTPS,
            httponly=True,
            samesite="Lax",
        )


class AdminSignInForm(SignInForm, AdminAuthenticationForm):
    """The admin's sign-in form: for staff only, with the limits of SignInForm."""


class OwnPasswordForm(LimitedForm, PasswordChangeForm):
    """A new password, and whether to revoke the person's API keys."""

    error_messages = PasswordChangeForm.error_messages | {
        "throttled": SignInForm.error_messages["throttled"],
        "busy": gettext_lazy("Your password is already being checked. Try again in a few seconds."),
    }
    revoke_keys = forms.BooleanField(required=False)

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request = request

    def clean_old_password(self) -> str:
        """Check the current password, with the same limits on guesses as in SignInForm.

        Otherwise, a person at somebody else's unlocked browser could find out the password here.
        """
        username = self.user.get_username()
        address = self._request.META.get("REMOTE_ADDR", "")
        cookie = self._request.COOKIES.get(settings.DEVICE_COOKIE_NAME, "")
        try:
            with hashing.own_check(self.user.pk):
                attempt = throttling.admit(username, address, throttling.known_device(cookie, username))
                password: str = super().clean_old_password()
        except hashing.CheckInProgress as error:
            raise self._refusal("busy", BUSY_SECONDS) from error
        except throttling.TooManyAttempts as refused:
            if refused.first:
                record_wrong_password(self.user, address, "too many attempts")
            raise self._refusal("throttled", refused.seconds) from refused
        except forms.ValidationError:
            record_wrong_password(self.user, address, "wrong current password")
            raise
        throttling.forget(attempt)
        return password


def _offer_days(field: forms.Field) -> None:
    """Set the choices for a new key's lifetime, with the site's default selected."""
    assert isinstance(field, forms.ChoiceField)
    choices = []
    for days in sorted({*KEY_DAYS, settings.API_KEY_DAYS} - {0}):
        label = ngettext("%(days)d day", "%(days)d days", days) % {"days": days}
        choices.append((days, gettext("1 year") if days == 365 else label))
    if not settings.API_KEY_DAYS:
        choices.append((0, gettext("No expiry")))
    field.choices = choices
    field.initial = settings.API_KEY_DAYS


class ApiKeyForm(forms.Form):
    """The purpose, lifetime and scopes of a new key."""

    name = forms.CharField(
        label=gettext_lazy("What is the key for?"),
        max_length=100,
        error_messages={"required": gettext_lazy("Say what the key is for, so that you recognise it.")},
    )
    days = forms.TypedChoiceField(coerce=int, empty_value=None, required=False)
    scopes = forms.MultipleChoiceField(required=False)

    def __init__(self, *args: Any, is_staff: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_days(self.fields["days"])
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [(scope.value, scope.label) for scope in scopes_for(is_staff)]
        scopes.initial = DEFAULT_SCOPES

    def clean_scopes(self) -> list[str]:
        """The selected scopes, or the default ones if the posted form did not offer any."""
        chosen: list[str] = self.cleaned_data["scopes"]
        if not chosen and "scopes_offered" in self.data:
            raise forms.ValidationError(gettext("Choose what the key may do."))
        return chosen or DEFAULT_SCOPES


class ApiKeyAdminForm(forms.ModelForm):  # type: ignore[type-arg]
    """A key in the admin. Only the name of an existing key can be changed."""

    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        initial=DEFAULT_SCOPES,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Scopes"),
        help_text=gettext_lazy("What the key may be used for."),
    )

    addresses = forms.CharField(
        required=False,
        max_length=3_000,
        label=gettext_lazy("Addresses"),
        help_text=gettext_lazy(
            "Addresses and networks (192.0.2.0/24) from which the key may be used, separated by commas."
        ),
    )

    days = forms.TypedChoiceField(
        coerce=int, empty_value=None, required=False, label=gettext_lazy("Valid for")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_days(self.fields["days"])

    class Meta:
        model = ApiKey
        fields = ("user", "name", "scopes", "addresses", "acts_for_others")

    def clean_addresses(self) -> list[str]:
        addresses = [each for each in self.cleaned_data["addresses"].split(",") if each.strip()]
        if len(addresses) > MAX_ADDRESSES:
            raise forms.ValidationError(gettext("Name at most %(most)s addresses.") % {"most": MAX_ADDRESSES})
        try:
            return [network_of(address) for address in addresses]
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
