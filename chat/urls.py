"""URLs of the portal's conversations, and of what published front ends ask before they start."""

from django.urls import path

from .api import front_ends
from .portal import (
    actions,
    views,
)

app_name = "chat"
urlpatterns = [
    path("", actions.new, name="new"),
    path("search/", views.search, name="search"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/source/<str:place>/", views.source, name="source"),
    path("c/<uuid:conversation_id>/ask", actions.ask, name="ask"),
    path("c/<uuid:conversation_id>/stop", actions.stop, name="stop"),
    path("c/<uuid:conversation_id>/m/<int:position>/again", actions.again, name="again"),
    path("c/<uuid:conversation_id>/m/<int:position>/feedback", actions.feedback, name="feedback"),
    path("c/<uuid:conversation_id>/rename", actions.rename, name="rename"),
    path("c/<uuid:conversation_id>/delete", actions.delete, name="delete"),
    path("c/<uuid:conversation_id>/undo", actions.undo, name="undo"),
    path("c/<uuid:conversation_id>/export.md", views.export, name="export"),
    path("auth_setup", front_ends.auth_setup, name="auth-setup"),
    path("config", front_ends.config, name="config"),
]
