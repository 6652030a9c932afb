"""The chat URLs of the REST API. A trailing slash, and a doubled one before `stream`, are accepted."""

from django.urls import re_path

from . import api

app_name = "chat-api"
urlpatterns = [
    re_path(r"^chat/?\Z", api.ChatView.as_view(), name="chat"),
    re_path(r"^chat//?stream/?\Z", api.ChatStreamView.as_view(), name="chat-stream"),
]
