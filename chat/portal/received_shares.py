"""The list of what others share with the caller."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chat.redaction.shared_titles import listed_titles
from chatsite.accounts.models import User
from chatsite.accounts.page_decorators import signed_in
from chatsite.accounts.principal import Principal
from history import sharing
from history.models import Share

LISTED = 200  # number of newest shares on the page
TITLE_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Row:
    """A share in the list of received shares."""

    share: Share
    title: str
    readers: str


@require_safe
@signed_in
def received(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List conversations and answers that others share with the caller, newest first."""
    groups = sharing.groups_of(User.objects.get(pk=principal.user_id))
    found = list(sharing.with_own_groups(Share.objects.received_by(principal), groups)[:LISTED])
    titles = listed_titles(principal, found)
    rows = []
    for share in found:
        title = Truncator(" ".join(titles.get(share.pk, "").split())).chars(TITLE_CHARACTERS)
        if not title:
            title = gettext("Shared answer") if share.answer_id else gettext("Shared conversation")
        rows.append(Row(share, title, sharing.shared_with(share, groups)))
    return render(request, "chat/received.html", {"rows": rows})
