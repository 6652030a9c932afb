"""Forms for a document's readers and details, and for uploads."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Exists, Q, QuerySet
from django.utils.translation import gettext, gettext_lazy

from chatsite.accounts import directory
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion import details
from ingestion.access.lists import Audience
from ingestion.file_names import UploadRefused
from ingestion.models import Document
from ingestion.sender_check import GROUP_CLOSED

MAX_PEOPLE = 200
MAX_BOXES = 40  # if staff may select more groups, they type the names of those they are not in
ONLY_ME, SOME, EVERYONE, GUESTS = "me", "some", "everyone", "guests"
READERS = [
    (ONLY_ME, gettext_lazy("Only me")),
    (SOME, gettext_lazy("Some groups or people")),
    (EVERYONE, gettext_lazy("Everyone")),
    (GUESTS, gettext_lazy("Everyone, including guests")),
]


class AudienceForm(forms.Form):
    """Readers of a document: only me, some groups and people, everyone, or also guests.

    Guests can only be selected if the site admits guests, or if guests are among the current readers.
    """

    who = forms.ChoiceField(
        choices=READERS,
        error_messages={"required": gettext_lazy("Choose who can read it.")},
    )
    groups = forms.ModelMultipleChoiceField(
        Group.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "invalid_choice": gettext_lazy("You can choose only groups you belong to."),
            "invalid_pk_value": gettext_lazy("You can choose only groups you belong to."),
        },
    )
    other_groups = forms.CharField(required=False, max_length=10_000)
    people = forms.CharField(required=False, max_length=10_000)

    def __init__(
        self,
        *args: Any,
        principal: Principal,
        any_group: bool,
        current: Audience | None = None,
        **kwargs: Any,
    ) -> None:
        current = current or Audience()
        kwargs["initial"] = self._initial(current)
        super().__init__(*args, **kwargs)
        self._principal, self._current = principal, current
        self.offers_guests = current.guests or not settings.LOGIN_REQUIRED
        own = User.groups.through.objects.filter(user_id=principal.user_id)
        near = Q(pk__in=own.values("group_id")) | Q(pk__in=current.group_ids)
        # A subquery, evaluated by each query: staff may be demoted while files are being stored.
        staff = User.objects.filter(pk=principal.user_id, is_active=True, is_staff=True)
        offered = near | Q(Exists(staff)) if any_group else near
        field = self.fields["groups"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        field.queryset = Group.objects.filter(offered).order_by("name")
        self.offers_other_groups = any_group and field.queryset.count() > MAX_BOXES
        if self.offers_other_groups:
            field.widget.choices = [
                (group.pk, group.name) for group in Group.objects.filter(near).order_by("name")
            ]

    def offered_groups(self) -> QuerySet[Group]:
        """The groups that may be selected."""
        field = self.fields["groups"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        assert field.queryset is not None
        return field.queryset

    @staticmethod
    def _initial(current: Audience) -> dict[str, Any]:
        people = User.objects.filter(pk__in=current.user_ids).order_by("username")
        some = current.user_ids or current.group_ids
        return {
            "who": GUESTS if current.guests else EVERYONE if current.everyone else SOME if some else ONLY_ME,
            "groups": list(current.group_ids),
            "people": ", ".join(map(directory.entry, people)) if current.user_ids else "",
        }

    def clean_who(self) -> str:
        who: str = self.cleaned_data["who"]
        if who == GUESTS and not self.offers_guests:
            raise forms.ValidationError(gettext("This site does not admit guests."))
        return who

    def clean_people(self) -> frozenset[int]:
        names = directory.usernames(self.cleaned_data["people"])
        if self.data.get("who") != SOME or not names:
            return frozenset()
        if len(names) > MAX_PEOPLE:
            raise forms.ValidationError(
                gettext("Name at most %(most)s people, or choose a group.") % {"most": MAX_PEOPLE}
            )
        # Current readers remain valid choices even if their account is disabled.
        active = User.objects.filter(Q(is_active=True) | Q(pk__in=self._current.user_ids), guest_until=None)
        found = dict(active.filter(username__in=names).values_list("username", "pk"))
        missing = sorted(names - found.keys())
        if missing:
            raise forms.ValidationError(
                gettext("There is no account named %(names)s.") % {"names": ", ".join(missing)[:200]}
            )
        return frozenset(found.values())

    def clean_other_groups(self) -> list[Group]:
        names = {name for line in self.cleaned_data["other_groups"].splitlines() if (name := line.strip())}
        found = list(self.offered_groups().filter(name__in=names)) if names else []
        if missing := sorted(names - {group.name for group in found}):
            raise forms.ValidationError(
                gettext("There is no group named %(names)s.") % {"names": ", ".join(missing)[:200]}
            )
        return found

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        cleaned["groups"] = list(
            dict.fromkeys((*cleaned.get("groups", ()), *cleaned.get("other_groups", ())))
        )
        chosen = cleaned.get("groups") or cleaned.get("people")
        if cleaned.get("who") == SOME and not chosen and not self.errors:
            raise forms.ValidationError(gettext("Choose a group, name a person, or select “Only me”."))
        return cleaned

    def demand_readers(self) -> None:
        """Raise UploadRefused if one of the selected groups may no longer be selected."""
        chosen = {group.pk for group in self.cleaned_data["groups"]}
        if chosen - set(self.offered_groups().values_list("pk", flat=True)):
            raise UploadRefused("group_closed", GROUP_CLOSED)

    def audience(self) -> Audience:
        """The selected readers of a valid form."""
        who = self.cleaned_data["who"]
        if who != SOME:
            return Audience(everyone=who in {EVERYONE, GUESTS}, guests=who == GUESTS)
        groups = frozenset(group.pk for group in self.cleaned_data["groups"])
        return Audience(user_ids=self.cleaned_data["people"], group_ids=groups)


class DetailsForm(forms.Form):
    """A form for the metadata of a document."""

    title = forms.CharField(required=False, max_length=details.TITLE_CHARACTERS)
    labels = forms.CharField(required=False, max_length=2_000)
    source_url = forms.CharField(
        required=False, max_length=details.ADDRESS_CHARACTERS, validators=[details.is_web_address]
    )
    valid_until = forms.DateField(required=False)

    def clean_labels(self) -> list[str]:
        labels = [label.strip() for label in self.cleaned_data["labels"].split(",")]
        if len(labels) > details.MAX_LABELS:
            raise forms.ValidationError(
                gettext("Enter at most %(most)d labels.") % {"most": details.MAX_LABELS}
            )
        if any(len(label) > details.LABEL_CHARACTERS for label in labels):
            raise forms.ValidationError(
                gettext("A label has at most %(most)d characters.") % {"most": details.LABEL_CHARACTERS}
            )
        return labels


class SeveralFilesInput(forms.FileInput):
    """`<input type="file" multiple>`; its value is the list of files."""

    allow_multiple_selected = True

    def value_from_datadict(self, data: Any, files: Any, name: str) -> "list[UploadedFile[Any]]":
        return files.getlist(name) if files else []


class FilesField(forms.FileField):
    """One or more files. The content of each is checked when it is added."""

    widget = SeveralFilesInput

    def clean(self, data: Any, initial: Any = None) -> "Sequence[UploadedFile[Any]]":
        files = [file for file in data or [] if file]
        if not files:
            raise forms.ValidationError(gettext("Choose at least one file."))
        return files


class UploadForm(AudienceForm):
    """Files, their folder and category, and their readers."""

    file = FilesField()
    folder = forms.CharField(required=False, max_length=Document._meta.get_field("folder").max_length)
    category = forms.CharField(required=False, max_length=Document._meta.get_field("category").max_length)

    def clean_folder(self) -> str:
        parts = (part.strip() for part in self.cleaned_data["folder"].replace("\\", "/").split("/"))
        return "/".join(part for part in parts if part)
