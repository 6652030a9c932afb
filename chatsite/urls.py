"""Every URL of the site, except the sockets' (chat.routing).

The access matrix (chatsite/tests/rights) has a row for each, except for those of the admin.
"""

from django.contrib import admin
from django.urls import include, path

from chatsite.server import health, metrics_page

from .http import api_description

# Django tries these in order: the chat API comes first, so that its requests are matched soonest.
urlpatterns = [
    path("", include("chat.api.urls")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics_page.page, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/schema/", api_description.schema, name="schema"),
    path("api/docs/", api_description.docs, name="api-docs"),
    path("", include("chatsite.accounts.urls")),
    path("", include("ingestion.urls")),
    path("", include("history.urls")),
    path("", include("chat.mcp.urls")),
    path("", include("chat.urls")),
]

handler400 = "chatsite.http.error_pages.bad_request"
handler403 = "chatsite.http.error_pages.permission_denied"
handler404 = "chatsite.http.error_pages.not_found"
handler500 = "chatsite.http.error_pages.server_error"
