"""Every URL of the site. The access matrix in chatsite/tests has a row for each."""

from django.contrib import admin
from django.urls import include, path

from chatsite import health, schema

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("api/schema/", schema.schema, name="schema"),
    path("api/docs/", schema.docs, name="api-docs"),
    path("", include("chatsite.accounts.urls")),
    path("", include("ingestion.urls")),
    path("", include("history.urls")),
    path("", include("chat.api_urls")),
    path("", include("chat.urls")),
]

handler400 = "chatsite.errors.bad_request"
handler403 = "chatsite.errors.permission_denied"
handler404 = "chatsite.errors.not_found"
handler500 = "chatsite.errors.server_error"
