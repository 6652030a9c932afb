"""The versions of the site's texts, and the starting questions.

Each change of the texts is a new row.
"""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection, models
from django.utils.translation import get_language, gettext, gettext_lazy

LOCK = 0x7465_7874  # key of the advisory lock for adding a version
MAX_LINE = 300  # characters of a text on one line
MAX_TEXT = 20_000
GERMAN = gettext_lazy("The German version. If you leave it empty, everyone sees the other one.")


class SiteTexts(models.Model):
    """One version of the texts; the newest is in use.

    Rows never change, so that versions can be compared.
    """

    class Kind(models.TextChoices):
        INFO = "info", gettext_lazy("Information")
        WARNING = "warning", gettext_lazy("Warning")

    name = models.CharField(
        gettext_lazy("name of the site"),
        max_length=60,
        blank=True,
        help_text=gettext_lazy("If you leave it empty, the site has the name in the setting CHATSITE_NAME."),
    )
    logo = models.BinaryField(
        db_column="mark",
        null=True,
        help_text=gettext_lazy("A PNG that the site made from an uploaded image."),
    )
    sign_in_line = models.CharField(
        gettext_lazy("line on the sign-in page"),
        max_length=MAX_LINE,
        blank=True,
        help_text=gettext_lazy("Everyone can read it."),
    )
    sign_in_line_de = models.CharField(
        gettext_lazy("line on the sign-in page in German"), max_length=MAX_LINE, blank=True, help_text=GERMAN
    )
    welcome = models.CharField(
        gettext_lazy("welcome"),
        max_length=MAX_LINE,
        blank=True,
        help_text=gettext_lazy("Above an empty question box."),
    )
    welcome_de = models.CharField(
        gettext_lazy("welcome in German"), max_length=MAX_LINE, blank=True, help_text=GERMAN
    )
    prompt = models.TextField(
        gettext_lazy("instructions for the model"),
        max_length=MAX_TEXT,
        blank=True,
        help_text=gettext_lazy(
            "They apply to every answer. If you leave them empty, the built-in ones apply. "
            "Try them before you save."
        ),
    )
    banner = models.CharField(
        gettext_lazy("banner"),
        max_length=MAX_LINE,
        blank=True,
        help_text=gettext_lazy("Above every page, including the sign-in page, which everyone can see."),
    )
    banner_de = models.CharField(
        gettext_lazy("banner in German"), max_length=MAX_LINE, blank=True, help_text=GERMAN
    )
    banner_kind = models.CharField(
        gettext_lazy("kind of banner"), max_length=10, choices=Kind, default=Kind.INFO
    )
    banner_from = models.DateTimeField(
        gettext_lazy("banner from"),
        null=True,
        blank=True,
        help_text=gettext_lazy("If you leave it empty, the banner appears at once."),
    )
    banner_until = models.DateTimeField(
        gettext_lazy("banner until"),
        null=True,
        blank=True,
        help_text=gettext_lazy("If you leave it empty, the banner stays until you remove it."),
    )
    maintenance_from = models.DateTimeField(
        gettext_lazy("maintenance from"),
        null=True,
        blank=True,
        help_text=gettext_lazy(
            "Announced above every page; from then on only staff can ask. "
            "Leave it empty if no maintenance is planned."
        ),
    )
    maintenance_until = models.DateTimeField(
        gettext_lazy("maintenance until"),
        null=True,
        blank=True,
        help_text=gettext_lazy("If you leave it empty, maintenance lasts until you end it here."),
    )
    maintenance_words = models.CharField(
        gettext_lazy("message during maintenance"),
        max_length=MAX_LINE,
        blank=True,
        help_text=gettext_lazy(
            "If you leave it empty, people read that no questions can be asked at the moment."
        ),
    )
    maintenance_words_de = models.CharField(
        gettext_lazy("message during maintenance in German"),
        max_length=MAX_LINE,
        blank=True,
        help_text=GERMAN,
    )
    privacy = models.TextField(
        gettext_lazy("privacy note"),
        max_length=MAX_TEXT,
        blank=True,
        help_text=gettext_lazy(
            "The sign-in page and the help link to this page. Blank lines separate paragraphs."
        ),
    )
    privacy_de = models.TextField(
        gettext_lazy("privacy note in German"), max_length=MAX_TEXT, blank=True, help_text=GERMAN
    )
    changed_at = models.DateTimeField(auto_now_add=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )

    TEXTS: ClassVar = (
        "name", "sign_in_line", "sign_in_line_de", "welcome", "welcome_de", "prompt", "banner", "banner_de",
        "banner_kind", "banner_from", "banner_until", "maintenance_from", "maintenance_until",
        "maintenance_words", "maintenance_words_de", "privacy", "privacy_de",
    )  # fmt: skip

    class Meta:
        ordering = ["-pk"]
        verbose_name = gettext_lazy("version of the site's texts")
        verbose_name_plural = gettext_lazy("texts of the site")
        default_permissions = ["add", "view"]

    def __str__(self) -> str:
        return gettext("Version %(number)s") % {"number": self.pk}

    @classmethod
    def lock_newest(cls) -> "SiteTexts | None":
        """The version in use.

        Takes a lock, so that nobody else can add a version until the transaction ends.
        """
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        return cls.objects.first()

    def translated(self, field: str) -> str:
        """The German version on German pages, if there is one; otherwise the general text."""
        german = getattr(self, f"{field}_de") if (get_language() or "").startswith("de") else ""
        text: str = german or getattr(self, field)
        return text

    def is_banner_shown(self, now: datetime) -> bool:
        return bool(self.banner) and _within(now, self.banner_from, self.banner_until)

    def is_maintained(self, now: datetime) -> bool:
        """Whether maintenance allows only staff to ask."""
        return self.maintenance_from is not None and _within(
            now, self.maintenance_from, self.maintenance_until
        )

    def changes_since(self, other: "SiteTexts") -> list[str]:
        """Names of the fields that differ."""
        names = [name for name in self.TEXTS if getattr(self, name) != getattr(other, name)]
        return names + (["logo"] if bytes(self.logo or b"") != bytes(other.logo or b"") else [])


def _within(now: datetime, since: datetime | None, until: datetime | None) -> bool:
    return (since is None or since <= now) and (until is None or now < until)


class StartingQuestion(models.Model):
    """A question that a new conversation offers, to everyone or only to the members of a group."""

    text = models.CharField(gettext_lazy("question"), max_length=MAX_LINE)
    group = models.ForeignKey(
        Group,
        null=True,
        blank=True,
        on_delete=models.CASCADE,  # without its group, it would be offered to everyone
        related_name="+",
        help_text=gettext_lazy(
            "Only members of this group see the question. Without a group everyone sees it, also guests."
        ),
    )
    order = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["order", "pk"]

    def __str__(self) -> str:
        return self.text
