"""The page of the admin that lists unanswered questions.

Each view and each dismissal is audited.
"""

from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from chat.models import VerifiedAnswer
from chat.verified_answers import (
    answer_to,
)
from chatsite.accounts.admin_base.returning_admin import unanswered_address
from chatsite.accounts.audit import record, record_before
from chatsite.accounts.models import AuditEntry, User
from chatsite.accounts.principal import Principal
from history.feedback import MAY_SEE_FEEDBACK
from ingestion.access.admin import PERMISSION as SEARCH_AS

from .question_judging import LISTED_FOR, SITUATION
from .unanswered_list import (
    MIN_PEOPLE,
    PERMISSION,
    REASONS,
    QuestionGroup,
    ShownDocument,
    dismiss,
    documents_shown,
    feedback_on,
    judged_at,
    read_texts,
    unanswered,
)

GROUPS_SHOWN = 25  # groups on a page
MAX_WORDINGS = 5  # wordings of a group that fill the form of a new answer, or that may match an answer
MAX_REASON = 300  # characters of a reason


@dataclass(frozen=True, slots=True)
class Row:
    """A group, with the verified answer that one of its shown wordings would get now, if any."""

    group: QuestionGroup
    answer: VerifiedAnswer | None
    documents: list[ShownDocument]  # documents that were shown to the people who asked
    feedback: list[UUID]  # answers rated bad, whose feedback may be opened from here

    @property
    def query(self) -> str:
        """The query string for a new verified answer."""
        asked = [("question", wording) for wording in self.group.wordings[:MAX_WORDINGS]]
        sources = [("source", document.id) for document in self.documents if document.sure]
        return urlencode([*asked, *sources, ("unanswered", self.group.key)])

    @property
    def evaluation_query(self) -> str:
        """The query string for a new evaluation question."""
        asked = [("text", wording) for wording in self.group.wordings[:1]]
        return urlencode([("origin", "unanswered"), *asked, ("unanswered", self.group.key)])

    @property
    def word_query(self) -> str:
        """The query string for a new glossary entry."""
        asked = [("asked", wording) for wording in self.group.wordings[:1]]
        word = [("kind", "everyday"), ("words", ", ".join(self.group.usual_words)), *asked]
        return urlencode([*word, ("unanswered", self.group.key)])


class UnansweredPage(admin.ModelAdmin):  # type: ignore[type-arg]
    """A mixin for the admin of verified answers, with the page of unanswered questions."""

    def unanswered_view(self, request: HttpRequest) -> HttpResponse:
        """Show a page of the list, or the page with the group in the URL. A POST dismisses a group."""
        actor = request.user
        if not isinstance(actor, User) or not actor.has_perm(PERMISSION):
            raise PermissionDenied
        if request.method == "POST":
            return redirect(self._dismiss(request, actor))
        page_number, sought = request.GET.get("page", "1"), request.GET.get("group", "")
        what = "the page of one group" if sought else f"page {page_number[:MAX_REASON]}"
        subject = f"Of the last {LISTED_FOR.days} days, {what}"
        record_before(AuditEntry.Action.UNANSWERED_LISTED, actor=actor, subject=subject)
        found = unanswered(reader_of(request))
        reason = request.GET.get("reason", "")
        counted = Counter(each for group in found.groups for each in group.counted)
        if reason == SITUATION:
            groups = [group for group in found.groups if group.may_be_answered]
        else:
            groups = [group for group in found.groups if not counted[reason] or group.counted[reason]]
        if sought and (group := found.group_of(sought)):
            reason, groups = "", list(found.groups)
            page_number = str(groups.index(group) // GROUPS_SHOWN + 1)
        page = Paginator(groups, GROUPS_SHOWN).get_page(page_number)
        read_texts(page)
        documents = documents_shown(reader_of(request), list(page))
        may_see_feedback = actor.has_perm(MAY_SEE_FEEDBACK)
        opinions = feedback_on(list(page)) if may_see_feedback else [[] for _ in page]
        speaking = list(self.get_queryset(request).filter(active=True))
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Unanswered"),
            "opts": VerifiedAnswer._meta,
            "page": page,
            "rows": [
                Row(
                    group,
                    answer_to(group.wordings[:MAX_WORDINGS], speaking),
                    shown,
                    said,
                )
                for group, shown, said in zip(page, documents, opinions, strict=True)
            ],
            "reason": reason if counted[reason] else "",
            "situation": SITUATION,
            "situation_groups": sum(group.may_be_answered for group in found.groups),
            "all_groups": len(found.groups),
            "judged_at": judged_at(),
            "reasons": [(name, words, counted[name]) for name, words in REASONS.items() if counted[name]],
            "others": found.others,
            "since": found.since,
            "days": LISTED_FOR.days,
            "people": MIN_PEOPLE,
            "may_add": self.has_add_permission(request),
            "may_search": actor.has_perm(SEARCH_AS),
        }
        return TemplateResponse(request, "admin/chat/verifiedanswer/unanswered.html", context)

    def _dismiss(self, request: HttpRequest, actor: User) -> str:
        """Dismiss a group; return the URL of the next one, or of the previous one if it was the last.

        Without a reason, nothing is dismissed, and the URL is that of the group itself.
        """
        reason = request.POST.get("reason", "").strip()[:MAX_REASON]
        key = request.POST.get("group", "")
        found = unanswered(reader_of(request))
        group = next_one = found.by_key.get(key)
        if group is None:
            messages.error(request, gettext("These questions are no longer on the list."))
        elif not reason:
            messages.error(request, gettext("Nothing was dismissed: give a reason."))
        else:
            place = found.groups.index(group)
            around = [*found.groups[place + 1 : place + 2], *found.groups[max(0, place - 1) : place]]
            next_one = around[0] if around else None
            read_texts([group])
            words = f"“{group.wordings[0]}”" if group.wordings else "wordings that are not shown"
            subject = f"{words}, asked {group.times} times by {group.people} people: {reason}"
            with transaction.atomic():
                dismiss(group, actor.pk, reason)
                record(AuditEntry.Action.UNANSWERED_DISMISSED, actor=actor, subject=subject)
            messages.success(
                request,
                gettext("Dismissed. The question is listed again if it is asked again and not answered."),
            )
        return unanswered_address(next_one.key) if next_one else request.path


def reader_of(request: HttpRequest) -> Principal:
    """The signed-in member of staff, with the rights that they have in the portal."""
    return Principal(request.user.pk or 0, "session")
