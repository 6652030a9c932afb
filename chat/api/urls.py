"""The chat URLs of the REST API.

A trailing slash is accepted everywhere, and a double slash before `stream` and `batch` and after `v1`.
"""

from django.urls import URLPattern, re_path

from . import (
    embeddings,
    openai_views,
    project_views,
    responses_views,
    runs,
    views,
)

RESPONSE = r"^v1//?responses/(?P<response_id>resp_[0-9a-f]{32})"
RUN = r"^chat/runs/(?P<run_id>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"


def _chat_ui(path: str, view: type[views.RunView], name: str) -> list[URLPattern]:
    """A URL that streams if `Accept` asks for it, and its variants, whose suffix decides instead."""
    return [
        re_path(rf"^api/{path}/?\Z", view.as_view(), name=name),
        re_path(rf"^api/{path}//?stream/?\Z", view.as_view(), {"suffix": "stream"}, name=f"{name}-stream"),
        re_path(rf"^api/{path}//?batch/?\Z", view.as_view(), {"suffix": "batch"}, name=f"{name}-batch"),
    ]


def _rag_chat_2026(path: str, name: str, *, alone: bool = False) -> list[URLPattern]:
    """URLs with the prefix `2026`, for the version of RAG chat that front ends have used since April 2026."""
    view = views.RagChat2026View.as_view()
    more = {"alone": True} if alone else {}
    return [
        re_path(rf"^2026/{path}/?\Z", view, more, name=name),
        re_path(rf"^2026/{path}//?stream/?\Z", view, more | {"streamed": True}, name=f"{name}-stream"),
    ]


app_name = "chat-api"
urlpatterns = [
    re_path(r"^chat/?\Z", views.ChatView.as_view(), name="chat"),
    re_path(r"^chat//?stream/?\Z", views.ChatStreamView.as_view(), name="chat-stream"),
    re_path(RUN + r"/events/?\Z", runs.RunEventsView.as_view(), name="run-events"),
    re_path(RUN + r"/stop/?\Z", runs.StopRunView.as_view(), name="stop-run"),
    re_path(r"^ask/?\Z", views.ChatView.as_view(), {"alone": True}, name="ask"),
    re_path(r"^ask//?stream/?\Z", views.ChatStreamView.as_view(), {"alone": True}, name="ask-stream"),
    *_rag_chat_2026("chat", "chat-2026"),
    *_rag_chat_2026("ask", "ask-2026", alone=True),
    *_chat_ui("chat", views.StandardChatUiView, "chat-ui"),
    *_chat_ui("multi-agent-chat", views.TeamChatUiView, "chat-ui-team"),
    *_chat_ui("minimal/chat", views.MinimalChatUiView, "minimal"),
    *_chat_ui("minimal/multi-agent-chat", views.TeamMinimalChatUiView, "minimal-team"),
    re_path(r"^api/messages/chat/?\Z", views.MessagesChatUiView.as_view(), name="messages"),
    re_path(
        r"^api/messages/multi-agent-chat/?\Z", views.TeamMessagesChatUiView.as_view(), name="messages-team"
    ),
    re_path(r"^api/projects/?\Z", project_views.ProjectsView.as_view(), name="projects"),
    re_path(
        r"^api/projects/(?P<project_id>[^/]+)/members/?\Z",
        project_views.MembersView.as_view(),
        name="project-members",
    ),
    re_path(r"^api/projects/(?P<project_id>[^/]+)/?\Z", project_views.ProjectView.as_view(), name="project"),
    re_path(r"^v1//?chat/completions/?\Z", openai_views.ChatCompletionsView.as_view(), name="completions"),
    re_path(r"^v1//?completions/?\Z", openai_views.CompletionsView.as_view(), name="legacy-completions"),
    re_path(r"^v1//?embeddings/?\Z", embeddings.EmbeddingsView.as_view(), name="embeddings"),
    re_path(r"^v1//?responses/?\Z", responses_views.ResponsesView.as_view(), name="responses"),
    re_path(RESPONSE + r"/?\Z", responses_views.ResponseView.as_view(), name="response"),
    re_path(RESPONSE + r"/cancel/?\Z", responses_views.CancelView.as_view(), name="cancel-response"),
    re_path(r"^v1//?models/?\Z", openai_views.ModelsView.as_view(), name="models"),
    re_path(r"^v1//?models/(?P<model>[^?#]{1,200}?)/?\Z", openai_views.ModelView.as_view(), name="model"),
]
