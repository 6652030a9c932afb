"""Admin pages that are opened from the list of unanswered questions and return to it."""

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

GROUP = re.compile(r"[0-9a-f]{64}")


def unanswered_address(group: str) -> str:
    """The URL of the list's page that contains this group, with a fragment for the group."""
    return f"{reverse('admin:chat_verifiedanswer_unanswered')}?group={group}#group-{group}"


class ReturnsToUnanswered:
    """*Save* of a new row returns to the group of questions in the parameter `unanswered`."""

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        response: HttpResponse = super().response_add(request, obj, post_url_continue)  # type: ignore[misc]
        group = request.GET.get("unanswered", "")
        if "_continue" in request.POST or "_addanother" in request.POST or not GROUP.fullmatch(group):
            return response
        return redirect(unanswered_address(group))
