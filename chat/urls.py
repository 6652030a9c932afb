"""URLs of the portal's conversations, and of what published front ends ask before they start."""

from django.urls import path

from . import changes, front_ends, views

app_name = "chat"
urlpatterns = [
    path("", changes.new, name="new"),
    path("search/", views.search, name="search"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/source/<str:place>/", views.source, name="source"),
    path("c/<uuid:conversation_id>/ask", changes.ask, name="ask"),
    path("c/<uuid:conversation_id>/stop", changes.stop, name="stop"),
    path("c/<uuid:conversation_id>/m/<int:position>/again", changes.again, name="again"),
    path("c/<uuid:conversation_id>/rename", changes.rename, name="rename"),
    path("c/<uuid:conversation_id>/delete", changes.delete, name="delete"),
    path("c/<uuid:conversation_id>/undo", changes.undo, name="undo"),
    path("c/<uuid:conversation_id>/export.md", views.export, name="export"),
    path("auth_setup", front_ends.auth_setup, name="auth-setup"),
    path("config", front_ends.config, name="config"),
]
