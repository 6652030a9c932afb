"""URLs for signing in and out, settings, the directory, help, `whoami` and webhooks."""

from django.urls import path, re_path

from . import directory, views
from .api import whoami
from .oidc import views as oidc
from .webhooks import webhook_api as webhooks_api

ONE_WEBHOOK = r"^api/webhooks/(?P<webhook_id>[^/]+)"

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
    re_path(r"^directory/(?P<what>people|groups)\Z", directory.search, name="directory"),
    re_path(r"^api/whoami/?\Z", whoami.WhoAmIView.as_view(), name="whoami"),
    re_path(r"^api/webhooks/?\Z", webhooks_api.WebhooksView.as_view(), name="webhooks"),
    re_path(rf"{ONE_WEBHOOK}/?\Z", webhooks_api.WebhookView.as_view(), name="webhook"),
    re_path(rf"{ONE_WEBHOOK}/secret/?\Z", webhooks_api.WebhookSecretView.as_view(), name="webhook-secret"),
    re_path(rf"{ONE_WEBHOOK}/test/?\Z", webhooks_api.WebhookTestView.as_view(), name="webhook-test"),
    re_path(
        rf"{ONE_WEBHOOK}/deliveries/?\Z",
        webhooks_api.WebhookDeliveriesView.as_view(),
        name="webhook-deliveries",
    ),
    re_path(
        rf"{ONE_WEBHOOK}/deliveries/(?P<delivery_id>[^/]+)/replay/?\Z",
        webhooks_api.WebhookReplayView.as_view(),
        name="webhook-replay",
    ),
    path("help/", views.help_page, name="help"),
]
