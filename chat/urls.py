"""URLs of the portal's conversations, and of what published front ends ask before they start."""

from django.urls import path

from .api import front_ends
from .portal import (
    actions,
    own_data,
    palette,
    search_in,
    shared,
    shares,
    views,
)
from .site_texts import pages

app_name = "chat"
urlpatterns = [
    path("", actions.new, name="new"),
    path("search/", views.search, name="search"),
    path("search/palette", palette.palette, name="palette"),
    path("search/several", actions.several, name="several"),
    path("search-in", search_in.search_in, name="search-in"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/source/<str:place>/", views.source, name="source"),
    path("c/<uuid:conversation_id>/ask", actions.ask, name="ask"),
    path("c/<uuid:conversation_id>/search-in", search_in.search_in, name="search-in-conversation"),
    path("c/<uuid:conversation_id>/stop", actions.stop, name="stop"),
    path("c/<uuid:conversation_id>/q/<int:asked>/edit", actions.edit, name="edit"),
    path("c/<uuid:conversation_id>/m/<int:position>/choose", actions.choose, name="choose"),
    path("c/<uuid:conversation_id>/m/<int:position>/again", actions.again, name="again"),
    path("c/<uuid:conversation_id>/m/<int:position>/continue", actions.go_on, name="continue"),
    path("c/<uuid:conversation_id>/m/<int:position>/feedback", actions.feedback, name="feedback"),
    path("c/<uuid:conversation_id>/rename", actions.rename, name="rename"),
    path("c/<uuid:conversation_id>/pin", actions.pin, name="pin"),
    path("c/<uuid:conversation_id>/archive", actions.archive, name="archive"),
    path("c/<uuid:conversation_id>/delete", actions.delete, name="delete"),
    path("c/<uuid:conversation_id>/undo", actions.undo, name="undo"),
    path("c/<uuid:conversation_id>/export.md", views.export, name="export"),
    path("c/<uuid:conversation_id>/share", shares.share, name="share"),
    path("shares/", shares.shares, name="shares"),
    path("shares/<uuid:share_id>/revoke", shares.revoke, name="revoke-share"),
    path("shares/<uuid:share_id>/renew", shares.renew, name="renew-share"),
    path("s/<str:token>/", shared.shared, name="shared"),
    path("s/<str:token>/source/<str:place>/", shared.shared_source, name="shared-source"),
    path("s/<str:token>/export.md", shared.shared_export, name="shared-export"),
    path("s/<str:token>/go-on", shared.go_on, name="shared-go-on"),
    path("settings/data/", own_data.own_data, name="own-data"),
    path("settings/hints", own_data.hints_seen, name="hints-seen"),
    path("privacy/", pages.privacy, name="privacy"),
    path("site/mark-<slug:digest>.png", pages.mark, name="mark"),
    path("site/banner", pages.banner, name="banner"),
    path("auth_setup", front_ends.auth_setup, name="auth-setup"),
    path("config", front_ends.config, name="config"),
]
