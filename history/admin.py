"""Conversations, feedback and shared links in the admin.

They cannot be edited, and every page that shows them is audited.
"""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet, Value
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.text import Truncator
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from chatsite.accounts import staff_access
from chatsite.accounts.admin_base.audited_admin import AuditedChanges, user_of
from chatsite.accounts.admin_base.read_only_admin import ReadOnly, shown_object
from chatsite.accounts.audit import record, record_before
from chatsite.accounts.holds import CONVERSATION_ON_HOLD, is_on_hold
from chatsite.accounts.models import AuditEntry, Look, User
from chatsite.accounts.principal import Principal

from . import sharing
from .branches import question_of
from .models import Conversation, Feedback, Message, Share, Source, SourceQuerySet
from .withheld import withheld_labels

CLOSED = gettext_noop("It is based on documents that you may not read.")
COMMENT_SHOWN = 120  # characters shown of a comment, or of the readers of a share


class AuditedPages(ReadOnly):
    """A mixin that writes an audit entry before it shows a page with other people's content."""

    listed_as: AuditEntry.Action
    read_as: AuditEntry.Action
    owner_path = "owner"  # lookup path to the person whose content a page shows

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.has_view_permission(request):
            self._record(self.listed_as, request, None, request.GET.urlencode())
        response: HttpResponse = super().changelist_view(request, *args, **kwargs)  # type: ignore[misc]
        return response

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.has_view_permission(request):
            shown = shown_object(self, request, object_id)
            owner = type(shown)._default_manager.filter(pk=shown.pk).values(self.owner_path)
            self._record(self.read_as, request, User.objects.get(pk__in=owner), str(shown.pk))
        response: HttpResponse = super().change_view(request, object_id, *args, **kwargs)  # type: ignore[misc]
        return response

    def _record(
        self, action: AuditEntry.Action, request: HttpRequest, person: User | None, subject: str
    ) -> None:
        actor = user_of(request)
        record_before(action, actor=actor, person=person, subject=subject)


class ReasonForm(forms.Form):
    """The reason for reading another person's conversation."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        min_length=10,
        max_length=Look.MAX_REASON,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text=gettext_lazy("For example, a ticket number, and what you are looking for."),
    )


class MessageInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    """The messages of one conversation."""

    model = Message
    fields = readonly_fields = (
        "position", "follows", "chosen", "role", "agent_name", "imported", "content", "state", "error_code",
        "request_id", "created_at",
    )  # fmt: skip
    extra = 0


@admin.register(Conversation)
class ConversationAdmin(AuditedPages, AuditedChanges, admin.ModelAdmin):  # type: ignore[type-arg]
    """Conversations. Only superusers can delete one, with everything that belongs to it."""

    audited_as = AuditEntry.Action.CONVERSATION_DELETED
    listed_as = AuditEntry.Action.CONVERSATIONS_LISTED
    read_as = AuditEntry.Action.CONVERSATION_READ
    list_display = ["id", "owner", "mode", "created_at", "updated_at", "deleted_at"]
    list_filter = ["mode", ("deleted_at", admin.EmptyFieldListFilter)]
    list_select_related = ["owner"]
    search_fields = ["owner__username"]  # not the title: searches could reveal words of private titles
    date_hierarchy = "updated_at"
    inlines = [MessageInline]
    fields = readonly_fields = ("id", "owner", "title", "mode", "created_at", "updated_at", "deleted_at")

    def about(self, obj: Conversation) -> User:
        return obj.owner

    def named(self, obj: Conversation) -> str:
        """A label for the conversation without its title, which is private."""
        return str(obj.pk)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask for a reason before showing another person's conversation."""
        if self.has_view_permission(request):
            shown = shown_object(self, request, object_id)
            assert isinstance(request.user, User)
            if shown.owner != request.user:
                if not request.user.has_perm(staff_access.PERMISSION):
                    raise PermissionDenied
                if not staff_access.is_open(request.user, shown.pk):
                    return self._ask_for_reason(request, request.user, shown)
        return super().change_view(request, object_id, *args, **kwargs)

    def _ask_for_reason(self, request: HttpRequest, reader: User, shown: Conversation) -> HttpResponse:
        form = ReasonForm(request.POST or None)
        if form.is_valid():
            staff_access.begin(reader, shown.owner, shown.pk, form.cleaned_data["reason"])
            return redirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Why do you need to read it?"),
            "opts": self.opts,
            "form": form,
            "owner": shown.owner,
            "minutes": int(staff_access.OPEN.total_seconds() // 60),
            "days": settings.LOOK_NOTICE_DAYS,
        }
        return TemplateResponse(request, "admin/history/conversation/reason.html", context)

    def has_delete_permission(self, request: HttpRequest, *args: Any) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Allow deleting a conversation with its runs, feedback and shares, all read-only here.

        Conversations of people under a legal hold are kept.
        """
        objects, counts, _, protected = super().get_deleted_objects(objs, request)
        held = [
            f"{self.named(conversation)}: {gettext(CONVERSATION_ON_HOLD)}"
            for conversation in objs
            if is_on_hold(conversation.owner_id)
        ]
        return objects, counts, set(), [*protected, *held]


@admin.register(Feedback)
class FeedbackAdmin(AuditedPages, admin.ModelAdmin):  # type: ignore[type-arg]
    """Ratings of answers.

    Question and answer are shown only if the person who asked agreed, and only to staff who may read all
    sources of the conversation up to the answer: both may contain words of an earlier answer.
    """

    listed_as = AuditEntry.Action.FEEDBACK_LISTED
    read_as = AuditEntry.Action.FEEDBACK_READ
    owner_path = "message__conversation__owner"
    list_display = ["rating", "why", "shortened_comment", "shared", "updated_at"]
    list_filter = ["rating", "shared"]
    date_hierarchy = "updated_at"
    fields = readonly_fields = (
        "rating", "why", "comment", "doubted_sources", "shared", "question", "answer", "answered_at",
        "updated_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Feedback]:
        shown = Feedback.objects.filter(
            message__conversation__deleted_at=None, message__conversation__listed=True
        )
        return shown.select_related("message").annotate(reader_id=Value(request.user.pk))

    @admin.display(description=gettext_lazy("why"))
    def why(self, feedback: Feedback) -> str:
        words = dict(Feedback.Reason.choices)
        return "; ".join(str(words[reason]) for reason in feedback.reasons if reason in words) or "–"

    @admin.display(description=gettext_lazy("comment"))
    def shortened_comment(self, feedback: Feedback) -> str:
        return Truncator(feedback.comment).chars(COMMENT_SHOWN) or "–"

    @admin.display(description=gettext_lazy("sources marked as wrong"))
    def doubted_sources(self, feedback: Feedback) -> str:
        """The titles of the sources marked as wrong, as far as the member of staff may read them."""
        doubted = _readable_sources(feedback).filter(label__in=feedback.wrong_sources)
        titles = sorted({f"{source.title} ({source.label})" for source in doubted})
        closed = len(feedback.wrong_sources) - len({source.label for source in doubted})
        if closed:
            titles.append(gettext("%(count)s that you may not read") % {"count": closed})
        return "; ".join(titles) or "–"

    @admin.display(description=gettext_lazy("question"))
    def question(self, feedback: Feedback) -> str:
        if not feedback.shared:
            return gettext("Not shared by the person who asked.")
        if _has_closed_sources(feedback):
            return gettext(CLOSED)
        question = question_of(feedback.message)
        return question.content if question else "–"

    @admin.display(description=gettext_lazy("answer"))
    def answer(self, feedback: Feedback) -> str:
        if not feedback.shared:
            return gettext("Not shared by the person who asked.")
        return gettext(CLOSED) if _has_closed_sources(feedback) else feedback.message.content

    @admin.display(description=gettext_lazy("answered at"))
    def answered_at(self, feedback: Feedback) -> Any:
        return feedback.message.created_at


@admin.register(Share)
class ShareAdmin(AuditedPages, admin.ModelAdmin):  # type: ignore[type-arg]
    """Links by which people share conversations. The change permission allows revoking them."""

    listed_as = AuditEntry.Action.SHARES_LISTED
    read_as = AuditEntry.Action.SHARE_READ
    owner_path = "conversation__owner"
    list_display = [
        "owner",
        "conversation_number",
        "part",
        "readers",
        "state_in_words",
        "created_at",
        "expires_at",
        "revoked_at",
    ]
    list_filter = [("revoked_at", admin.EmptyFieldListFilter)]
    search_fields = ["conversation__owner__username"]
    date_hierarchy = "created_at"
    actions = ["revoke"]
    fields = readonly_fields = (
        "owner", "conversation_number", "part", "readers", "state_in_words", "created_at",
        "expires_at", "revoked_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Share]:
        return sharing.with_readers(Share.objects.filter(conversation__listed=True))

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("history.change_share")

    @admin.display(description=gettext_lazy("conversation"))
    def conversation_number(self, share: Share) -> str:
        return str(share.conversation_id)

    @admin.display(description=gettext_lazy("state"))
    def state_in_words(self, share: Share) -> str:
        words = {"open": gettext("open"), "expired": gettext("expired"), "revoked": gettext("revoked")}
        return words[share.state]

    @admin.display(description=gettext_lazy("owner"), ordering="conversation__owner__username")
    def owner(self, share: Share) -> User:
        return share.conversation.owner

    @admin.display(description=gettext_lazy("what"))
    def part(self, share: Share) -> str:
        return gettext("one answer") if share.answer_id else gettext("all messages up to then")

    @admin.display(description=gettext_lazy("shared with"))
    def readers(self, share: Share) -> str:
        return Truncator(sharing.readers_of(share)).chars(COMMENT_SHOWN)

    @admin.action(description=gettext_lazy("Revoke the chosen links"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Share]) -> None:
        """Revoke the selected links, with an audit entry for each.

        Links that were revoked before are not changed.
        """
        chosen = Share.objects.filter(pk__in=queryset.values("pk"), revoked_at=None)
        with transaction.atomic():
            revoked = list(chosen.select_related("conversation__owner").select_for_update(of=("self",)))
            Share.objects.filter(pk__in=[share.pk for share in revoked]).revoke()
            for share in revoked:
                actor = user_of(request)
                owner = share.conversation.owner
                record(AuditEntry.Action.SHARE_REVOKED, actor=actor, person=owner, subject=str(share.pk))
        messages.success(
            request, gettext("Revoked: %(count)s. Nobody can open them any more.") % {"count": len(revoked)}
        )


def _readable_sources(feedback: Feedback) -> SourceQuerySet:
    """The answer's sources that the member of staff may also read in the portal."""
    reader = Principal(feedback.reader_id, "session")  # type: ignore[attr-defined]  # annotated above
    return Source.objects.visible_to(reader).filter(message=feedback.message_id)


def _has_closed_sources(feedback: Feedback) -> bool:
    """Whether the member of staff may not read a source of this answer, or of an earlier one."""
    answer = feedback.message
    if _readable_sources(feedback).count() < max(len(answer.labels), len(set(answer.citations))):
        return True
    reader = Principal(feedback.reader_id, "session")  # type: ignore[attr-defined]  # annotated above
    return bool(withheld_labels(reader, answer.conversation_id, answer.position))
