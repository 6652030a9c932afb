"""Signing in and out, a person's settings, and help."""

from django.urls import path, re_path

from . import api, views
from .oidc import views as oidc

app_name = "accounts"
urlpatterns = [
    path("accounts/sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("accounts/provider/", oidc.start, name="provider"),
    path("accounts/provider/callback/", oidc.callback, name="provider-callback"),
    path("accounts/sign-out/", views.SignOut.as_view(), name="sign-out"),
    path("settings/", views.settings_page, name="settings"),
    path("settings/password/", views.PasswordChange.as_view(), name="password"),
    path("settings/keys/", views.keys, name="keys"),
    path("settings/keys/<int:key_id>/revoke/", views.revoke_key, name="revoke-key"),
    path("settings/sessions/", views.sessions, name="sessions"),
    re_path(r"^api/whoami/?\Z", api.WhoAmIView.as_view(), name="whoami"),
    path("help/", views.help_page, name="help"),
]
