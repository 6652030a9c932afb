"""Forms of bulk changes, one for each kind."""

from typing import Any, ClassVar

from django import forms
from django.contrib.admin import site
from django.contrib.admin.widgets import AdminDateWidget
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from chatsite.accounts.admin_base.pickers import Picker, SeveralPicker
from chatsite.accounts.models import User
from ingestion.access.lists import Audience, count_people
from ingestion.access.models import AccessEntry
from ingestion.details import label_names
from ingestion.file_names import UploadRefused, category_name, folder_name
from ingestion.models import Document
from ingestion.reasons import in_words

from .models import BulkChange
from .preview import Preview, preview

Kind = BulkChange.Kind
OLD_ANSWERS = gettext_lazy(
    "Earlier answers keep their text in people’s conversations, even for people who can no longer "
    "read the document. Only the source is closed to them."
)


def people_field(**options: Any) -> "forms.ModelMultipleChoiceField[User]":
    """A field to select people, which suggests them while a part of a name is typed."""
    widget = SeveralPicker(AccessEntry._meta.get_field("user"), site)
    people = User.objects.filter(guest_until=None)
    return forms.ModelMultipleChoiceField(people, required=False, widget=widget, **options)


def groups_field(**options: Any) -> "forms.ModelMultipleChoiceField[Group]":
    """A field to select groups, which suggests them while a part of a name is typed."""
    widget = SeveralPicker(AccessEntry._meta.get_field("group"), site)
    return forms.ModelMultipleChoiceField(Group.objects.all(), required=False, widget=widget, **options)


class BulkForm(forms.Form):
    """The form for a kind of change; `wanted` returns the value of `BulkChange.wanted`."""

    kind: ClassVar[BulkChange.Kind]
    title: ClassVar["str | Promise"]
    button: ClassVar["str | Promise"]

    def wanted(self) -> dict[str, Any]:
        return {**self.cleaned_data}

    def warning(self, chosen: QuerySet[Document]) -> str:
        """A warning to confirm before these documents are changed, or empty."""
        return ""

    def preview(self, chosen: QuerySet[Document]) -> Preview | None:
        """Who gains and who loses access; None for a form without a preview."""
        return None


class ReadersForm(BulkForm):
    kind, title, button = Kind.READERS, gettext_lazy("Who may read them"), gettext_lazy("Change readers")

    how = forms.ChoiceField(
        choices=[
            ("add", gettext_lazy("Add these readers")),
            ("remove", gettext_lazy("Remove these readers")),
            ("set", gettext_lazy("Only these readers")),
        ],
        initial="add",
        widget=forms.RadioSelect,
        label=gettext_lazy("How"),
        help_text=OLD_ANSWERS,
    )
    everyone = forms.BooleanField(required=False, label=gettext_lazy("Everyone who signs in"))
    guests = forms.BooleanField(required=False, label=gettext_lazy("Guests too"))
    groups = groups_field(label=gettext_lazy("Groups"))
    users = people_field(label=gettext_lazy("People"))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        named = any(values.get(name) for name in ("everyone", "guests", "groups", "users"))
        if not self.errors and values.get("how") != "set" and not named:
            raise forms.ValidationError(gettext("Choose the readers to add or remove."))
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

    def warning(self, chosen: QuerySet[Document]) -> str:
        wanted = self.wanted()
        if wanted["how"] == "remove":
            return gettext("These readers will no longer be named as readers of these documents.")
        audience = Audience(
            wanted["everyone"], frozenset(wanted["users"]), frozenset(wanted["groups"]), wanted["guests"]
        )
        people = count_people(audience)
        who = ngettext("%(count)s person", "%(count)s people", people)
        who %= {"count": number_format(people, force_grouping=True)}
        if wanted["guests"]:
            who = gettext("%(people)s and guests") % {"people": who}
        if wanted["how"] == "set" and not (people or wanted["guests"]):
            text = gettext("Nobody will be able to read them, apart from each document's owner.")
        elif wanted["how"] == "set":
            text = gettext(
                "Apart from each document's owner, %(people)s will be able to read them, and nobody else."
            )
        else:
            text = gettext("%(people)s will be able to read all of them and get answers from them.")
        text %= {"people": who}
        for_all = AccessEntry.objects.filter(user=None, group=None)
        if wanted["guests"]:
            for_all = for_all.filter(guests=True)
        number = chosen.filter(access_list__in=for_all.values("access_list")).count()
        if wanted["how"] == "add" and number == chosen.count():
            return gettext("Everyone can read all of them already. Nothing will change.")
        if number and wanted["how"] == "add":
            already = ngettext(
                "%(count)s of them can be read by everyone already.",
                "%(count)s of them can be read by everyone already.",
                number,
            )
            text = f"{text} {already % {'count': number_format(number, force_grouping=True)}}"
        return text

    def preview(self, chosen: QuerySet[Document]) -> Preview:
        return preview(chosen, self.wanted())


class CategoryForm(BulkForm):
    kind, title, button = Kind.CATEGORY, gettext_lazy("Category"), gettext_lazy("Set category")

    category = forms.CharField(
        max_length=100,
        required=False,
        label=gettext_lazy("Category"),
        help_text=gettext_lazy("Leave it empty to remove the category."),
    )

    def clean_category(self) -> str:
        return category_name(self.cleaned_data["category"])


class FolderForm(BulkForm):
    kind, title, button = Kind.FOLDER, gettext_lazy("Folder"), gettext_lazy("Move")

    folder = forms.CharField(
        max_length=500,
        required=False,
        label=gettext_lazy("Folder"),
        help_text=gettext_lazy(
            "The path of the folder. Leave it empty to take the documents out of their folders."
        ),
    )

    def clean_folder(self) -> str:
        try:
            return folder_name(self.cleaned_data["folder"])
        except UploadRefused as refusal:
            raise forms.ValidationError(in_words(refusal.message)) from refusal


class LabelsForm(BulkForm):
    kind, title, button = Kind.LABELS, gettext_lazy("Labels"), gettext_lazy("Change labels")

    how = forms.ChoiceField(
        choices=[
            ("add", gettext_lazy("Add these")),
            ("remove", gettext_lazy("Remove these")),
            ("set", gettext_lazy("Only these")),
        ],
        initial="add",
        widget=forms.RadioSelect,
        label=gettext_lazy("How"),
    )
    labels = forms.CharField(
        max_length=1_000,
        required=False,
        label=gettext_lazy("Labels"),
        help_text=gettext_lazy("Separated by commas."),
    )

    def clean_labels(self) -> list[str]:
        return label_names(self.cleaned_data["labels"].split(","))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and values["how"] != "set" and not values["labels"]:
            raise forms.ValidationError(gettext("Name the labels to add or remove."))
        return values


class LastDayForm(BulkForm):
    kind, title, button = Kind.LAST_DAY, gettext_lazy("Last day"), gettext_lazy("Set last day")

    valid_until = forms.DateField(
        required=False,
        label=gettext_lazy("Last day"),
        widget=AdminDateWidget,
        help_text=gettext_lazy(
            "After this day, they are neither found nor cited. To retire documents, give them a day "
            "in the past. If you leave it empty, they remain valid."
        ),
    )

    def wanted(self) -> dict[str, Any]:
        day = self.cleaned_data["valid_until"]
        return {"valid_until": day.isoformat() if day else None}


class OwnerForm(BulkForm):
    kind, title, button = Kind.OWNER, gettext_lazy("Owner"), gettext_lazy("Hand over")

    owner = forms.ModelChoiceField(
        User.objects.filter(is_active=True, guest_until=None),
        widget=Picker(Document._meta.get_field("owner"), site),
        label=gettext_lazy("Owner"),
        help_text=gettext_lazy("The former owner is removed from the readers."),
    )

    def wanted(self) -> dict[str, Any]:
        return {"owner": self.cleaned_data["owner"].pk}


class ReadAgainForm(BulkForm):
    kind, title, button = Kind.READ_AGAIN, gettext_lazy("Read again"), gettext_lazy("Read again")


class DeleteForm(BulkForm):
    kind, title, button = Kind.DELETE, gettext_lazy("Delete"), gettext_lazy("Delete")

    def warning(self, chosen: QuerySet[Document]) -> str:
        return gettext(
            "They are deleted with their files. This cannot be undone; a last day in the past can."
        )


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
