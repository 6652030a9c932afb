"""Every URL of the site. The access matrix in chatsite/tests has a row for each."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("chatsite.accounts.urls")),
    path("", include("ingestion.urls")),
    path("", include("history.urls")),
    path("", include("chat.urls")),
]
