"""The address of the MCP server."""

from django.urls import re_path

from . import views

app_name = "mcp"
urlpatterns = [
    re_path(r"^mcp/?\Z", views.McpView.as_view(), name="server"),
]
