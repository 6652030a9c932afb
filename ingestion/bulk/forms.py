"""What can be changed of many documents: one form for each kind of change."""

from typing import Any, ClassVar

from django import forms
from django.contrib.admin import site
from django.contrib.admin.widgets import AdminDateWidget
from django.contrib.auth.models import Group

from chatsite.accounts.models import User
from chatsite.accounts.pickers import Picker, SeveralPicker
from ingestion.access.lists import Audience, count_people
from ingestion.details import label_names
from ingestion.file_names import UploadRefused, category_name, folder_name
from ingestion.models import AccessEntry, BulkChange, Document

Kind = BulkChange.Kind


def people_field(**options: Any) -> "forms.ModelMultipleChoiceField[User]":
    """A field that finds people by typing part of their names."""
    widget = SeveralPicker(AccessEntry._meta.get_field("user"), site)
    people = User.objects.filter(guest_until=None)
    return forms.ModelMultipleChoiceField(people, required=False, widget=widget, **options)


def groups_field(**options: Any) -> "forms.ModelMultipleChoiceField[Group]":
    """A field that finds groups by typing part of their names."""
    widget = SeveralPicker(AccessEntry._meta.get_field("group"), site)
    return forms.ModelMultipleChoiceField(Group.objects.all(), required=False, widget=widget, **options)


class BulkForm(forms.Form):
    """A kind of change; `wanted` is what is stored of a valid form."""

    kind: ClassVar[BulkChange.Kind]
    title: ClassVar[str]
    button: ClassVar[str]

    def wanted(self) -> dict[str, Any]:
        return {**self.cleaned_data}

    def warning(self) -> str:
        """What to confirm before it is done, or nothing."""
        return ""


class ReadersForm(BulkForm):
    kind, title, button = Kind.READERS, "Who may read them", "Change readers"

    how = forms.ChoiceField(
        choices=[
            ("add", "Add these readers"),
            ("remove", "Remove these readers"),
            ("set", "Only these readers"),
        ],
        initial="add",
        widget=forms.RadioSelect,
        label="How",
    )
    everyone = forms.BooleanField(required=False, label="Everyone who signs in")
    guests = forms.BooleanField(required=False, label="Guests too")
    groups = groups_field(label="Groups")
    users = people_field(label="People")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        named = any(values.get(name) for name in ("everyone", "guests", "groups", "users"))
        if not self.errors and values.get("how") != "set" and not named:
            raise forms.ValidationError("Choose the readers to add or remove.")
        return values

    def wanted(self) -> dict[str, Any]:
        values = self.cleaned_data
        return {
            "how": values["how"],
            "everyone": values["everyone"],
            "guests": values["guests"],
            "groups": sorted(group.pk for group in values["groups"]),
            "users": sorted(user.pk for user in values["users"]),
        }

    def warning(self) -> str:
        wanted = self.wanted()
        if wanted["how"] == "remove":
            return ""
        audience = Audience(
            wanted["everyone"], frozenset(wanted["users"]), frozenset(wanted["groups"]), wanted["guests"]
        )
        people = count_people(audience)
        also = ", and guests," if wanted["guests"] else ""
        who = "1 person" if people == 1 else f"{people:,} people"
        if wanted["how"] == "set":
            return (
                f"Apart from each document's owner, {who}{also} will be able to read them, and nobody else."
            )
        return f"{who}{also} will be able to read all of them and get answers from them."


class CategoryForm(BulkForm):
    kind, title, button = Kind.CATEGORY, "Category", "Set category"

    category = forms.CharField(max_length=100, required=False, help_text="Empty: none.")

    def clean_category(self) -> str:
        return category_name(self.cleaned_data["category"])


class FolderForm(BulkForm):
    kind, title, button = Kind.FOLDER, "Folder", "Move"

    folder = forms.CharField(max_length=500, required=False, help_text="Path of the folder. Empty: none.")

    def clean_folder(self) -> str:
        try:
            return folder_name(self.cleaned_data["folder"])
        except UploadRefused as refusal:
            raise forms.ValidationError(refusal.message) from refusal


class LabelsForm(BulkForm):
    kind, title, button = Kind.LABELS, "Labels", "Change labels"

    how = forms.ChoiceField(
        choices=[("add", "Add these"), ("remove", "Remove these"), ("set", "Only these")],
        initial="add",
        widget=forms.RadioSelect,
        label="How",
    )
    labels = forms.CharField(max_length=1_000, required=False, help_text="Separated by commas.")

    def clean_labels(self) -> list[str]:
        return label_names(self.cleaned_data["labels"].split(","))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and values["how"] != "set" and not values["labels"]:
            raise forms.ValidationError("Name the labels to add or remove.")
        return values


class LastDayForm(BulkForm):
    kind, title, button = Kind.LAST_DAY, "Last day", "Set last day"

    valid_until = forms.DateField(
        required=False,
        label="Last day",
        widget=AdminDateWidget,
        help_text="After it they are neither found nor cited. To retire documents, give them a day in"
        " the past. Empty: always valid.",
    )

    def wanted(self) -> dict[str, Any]:
        day = self.cleaned_data["valid_until"]
        return {"valid_until": day.isoformat() if day else None}


class OwnerForm(BulkForm):
    kind, title, button = Kind.OWNER, "Owner", "Hand over"

    owner = forms.ModelChoiceField(
        User.objects.filter(is_active=True, guest_until=None),
        widget=Picker(Document._meta.get_field("owner"), site),
        help_text="The former owner's own right to read goes with them.",
    )

    def wanted(self) -> dict[str, Any]:
        return {"owner": self.cleaned_data["owner"].pk}


class ReadAgainForm(BulkForm):
    kind, title, button = Kind.READ_AGAIN, "Read again", "Read again"


class DeleteForm(BulkForm):
    kind, title, button = Kind.DELETE, "Delete", "Delete"

    def warning(self) -> str:
        return "They are deleted with their files. This cannot be undone; a last day in the past can."


FORMS: tuple[type[BulkForm], ...] = (
    ReadersForm,
    CategoryForm,
    FolderForm,
    LabelsForm,
    LastDayForm,
    OwnerForm,
    ReadAgainForm,
    DeleteForm,
)
