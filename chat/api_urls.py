"""The chat URLs of the REST API. A trailing slash, and a doubled one before `stream`, are accepted."""

from django.urls import re_path

from . import api, models_api

STREAM, BATCH = {"suffix": "stream"}, {"suffix": "batch"}

app_name = "chat-api"
urlpatterns = [
    re_path(r"^chat/?\Z", api.ChatView.as_view(), name="chat"),
    re_path(r"^chat//?stream/?\Z", api.ChatStreamView.as_view(), name="chat-stream"),
    re_path(r"^ask/?\Z", api.ChatView.as_view(), {"alone": True}, name="ask"),
    re_path(r"^ask//?stream/?\Z", api.ChatStreamView.as_view(), {"alone": True}, name="ask-stream"),
    re_path(r"^api/chat/?\Z", api.ChatUiView.as_view(), name="chat-ui"),
    re_path(r"^api/chat//?stream/?\Z", api.ChatUiView.as_view(), STREAM, name="chat-ui-stream"),
    re_path(r"^api/chat//?batch/?\Z", api.ChatUiView.as_view(), BATCH, name="chat-ui-batch"),
    re_path(r"^api/minimal/chat/?\Z", api.MinimalChatUiView.as_view(), name="minimal"),
    re_path(
        r"^api/minimal/chat//?stream/?\Z", api.MinimalChatUiView.as_view(), STREAM, name="minimal-stream"
    ),
    re_path(r"^api/minimal/chat//?batch/?\Z", api.MinimalChatUiView.as_view(), BATCH, name="minimal-batch"),
    re_path(r"^v1//?chat/completions/?\Z", api.CompletionsView.as_view(), name="completions"),
    re_path(r"^v1//?models/?\Z", models_api.ModelsView.as_view(), name="models"),
]
