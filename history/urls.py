"""The URLs of /chat-history, of feedback and of shares; a trailing slash is accepted.

The patterns accept any text as an id, so that an invalid id also gets a 404 with the API's own body.
"""

from django.urls import re_path

from .api import conversations_api, feedback_api, shares_api

ONE = r"^chat-history/(?P<conversation_id>[^/]+)"

app_name = "history"
urlpatterns = [
    re_path(r"^chat-history/?\Z", conversations_api.ConversationsView.as_view(), name="conversations"),
    re_path(r"^chat-history/search/?\Z", conversations_api.SearchView.as_view(), name="search"),
    re_path(rf"{ONE}/?\Z", conversations_api.ConversationView.as_view(), name="conversation"),
    re_path(rf"{ONE}/messages/?\Z", conversations_api.MessagesView.as_view(), name="messages"),
    re_path(rf"{ONE}/restore/?\Z", conversations_api.RestoreView.as_view(), name="restore"),
    re_path(rf"{ONE}/export/?\Z", conversations_api.ExportView.as_view(), name="export"),
    re_path(
        r"^api/messages/(?P<message_id>[^/]+)/feedback/?\Z",
        feedback_api.FeedbackView.as_view(),
        name="feedback",
    ),
    re_path(r"^api/shares/?\Z", shares_api.SharesView.as_view(), name="shares"),
    re_path(
        r"^api/shares/(?P<share_id>[^/]+)/?\Z",
        shares_api.ShareView.as_view(),
        name="share",
    ),
]
