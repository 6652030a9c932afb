"""URLs of the MCP server and of its metadata."""

from django.urls import re_path

from . import views
from .resource_metadata import METADATA, resource_metadata

app_name = "mcp"
urlpatterns = [
    re_path(r"^mcp/?\Z", views.McpView.as_view(), name="server"),
    re_path(rf"^{METADATA}(?:/mcp)?/?\Z", resource_metadata, name="resource-metadata"),
]
