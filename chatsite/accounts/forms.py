"""Signing in, with a limit on guesses, and the names of API keys."""

from typing import Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm

from . import throttling


class SignInForm(AuthenticationForm):
    """Django's form; after ten wrong passwords for a name from one address it refuses for a while."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": "The name or the password is not right. Capital letters count in both.",
        "throttled": (
            "There were %(limit)s wrong attempts for this name. Wait %(minutes)s minutes, then try again."
        ),
    }

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        if username is None or not self.cleaned_data.get("password"):
            return super().clean()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        if not throttling.admit(username, address):
            minutes = int(throttling.WINDOW.total_seconds() // 60)
            raise forms.ValidationError(
                self.error_messages["throttled"],
                code="throttled",
                params={"limit": throttling.LIMIT, "minutes": minutes},
            )
        cleaned = super().clean()
        throttling.forget(username, address)
        return cleaned


class AdminSignInForm(SignInForm, AdminAuthenticationForm):
    """The admin's door: the same limit, and staff only."""


class OwnPasswordForm(PasswordChangeForm):
    """A new password, and whether the person's API keys end with the old one."""

    revoke_keys = forms.BooleanField(required=False)


class ApiKeyForm(forms.Form):
    """What a new key is for."""

    name = forms.CharField(
        label="What is the key for?",
        max_length=100,
        error_messages={"required": "Say what the key is for, so that you know it again."},
    )
